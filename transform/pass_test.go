package transform

import (
	"context"
	"slices"
	"strings"
	"testing"
)

func TestPassesAreValid(t *testing.T) { ok(t, Validate()) }

// altered is the table with one pass changed.
func altered(pass string, change func(*Pass)) []*Pass {
	list := slices.Clone(Passes)
	for i, p := range list {
		if p.Name == pass {
			q := *p
			change(&q)
			list[i] = &q
		}
	}
	return list
}

func TestValidateFindsBrokenTables(t *testing.T) {
	plan := func(context.Context, *planner, []string) error { return nil }
	for _, c := range []struct {
		name, want string
		passes     []*Pass
	}{
		{"no name", `the name "" is empty or taken`, altered("grid", func(p *Pass) { p.Name = "" })},
		{"name twice", `the name "round" is empty or taken`, altered("grid", func(p *Pass) { p.Name, p.Usage = "round", "round" })},
		{"no doc", "pass grid: lacks its documentation", altered("grid", func(p *Pass) { p.Doc = "" })},
		{"usage of another", "pass grid: lacks its documentation", altered("grid", func(p *Pass) { p.Usage = "round" })},
		{"class", `pass grid: unknown class "free"`, altered("grid", func(p *Pass) { p.Class = "free" })},
		{"exact without plan", "pass signs: an exact pass", altered("signs", func(p *Pass) { p.plan = nil })},
		{"exact without merge", "pass signs: an exact pass", altered("signs", func(p *Pass) { p.merge = nil })},
		{"exact without family", "pass signs: an exact pass", altered("signs", func(p *Pass) { p.NeedsFamily = false })},
		{"exact compiles", "pass signs: an exact pass", altered("signs", func(p *Pass) { p.compile = roundPass.compile })},
		{"exact with candidates", "pass signs: an exact pass", altered("signs", func(p *Pass) { p.candidates = roundPass.candidates })},
		{"compensated without plan", "pass shift: a compensated pass", altered("shift", func(p *Pass) { p.plan = nil })},
		{"compensated without compile", "pass shift: a compensated pass", altered("shift", func(p *Pass) { p.compile = nil })},
		{"compensated merges", "pass shift: a compensated pass", altered("shift", func(p *Pass) { p.merge = signsPass.merge })},
		{"lossy without candidates", "pass round: a lossy pass", altered("round", func(p *Pass) { p.candidates = nil })},
		{"lossy without compile", "pass round: a lossy pass", altered("round", func(p *Pass) { p.compile = nil })},
		{"lossy plans", "pass round: a lossy pass", altered("round", func(p *Pass) { p.plan = plan })},
		{"inputs without use", "pass prune: needs inputs and does not use them", altered("prune", func(p *Pass) { p.UsesInputs = false })},
		{"lossy merges", "pass round: a lossy pass", altered("round", func(p *Pass) { p.merge = signsPass.merge })},
	} {
		t.Run(c.name, func(t *testing.T) { wantError(t, validate(c.passes, nil), c.want) })
	}
}

func TestValidateFindsEveryConstraintViolated(t *testing.T) {
	for _, c := range constraints {
		at := func(name string) int { return slices.IndexFunc(Passes, func(p *Pass) bool { return p.Name == name }) }
		swapped := slices.Clone(Passes)
		i, j := at(c.first), at(c.second)
		swapped[i], swapped[j] = swapped[j], swapped[i]
		want := c.first + " must stand before " + c.second + ": " + c.reason
		wantError(t, validate(swapped, constraints), want)
		missing := slices.Delete(slices.Clone(Passes), i, i+1)
		wantError(t, validate(missing, constraints), want)
	}
}

func TestParsePasses(t *testing.T) {
	for list, want := range map[string]string{
		"round=4":                      "round=4",
		" round=4/truncate , reorder ": "reorder,round=4/truncate",
		"round,grid=8,sparsify=2:4,shift=4/epilogue,signs,reorder=window/64,scale": "scale,reorder=window/64,signs,shift=4/epilogue,sparsify=2:4,grid=8,round",
		"reorder=given//tmp/order.json":                                            "reorder=given//tmp/order.json",
		"sparsify=0.5/16x16":                                                       "sparsify=0.5/16x16",
		"compensate=0.01,trellis=1e-3,prune=0.25":                                  "prune=0.25,trellis=1e-3,compensate=0.01",
	} {
		var got []string
		for _, c := range choices(t, list) {
			got = append(got, c.String())
		}
		if s := strings.Join(got, ","); s != want {
			t.Errorf("%q is %q, want %q", list, s, want)
		}
	}
}

func TestParsePassesRefuses(t *testing.T) {
	for list, want := range map[string]string{
		"":                    `there is no pass ""; the passes are scale, reorder, signs, shift, prune, sparsify, trellis, grid, round, compensate`,
		"rounding":            `there is no pass "rounding"; the passes are scale, reorder, signs, shift, prune, sparsify, trellis, grid, round, compensate`,
		"round,round=3":       "pass round is named twice",
		"signs=1":             "signs takes no argument",
		"scale=":              `scale=: [""] is not labels; usage: scale[=labels]`,
		"scale=labels/1":      `scale=labels/1: ["labels" "1"] is not labels; usage: scale[=labels]`,
		"round=":              `round=: "" is no number of bits from 1 to 23; usage: round[=BITS[/truncate]]`,
		"round=0":             `round=0: "0" is no number of bits from 1 to 23; usage: round[=BITS[/truncate]]`,
		"round=24":            `round=24: "24" is no number of bits from 1 to 23; usage: round[=BITS[/truncate]]`,
		"round=4/up":          `round=4/up: only "truncate" may follow the bits; usage: round[=BITS[/truncate]]`,
		"round=4/truncate/1":  `round=4/truncate/1: only "truncate" may follow the bits; usage: round[=BITS[/truncate]]`,
		"grid=0.1":            `grid=0.1: "0.1" is no number from 0.25 to 2^20; usage: grid[=S]`,
		"grid=NaN":            `grid=NaN: "NaN" is no number from 0.25 to 2^20; usage: grid[=S]`,
		"grid=4/5":            `grid=4/5: too many arguments; usage: grid[=S]`,
		"shift=100":           `shift=100: "100" is no number from 0.5 to 64; usage: shift[=S[/epilogue]]`,
		"shift=8/later":       `shift=8/later: only "epilogue" may follow; usage: shift[=S[/epilogue]]`,
		"sparsify=0":          `sparsify=0: "0" is neither a share above 0 and up to 1 nor 2:4; usage: ` + sparsifyPass.Usage,
		"sparsify=2:4/3":      `sparsify=2:4/3: "2:4" is neither a share above 0 and up to 1 nor 2:4; usage: ` + sparsifyPass.Usage,
		"sparsify=0.1/3x3":    `sparsify=0.1/3x3: "3x3" is neither element, runs nor a block RxC with R a power of two up to 64 and C up to 4096; usage: ` + sparsifyPass.Usage,
		"sparsify=0.1/runs/2": `sparsify=0.1/runs/2: too many arguments; usage: ` + sparsifyPass.Usage,
		"reorder=random":      `reorder=random: ["random"] is no way to order; usage: ` + reorderPass.Usage,
		"reorder=window":      `reorder=window: ["window"] is no way to order; usage: ` + reorderPass.Usage,
		"reorder=window/0":    `reorder=window/0: ["window" "0"] is no way to order; usage: ` + reorderPass.Usage,
		"reorder=greedy/fast": `reorder=greedy/fast: ["greedy" "fast"] is no way to order; usage: ` + reorderPass.Usage,
		"reorder=given":       `reorder=given: ["given"] is no way to order; usage: ` + reorderPass.Usage,
		"prune=1":             `prune=1: "1" is no share between 0 and 1; usage: prune=SHARE`,
		"prune=0":             `prune=0: "0" is no share between 0 and 1; usage: prune=SHARE`,
		"prune=0.1/2":         `prune=0.1/2: too many arguments; usage: prune=SHARE`,
		"trellis=0":           `trellis=0: "0" is no number above 0 and up to 1000; usage: trellis[=LAMBDA]`,
		"trellis=NaN":         `trellis=NaN: "NaN" is no number above 0 and up to 1000; usage: trellis[=LAMBDA]`,
		"trellis=1/2":         `trellis=1/2: too many arguments; usage: trellis[=LAMBDA]`,
		"compensate=0":        `compensate=0: "0" is no number above 0 and up to 1; usage: compensate[=DAMP]`,
		"compensate=2":        `compensate=2: "2" is no number above 0 and up to 1; usage: compensate[=DAMP]`,
		"compensate=0.1/2":    `compensate=0.1/2: too many arguments; usage: compensate[=DAMP]`,
		"reorder=,round=4":    `reorder=: [""] is no way to order; usage: ` + reorderPass.Usage,
	} {
		_, err := ParsePasses(list)
		if err == nil || err.Error() != want {
			t.Errorf("%q: error %v, want %q", list, err, want)
		}
	}
}

func TestOptionsSayEverythingThatIsWrong(t *testing.T) {
	least := -3.0
	o := Options{MinSNR: &least, Passes: choices(t, "grid,round")}
	wantError(t, o.Validate(), "no cost model", "-3 dB is not within 0 and 200")
	o = options(t, "grid,round", 0)
	wantError(t, o.Validate(), "grid needs an argument (grid[=S]) or a budget", "round needs an argument (round[=BITS[/truncate]]) or a budget")
}
