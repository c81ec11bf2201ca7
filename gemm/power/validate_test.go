package power

import (
	"strings"
	"testing"
)

// TestValidate checks the conditions that make a result invalid.
func TestValidate(t *testing.T) {
	around := Comparison{Summary: Summary{Name: "null"}, Interval: []float64{0.99, 1.01}}
	for name, c := range map[string]struct {
		change func(*Result)
		reason string
	}{
		"a good run":                          {func(*Result) {}, ""},
		"a variant that lost every block":     {func(r *Result) { r.Variants = []Comparison{{Dropped: 1}} }, "every block of"},
		"a variant of no block":               {func(r *Result) { r.Variants = []Comparison{{}} }, ""},
		"a variant that lost some":            {func(r *Result) { r.Variants = []Comparison{{Blocks: 1, Dropped: 2}} }, ""},
		"a null that touches 1 from above":    {func(r *Result) { r.Null.Interval = []float64{1, 1.02} }, ""},
		"a null that touches 1 from below":    {func(r *Result) { r.Null.Interval = []float64{0.98, 1} }, ""},
		"a null above 1":                      {func(r *Result) { r.Null.Interval = []float64{1.001, 1.02} }, "does not contain 1"},
		"a null below 1":                      {func(r *Result) { r.Null.Interval = []float64{0.98, 0.999} }, "does not contain 1"},
		"no block":                            {func(r *Result) { r.Null.Interval = nil }, "no block was completed"},
		"a null of which every block is lost": {func(r *Result) { r.Null.Interval, r.Null.Dropped = nil, 1 }, "every block was dropped"},
	} {
		r := &Result{Header: Header{Valid: true}, Null: around}
		c.change(r)
		r.validate()
		reasons := strings.Join(r.Invalid, "; ")
		if r.Valid != (c.reason == "") || c.reason == "" && reasons != "" || !strings.Contains(reasons, c.reason) || len(r.Invalid) > 1 {
			t.Errorf("%s: valid %v, %q, want %q", name, r.Valid, reasons, c.reason)
		}
	}
}

// TestLimitedClocksAreWarnedOf: limited clocks and warm-ups that did not end are warned of, and a card at its power cap is not.
func TestLimitedClocksAreWarnedOf(t *testing.T) {
	for name, c := range map[string]struct {
		r    Result
		want string
	}{
		"steady":       {Result{Steady: &Steady{Reached: true}}, ""},
		"not steady":   {Result{Steady: &Steady{}}, "did not reach a steady state"},
		"power cap":    {Result{Blocks: []Block{{Windows: []Window{{Throttle: SoftwarePowerCap.Names()}}}}}, ""},
		"locked clock": {Result{Blocks: []Block{{Windows: []Window{{Throttle: ApplicationClocks.Names()}}}}}, "clock was limited (application_clocks)"},
		"odd":          {Result{Blocks: []Block{{Windows: []Window{{odd: []string{"the clock shows 7"}}}}}}, "the clock shows 7: implausible readings are left out"},
	} {
		r := c.r
		r.Null.Interval = []float64{0.9, 1.1}
		r.validate()
		warnings := strings.Join(r.Warnings, "; ")
		if c.want == "" && warnings != "" || !strings.Contains(warnings, c.want) {
			t.Errorf("%s: %q, want %q", name, warnings, c.want)
		}
	}
}
