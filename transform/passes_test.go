package transform

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/plan"
)

func TestPassesAreValid(t *testing.T) {
	if err := Passes.Validate(); err != nil {
		t.Fatal(err)
	}
}

// altered returns the table with one pass changed.
func altered(name string, change func(*pass.Pass)) Table {
	t := slices.Clone(Passes)
	p := *t[t.rank(name)].Pass
	t[t.rank(name)].Pass = &p
	change(&p)
	return t
}

func TestValidateFindsBrokenTables(t *testing.T) {
	plans := func(context.Context, *pass.Model, []string) ([]*plan.Step, error) { return nil, nil }
	unchecked := slices.Clone(Passes)
	unchecked[0].Check = nil
	for _, c := range []struct {
		name, want string
		table      Table
	}{
		{"no name", `pass "": its name must not be empty`, altered("grid", func(p *pass.Pass) { p.Name = "" })},
		{"a separator", `pass "a=b": its name must not be empty`, altered("grid", func(p *pass.Pass) { p.Name, p.Usage = "a=b", "a=b" })},
		{"a field of a step", `pass "tensor": its name must not be empty`, altered("grid", func(p *pass.Pass) { p.Name, p.Usage = "tensor", "tensor" })},
		{"name twice", `pass "round" occurs twice`, altered("grid", func(p *pass.Pass) { p.Name, p.Usage = "round", "round" })},
		{"no check", `pass "scale" has no check`, unchecked},
		{"no doc", `pass "grid": needs Doc`, altered("grid", func(p *pass.Pass) { p.Doc = "" })},
		{"usage of another", `pass "grid": needs Doc`, altered("grid", func(p *pass.Pass) { p.Usage = "round" })},
		{"class", `pass "grid": unknown class "free"`, altered("grid", func(p *pass.Pass) { p.Class = "free" })},
		{"exact without plan", `pass "signs": an exact pass`, altered("signs", func(p *pass.Pass) { p.Plan = nil })},
		{"exact without symmetry", `pass "signs": an exact pass`, altered("signs", func(p *pass.Pass) { p.Symmetry = nil })},
		{"exact without family", `pass "signs": an exact pass`, altered("signs", func(p *pass.Pass) { p.NeedsFamily = false })},
		{"exact compiles", `pass "signs": an exact pass`, altered("signs", func(p *pass.Pass) { p.Compile = pass.Round.Compile })},
		{"exact with candidates", `pass "signs": an exact pass`, altered("signs", func(p *pass.Pass) { p.Candidates = pass.Round.Candidates })},
		{"compensated without plan", `pass "shift": a compensated pass`, altered("shift", func(p *pass.Pass) { p.Plan = nil })},
		{"compensated without compile", `pass "shift": a compensated pass`, altered("shift", func(p *pass.Pass) { p.Compile = nil })},
		{"compensated merges", `pass "shift": a compensated pass`, altered("shift", func(p *pass.Pass) { p.Symmetry = pass.Signs.Symmetry })},
		{"lossy without candidates", `pass "round": a lossy pass`, altered("round", func(p *pass.Pass) { p.Candidates = nil })},
		{"lossy without compile", `pass "round": a lossy pass`, altered("round", func(p *pass.Pass) { p.Compile = nil })},
		{"lossy plans", `pass "round": a lossy pass`, altered("round", func(p *pass.Pass) { p.Plan = plans })},
		{"lossy merges", `pass "round": a lossy pass`, altered("round", func(p *pass.Pass) { p.Symmetry = pass.Signs.Symmetry })},
		{"Hessians without use", `pass "prune": NeedsHessians is set without UsesHessians: set both`, altered("prune", func(p *pass.Pass) { p.UsesHessians = false })},
		{"exact chooses", `pass "signs": only a lossy pass may set Joint`, altered("signs", func(p *pass.Pass) { p.Chooser = true })},
	} {
		t.Run(c.name, func(t *testing.T) { testmodel.WantError(t, c.table.validate(nil), c.want) })
	}
}

func TestValidateFindsEveryConstraintViolated(t *testing.T) {
	for _, c := range constraints {
		swapped := slices.Clone(Passes)
		i, j := swapped.rank(c.first), swapped.rank(c.second)
		if i < 0 || j < 0 {
			t.Fatalf("%+v names an unknown pass", c)
		}
		swapped[i], swapped[j] = swapped[j], swapped[i]
		testmodel.WantError(t, swapped.Validate(), c.first+" must stand before "+c.second+": "+c.reason)
	}
}

func parsed(t *testing.T, list string) []pass.Choice {
	t.Helper()
	c, err := ParsePasses(list)
	testmodel.OK(t, err)
	return c
}

func TestParsePasses(t *testing.T) {
	for list, want := range map[string]string{
		"round=4":                      "round=4",
		" round=4/truncate , reorder ": "reorder,round=4/truncate",
		"round,grid=8,sparsify=2:4,shift=4/epilogue,signs,reorder=tour,scale": "scale,reorder=tour,signs,shift=4/epilogue,sparsify=2:4,grid=8,round",
		"reorder=given//tmp/order.json":                                       "reorder=given//tmp/order.json",
		"sparsify=0.5/16x16":                                                  "sparsify=0.5/16x16",
		"compensate=0.01,trellis=1e-3,prune=0.25":                             "prune=0.25,trellis=1e-3,compensate=0.01",
	} {
		var got []string
		for _, c := range parsed(t, list) {
			got = append(got, c.String())
		}
		if s := strings.Join(got, ","); s != want {
			t.Errorf("%q is %q, want %q", list, s, want)
		}
	}
}

func TestParsePassesRefuses(t *testing.T) {
	for list, want := range map[string]string{
		"":                    `the list of passes has an empty name; the passes are scale, reorder, signs, shift, prune, sparsify, zeros, scales, trellis, grid, round, compensate`,
		"rounding":            `there is no pass "rounding"; the passes are scale, reorder, signs, shift, prune, sparsify, zeros, scales, trellis, grid, round, compensate`,
		"round,round=3":       "pass round is named twice: leave one out",
		"signs=1":             "signs takes no argument: leave out =1",
		"scale=":              `scale=: "" is neither labels nor uncached; usage: scale[=labels|uncached]`,
		"scale=labels/1":      `scale=labels/1: "labels/1" is neither labels nor uncached; usage: scale[=labels|uncached]`,
		"round=":              `round=: "" is not a number of bits from 1 to 23; usage: round[=BITS[/truncate]]`,
		"round=0":             `round=0: "0" is not a number of bits from 1 to 23; usage: round[=BITS[/truncate]]`,
		"round=24":            `round=24: "24" is not a number of bits from 1 to 23; usage: round[=BITS[/truncate]]`,
		"round=4/up":          `round=4/up: only "truncate" may follow the bits; usage: round[=BITS[/truncate]]`,
		"round=4/truncate/1":  `round=4/truncate/1: only "truncate" may follow the bits; usage: round[=BITS[/truncate]]`,
		"grid=0.1":            `grid=0.1: "0.1" is not a number from 0.25 to 2^20; usage: grid[=S]`,
		"grid=NaN":            `grid=NaN: "NaN" is not a number from 0.25 to 2^20; usage: grid[=S]`,
		"grid=4/5":            `grid=4/5: too many arguments; usage: grid[=S]`,
		"shift=100":           `shift=100: "100" is not a number from 0.5 to 64; usage: shift[=S[/epilogue]]`,
		"shift=8/later":       `shift=8/later: only "epilogue" may follow S; usage: shift[=S[/epilogue]]`,
		"sparsify=0":          `sparsify=0: "0" is neither a share above 0 and up to 1 nor 2:4; usage: ` + pass.Sparsify.Usage,
		"sparsify=2:4/3":      `sparsify=2:4/3: "2:4" is neither a share above 0 and up to 1 nor 2:4; usage: ` + pass.Sparsify.Usage,
		"sparsify=0.1/3x3":    `sparsify=0.1/3x3: "3x3" is neither element, runs nor a block RxC with R a power of two up to 64 and C up to 4096; usage: ` + pass.Sparsify.Usage,
		"sparsify=0.1/runs/2": `sparsify=0.1/runs/2: too many arguments; usage: ` + pass.Sparsify.Usage,
		"reorder=random":      `reorder=random: "random" is not an argument of this pass; usage: ` + pass.Reorder.Usage,
		"reorder=window/64":   "reorder=window/64: window/64 is no longer an argument, because the default order saves as much: leave the argument out; usage: " + pass.Reorder.Usage,
		"reorder=greedy":      "reorder=greedy: greedy is no longer an argument, because the default order saves as much: leave the argument out; usage: " + pass.Reorder.Usage,
		"reorder=given":       `reorder=given: "given" is not an argument of this pass; usage: ` + pass.Reorder.Usage,
		"prune=1":             `prune=1: "1" is not a share between 0 and 1; usage: prune=SHARE`,
		"prune=0":             `prune=0: "0" is not a share between 0 and 1; usage: prune=SHARE`,
		"prune=0.1/2":         `prune=0.1/2: too many arguments; usage: prune=SHARE`,
		"trellis=0":           `trellis=0: "0" is not a number above 0 and up to 1000; usage: trellis[=LAMBDA]`,
		"trellis=NaN":         `trellis=NaN: "NaN" is not a number above 0 and up to 1000; usage: trellis[=LAMBDA]`,
		"trellis=1/2":         `trellis=1/2: too many arguments; usage: trellis[=LAMBDA]`,
		"compensate=0":        `compensate=0: "0" is not a number above 0 and up to 1; usage: compensate[=DAMP]`,
		"compensate=2":        `compensate=2: "2" is not a number above 0 and up to 1; usage: compensate[=DAMP]`,
		"compensate=0.1/2":    `compensate=0.1/2: too many arguments; usage: compensate[=DAMP]`,
		"reorder=,round=4":    `reorder=: "" is not an argument of this pass; usage: ` + pass.Reorder.Usage,
	} {
		_, err := ParsePasses(list)
		if err == nil || err.Error() != want {
			t.Errorf("%q: error %v, want %q", list, err, want)
		}
	}
}

func TestOptionsSayEverythingThatIsWrong(t *testing.T) {
	least := -3.0
	o := Options{Budget: pass.Budget{MinSNR: &least}, Passes: parsed(t, "grid,round")}
	testmodel.WantError(t, o.Validate(), "no cost model", "-3 dB: give a number from 0 to 200")
	o = Options{Cost: testmodel.TogglesCost{}, Passes: parsed(t, "grid,round")}
	testmodel.WantError(t, o.Validate(), "grid needs an argument (grid[=S]) or an accuracy budget", "round needs an argument (round[=BITS[/truncate]]) or an accuracy budget")
	snr, nats := 30.0, 0.001
	for passes, c := range map[string]struct {
		budget pass.Budget
		want   string
	}{
		"shift,trellis=0.1":           {pass.Budget{}, "shift and trellis=0.1 cannot be combined"},
		"compensate,grid=8,round=3":   {pass.Budget{}, "compensate needs one pass that chooses all values of a layer together: give only one of grid=8, round=3"},
		"compensate,grid=8,round":     {pass.Budget{MinSNR: &snr}, "give only one of grid=8, round"},
		"trellis,grid=4":              {pass.Budget{MaxLoss: &nats}, "trellis needs one pass that chooses all values of a layer together: give only one of trellis, grid=4"},
		"compensate,round=4/truncate": {pass.Budget{}, "round=4/truncate and compensate cannot be combined: truncated values cannot be compensated: round to nearest"},
		"prune=0.2,round=2":           {pass.Budget{}, "prune=0.2 needs a pass that compensates its errors: give prune=0.2,compensate"},
		"prune":                       {pass.Budget{MinSNR: &snr}, "prune without an argument needs a budget of loss"},
		"prune,trellis":               {pass.Budget{MaxLoss: &nats}, "the search uses prune only together with trellis and compensate"},
		"prune,trellis=1,compensate":  {pass.Budget{MaxLoss: &nats}, "the search uses prune only together with trellis and compensate"},
		"trellis,sparsify=0.2":        {pass.Budget{MaxLoss: &nats}, "the search does not try sparsify=0.2 with every lambda of trellis: give trellis an argument (trellis[=LAMBDA])"},
		"compensate":                  {pass.Budget{MaxLoss: &nats}, "a budget of loss needs a pass that can spend it"},
		"trellis":                     {pass.Budget{MaxLoss: &nats, MinSNR: &snr}, "not both"},
	} {
		o := Options{Cost: testmodel.TogglesCost{}, Passes: parsed(t, passes), Tokens: &Tokens{}, Budget: c.budget}
		testmodel.WantError(t, o.Validate(), c.want)
	}
	for passes, budget := range map[string]pass.Budget{
		"grid=8,round=3":                  {},
		"compensate,grid,round":           {MinSNR: &snr}, // only one of the two is used
		"compensate,sparsify=0.2,round=3": {},
		"prune,trellis,compensate":        {MaxLoss: &nats},
		"prune=0.2,round=2,compensate":    {},
	} {
		o := Options{Cost: testmodel.TogglesCost{}, Passes: parsed(t, passes), Tokens: &Tokens{}, Budget: budget}
		if err := o.Validate(); err != nil {
			t.Errorf("%s: %v", passes, err)
		}
	}
	o = Options{Cost: testmodel.TogglesCost{}, Passes: parsed(t, "trellis,compensate"), Budget: pass.Budget{MaxLoss: &nats}}
	testmodel.WantError(t, o.Validate(), "a budget of loss is measured on tokens", "compensate needs the layers' inputs")
}
