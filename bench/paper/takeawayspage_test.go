package paper

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/bench/experiment"
	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/internal/goldenfile"
)

const completed = "The measurements of both operands at 8192³ were completed on 2026-11-24."

// firstRules lists each takeaway's result by the first rules (commit 4aa9f74, measurements of 2026-11-21), its present result, and the
// reason for the change.
var firstRules = []struct{ id, result, now, why string }{
	{"T1", "holds except in int8-2048-both; undecided in 9 of 15", "holds; undecided in 10 of 15",
		"The first rule tested the range of five energies as if it were the difference between two given energies. With intervals for all ten pairs, the range in INT8 may be due to chance."},
	{"T2", "holds; undecided in 1 of 13", "holds",
		"The first rule used means so large that most elements became equal. At means that keep elements random, savings are smaller. " + completed},
	{"T3", "holds; undecided in 1 of 14", "holds", completed},
	{"T4", "holds", "", ""},
	{"T5", "holds", "", ""},
	{"T6", "holds", "", ""},
	{"T7", "does not hold", "holds",
		"The first rule compared dtypes at different clocks and on different cards. At one clock, on the one card that measured all four dtypes, FP16 draws the most power."},
	{"T8", "holds", "", ""},
	{"T9", "holds except in fp32-2048-both; undecided in 2 of 6", "holds except in fp32-2048-both; undecided in 3 of 9", completed},
	{"T10", "holds", "", ""},
	{"T11", "holds; undecided in 1 of 12", "holds; undecided in 1 of 15", completed},
	{"T12", "holds", "", ""},
	{"T13", "holds; undecided in 2 of 12", "holds; undecided in 4 of 15",
		"The first rule tested the highest of five energies as if it were the only energy. Two small rises may be due to chance. " + completed},
	{"T14", "holds", "", ""},
	{"T15", "holds", "", ""},
}

// TestTakeawaysPage checks that docs/takeaways.md agrees with the recorded measurements.
func TestTakeawaysPage(t *testing.T) {
	series, err := experiment.LoadFolder(recorded)
	if err != nil {
		t.Fatal(err)
	}
	probes, err := experiment.LoadFolder("../results/h200/probes")
	if err != nil {
		t.Fatal(err)
	}
	var results []Result
	for _, s := range series {
		results = append(results, Results(s)...)
	}
	p := page{all: bySetup(results), assessed: Assess(results)}
	p.print(takeawaysIntro, len(p.all))
	p.head("", "takeaway", "result by the first rules", "result by the corrected rules", "change of energy, all series", "reason for the change")
	for i, j := range p.assessed {
		was := firstRules[i]
		if was.now == "" {
			was.now, was.why = was.result, unknown
		}
		was.result, was.now = ofSeries(was.result), ofSeries(was.now)
		if was.id != j.ID || was.now != j.Verdict {
			t.Errorf("%s: the result is %q, and %s is explained as %q: explain what changed", j.ID, j.Verdict, was.id, was.now)
		}
		p.row(j.ID, j.Claim, was.result, "**"+j.Verdict+"**", j.Overall(), was.why)
	}
	p.print(takeawaysNotes, p.effectOf(t, "T7", fp16()).Where,
		p.energyOf(t, "T3", arith.FP16, experiment.Both, cost.Stationary), p.energyOf(t, "T3", arith.FP16, experiment.Weights, cost.Streaming),
		p.energyOf(t, "T3", arith.FP16, experiment.Weights, cost.Stationary), incomplete(series), seedsOfMain(results))
	p.head("dtype", "size", "weights as the A operand (stationary)", "weights as the B operand (streaming)")
	for _, roles := range runsOfRows(probes) {
		s := roles[cost.Stationary]
		p.row(strings.ToUpper(s.Setup.Type.String()), fmt.Sprintf("%d³", s.Setup.M), s.cell(roles[cost.Streaming]), roles[cost.Streaming].cell(s))
	}
	p.print(takeawaysEnd)
	goldenfile.Same(t, filepath.Join(docs, "takeaways.md"), p.Bytes())
}

// ofSeries adds the unit to a result that counts undecided series.
func ofSeries(result string) string {
	if strings.Contains(result, "undecided in ") {
		return result + " series"
	}
	return result
}

func (p *page) effectOf(t *testing.T, id string, s experiment.Setup) Effect {
	t.Helper()
	for _, j := range p.assessed {
		if i := slices.IndexFunc(j.Effects, func(e Effect) bool { return e.Setup == s }); j.ID == id && i >= 0 {
			return j.Effects[i]
		}
	}
	t.Fatalf("%s has no effect in %v", id, s)
	return Effect{}
}

// energyOf returns the saving of energy in the series of a type, change and role at 8192³, in whole per cent.
func (p *page) energyOf(t *testing.T, id string, typ arith.Type, change experiment.Change, role cost.Role) string {
	t.Helper()
	for _, s := range p.all {
		if s.Type == typ && s.M == 8192 && s.Change == change && s.Role == role {
			return fmt.Sprintf("%.0f", -100*p.effectOf(t, id, s.Setup).Energy)
		}
	}
	t.Fatalf("no series of %v", typ)
	return ""
}

// incomplete returns a list item about series that lack points.
func incomplete(series []*experiment.Series) string {
	var list []string
	for _, s := range series {
		job := Job(s.Setup, Points{})
		if n := len(s.Missing(job, 1)); n > 0 {
			list = append(list, fmt.Sprintf("%v lacks %d of %d", s, n, len(s.Missing(job, math.MaxInt))))
		}
	}
	return strings.Join(list, ", ")
}

// seedsOfMain returns text with the numbers of seeds of the main points.
func seedsOfMain(results []Result) string {
	least, most := math.MaxInt, 0
	for _, r := range results {
		e := experiments[slices.IndexFunc(experiments, func(e Experiment) bool { return e.ID == r.Experiment })]
		if slices.Contains(e.Main(r.Setup.Type), r.X) {
			least, most = min(least, r.Seeds), max(most, r.Seeds)
		}
	}
	switch {
	case least+1 == most:
		return fmt.Sprintf("%d or %d seeds", least, most)
	case least < most:
		return fmt.Sprintf("%d to %d seeds", least, most)
	case most == 1:
		return "one seed"
	}
	return fmt.Sprintf("%d seeds", most)
}

// ofRuns is the energy of weights in which every four neighbouring rows are equal.
type ofRuns struct {
	experiment.Setup
	energy experiment.Result
}

// cell returns the energy as a cell of a table. The cell is bold if the energy is lower than in the other role by more than the
// joint 95 % interval.
func (o ofRuns) cell(other ofRuns) string {
	text := within(o.energy.Relative, o.energy.HalfWidth)
	if other.energy.Relative-o.energy.Relative > math.Hypot(o.energy.HalfWidth, other.energy.HalfWidth) {
		text = "**" + text + "**"
	}
	return text
}

// runsOfRows returns the energies by role for each dtype, in the order of the page.
func runsOfRows(probes []*experiment.Series) (list []map[cost.Role]ofRuns) {
	for _, typ := range []arith.Type{arith.BF16, arith.FP16, arith.FP8, arith.INT8, arith.FP32} {
		roles := map[cost.Role]ofRuns{}
		for _, s := range probes {
			for _, r := range s.Results() {
				if s.Type == typ && s.M == s.N && !s.Cold && strings.HasSuffix(r.W.String(), "| repeat(rows=4)") {
					roles[s.Role] = ofRuns{s.Setup, r}
				}
			}
		}
		list = append(list, roles)
	}
	return list
}

const takeawaysIntro = `# Do the findings of "Input-Dependent Power Usage in GPUs" hold on H200s?

Gregersen, Patel and Choukse (SC'24 workshops) measured on an A100 how the power of GEMMs depends on the operands'
values. The paper states fifteen takeaways. ` + "`lowtoggle reproduce`" + ` repeats the paper's experiments. This
page has the results on H200s, in up to %d series. Each series has one dtype, one size, and the experiment's pattern in both operands
or only in the weights.
[reproduce.md](reproduce.md) has every point, rule and figure, and lists the missing measurements.

A statistical rule decides whether a takeaway holds in a series. The first rules, used for the series of 2026-11-21, had
mistakes. Some rules tested the largest of several changes as if it were the only change. The rule of T2 used means that make most
elements equal, and the rule of T7 compared power at different clocks. The table has the results by the first and by the corrected
rules. Series such as fp32-2048-both are named by dtype, size and the operands that have the pattern.

`

const takeawaysNotes = `
T7 compares the mean power in Figure 4 %s. The range of FP16 is explained in
[reproduce.md](reproduce.md#takeaways).

The rules of all other takeaways compare energy. At the power cap, a pattern that needs less energy shortens the GEMM and leaves its
power unchanged. The place of an operand in the GEMM matters as much as its pattern. In FP16 at 8192³, one value for all elements
of both operands saves %s %% of energy. One value for all weights saves %s %% in the B operand of cuBLAS (*streaming*),
and %s %% in the A operand (*stationary*).

The results have three limits:

- Rows on this page are rows in the paper's text. The paper's program stores matrices by columns, so its sorted operands differ from
  the text. This difference affects T8 to T11 and T13.
- Points are missing: %s.
- The [main points](reproduce.md#what-remains) were drawn from %s each; the paper used ten seeds. Intervals of one or two
  seeds cover repeated readings of the drawn operands alone. No interval includes the differences between cards.

## Which operand streams?

Inside a GEMM, one operand stays in the multipliers while the other streams through them. cuBLASLt chooses the streaming operand by dtype.
Groups of four equal rows save energy only in the operand that streams. So the next table shows the choice of cuBLASLt. The cells are
energies of weights in which every four neighbouring rows are equal, relative to random weights. An energy is bold if it is lower than
in the other role by more than the 95 %% interval. The operand x is random (` + "`bench/results/h200/probes`" + `).

`
const takeawaysEnd = `
In BF16 and FP16, the B operand of cuBLAS (named *streaming* here) streams. In FP8, INT8 and FP32, the A operand (named *stationary*)
streams. Linear layers put their weights into the A operand.
`
