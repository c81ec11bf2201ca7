package pattern

import (
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
)

// forget removes the steps that a test registered.
func forget(t *testing.T) {
	before := registered.Load()
	t.Cleanup(func() { registered.Store(before) })
}

func same([]float64) (func(float64) float64, error) {
	return func(v float64) float64 { return v }, nil
}

func TestRegisterRefuses(t *testing.T) {
	forget(t)
	if err := Register(Step{Name: "mine", Doc: "Does nothing.", Of: same}); err != nil {
		t.Fatal(err)
	}
	for want, s := range map[string]Step{
		"already":                          {Name: "mine", Doc: "d", Of: same},
		"an operation named round exists":  {Name: "round", Doc: "d", Of: same},
		"an operation named normal exists": {Name: "normal", Doc: "d", Of: same},
		`"" is not a name`:                 {Doc: "d", Of: same},
		`"Big" is not a name`:              {Name: "Big", Doc: "d", Of: same},
		`"a|b" is not a name`:              {Name: "a|b", Doc: "d", Of: same},
		"has no Doc":                       {Name: "other", Of: same},
		"or no Of":                         {Name: "other", Doc: "d"},
		`parameter "x" is not a va`:        {Name: "other", Doc: "d", Parameters: []string{"x", "x"}, Of: same},
		`parameter "1" is not a va`:        {Name: "other", Doc: "d", Parameters: []string{"1"}, Of: same},
	} {
		if err := Register(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := Register(Step{Name: "none", Doc: "d", Of: func([]float64) (func(float64) float64, error) { return nil, nil }}); err != nil {
		t.Fatal(err)
	}
	if _, err := Parse("zeros | none"); err == nil || !strings.Contains(err.Error(), "none: its field Of returned no function") {
		t.Errorf("a step without a function: %v", err)
	}
}

// TestRegisterAtOnce registers from several goroutines while other goroutines parse.
func TestRegisterAtOnce(t *testing.T) {
	forget(t)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			name := "step" + string(rune('a'+i))
			if err := Register(Step{Name: name, Doc: "d", Of: same}); err != nil {
				t.Error(err)
			}
			if _, err := Parse("zeros | " + name); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// TestStepWithoutANumber: if a step returns NaN, the error names the step, in every type and also with tables of all
// values. If no element has a value that gives NaN, there is no error. Infinity becomes the largest finite value.
func TestStepWithoutANumber(t *testing.T) {
	forget(t)
	for name, of := range map[string]func(float64) float64{"root": math.Sqrt, "endless": func(float64) float64 { return math.Inf(1) }} {
		if err := Register(Step{Name: name, Doc: "d", Of: func([]float64) (func(float64) float64, error) { return of, nil }}); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []weights.DType{weights.F32, weights.F16, weights.BF16, weights.F8E4M3, weights.F8E5M2, weights.I8} {
		s := Spec{DType: d, Rows: 300, Cols: 300}
		if _, err := MustParse("normal(0,4) | root | abs").Generate(t.Context(), s, 2); err == nil || !strings.Contains(err.Error(), "step root: its function returned NaN for -") {
			t.Errorf("%v: %v", d, err)
		}
		if _, err := MustParse("normal(0,4) | abs | root | transpose").Generate(t.Context(), s, 2); err != nil {
			t.Errorf("%v: %v", d, err)
		}
		data, err := MustParse("zeros | endless").Generate(t.Context(), s, 2)
		if err != nil {
			t.Fatal(err)
		}
		if f, _ := d.Format(); !f.Finite(f.Elem(data, 5)) || f.Value(f.Elem(data, 5)) < 100 {
			t.Errorf("%v: infinity becomes %v", d, f.Value(f.Elem(data, 5)))
		}
	}
}
