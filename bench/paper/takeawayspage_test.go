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

// firstRules lists the results by the first rules, at commit 4aa9f74, of the measurements of 2026-11-21, with the result that the
// reason for a change explains.
var firstRules = []struct{ id, result, now, why string }{
	{"T1", "holds except in int8-2048-both; undecided in 9 of 15", "holds; undecided in 10 of 15",
		"The range of five energies was tested like the difference of two. With intervals for all ten pairs, INT8's range may be chance."},
	{"T2", "holds; undecided in 1 of 13", "holds",
		"The largest means made most elements equal. At means that keep elements random the savings are smaller. Every series has such a mean. " + completed},
	{"T3", "holds; undecided in 1 of 14", "holds", completed},
	{"T4", "holds", "", ""},
	{"T5", "holds", "", ""},
	{"T6", "holds", "", ""},
	{"T7", "does not hold", "holds",
		"Types were compared at different clocks and on different cards. At one clock, on the one card that measured all four, FP16 draws most."},
	{"T8", "holds", "", ""},
	{"T9", "holds except in fp32-2048-both; undecided in 2 of 6", "holds except in fp32-2048-both; undecided in 3 of 9", completed},
	{"T10", "holds", "", ""},
	{"T11", "holds; undecided in 1 of 12", "holds; undecided in 1 of 15", completed},
	{"T12", "holds", "", ""},
	{"T13", "holds; undecided in 2 of 12", "holds; undecided in 4 of 15",
		"The highest of five energies was tested as if it were the only one. Two small rises may be chance. " + completed},
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
	p.head("", "takeaway", "result by the first rules", "result now", "change of energy now", "why the result changed")
	for i, j := range p.assessed {
		was := firstRules[i]
		if was.now == "" {
			was.now, was.why = was.result, unknown
		}
		if was.id != j.ID || was.now != j.Verdict {
			t.Errorf("%s: the result is %q, and %s is explained as %q: explain what changed", j.ID, j.Verdict, was.id, was.now)
		}
		p.row(j.ID, j.Claim, was.result, "**"+j.Verdict+"**", j.Overall(), was.why)
	}
	p.print(takeawaysNotes, p.effectOf(t, "T7", fp16()).Where,
		p.energyOf(t, "T3", arith.FP16, experiment.Both, cost.Stationary), p.energyOf(t, "T3", arith.FP16, experiment.Weights, cost.Streaming),
		p.energyOf(t, "T3", arith.FP16, experiment.Weights, cost.Stationary), incomplete(series), seedsOfMain(results))
	p.head("dtype", "size", "weights stationary", "weights streaming")
	for _, roles := range runsOfRows(probes) {
		s := roles[cost.Stationary]
		p.row(strings.ToUpper(s.Setup.Type.String()), fmt.Sprintf("%d³", s.Setup.M), s.cell(roles[cost.Streaming]), roles[cost.Streaming].cell(s))
	}
	p.print(takeawaysEnd)
	goldenfile.Same(t, filepath.Join(docs, "takeaways.md"), p.Bytes())
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

// energyOf returns the energy saved in a series of 2048³ if both operands change, else 8192³, in whole per cent.
func (p *page) energyOf(t *testing.T, id string, typ arith.Type, change experiment.Change, role cost.Role) string {
	t.Helper()
	for _, s := range p.all {
		if s.Type == typ && s.Change == change && s.Role == role {
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
	case least < most:
		return fmt.Sprintf("%d to %d seeds", least, most)
	case most == 1:
		return "one seed"
	}
	return fmt.Sprintf("%d seeds", most)
}

// ofRuns is the energy of weights whose rows come in runs of four equal ones.
type ofRuns struct {
	experiment.Setup
	energy experiment.Result
}

// cell is bold if the energy is lower than in the other role by more than the intervals.
func (o ofRuns) cell(other ofRuns) string {
	text := within(o.energy.Relative, o.energy.HalfWidth)
	if other.energy.Relative-o.energy.Relative > math.Hypot(o.energy.HalfWidth, other.energy.HalfWidth) {
		text = "**" + text + "**"
	}
	return text
}

// runsOfRows finds the types and sizes that probes have measured in both roles, in the order of the page.
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
values. The paper states fifteen takeaways. ` + "`lowtoggle reproduce`" + ` repeats their experiments. This page has
the results on H200s, in up to %d series of one dtype, size and role. For every point, rule and figure,
and for the missing measurements, see [reproduce.md](reproduce.md).

A rule decides whether a takeaway holds in a series. The rules were corrected. Some of the first rules tested the largest of several
changes as if it were the only change. Other rules compared means or clocks that are not comparable. The first rules were applied to the
series of 2026-11-21.

`

const takeawaysNotes = `
The result of T7 is the mean power in Figure 4 at one clock: %s.

The rules compare energy, because a card at its power cap shows a saving as time and not as
power. The role of an operand matters as much as its pattern. In FP16 one value for all elements of both operands saves %s %% of
energy. One value for all streaming weights saves %s %% of energy, and one value for all stationary weights %s %%.

The results have three limits:

- A matrix on this page has the rows of the paper's text. The paper's program stores matrices by columns, so the program's
  sorted operands differ from the text. This difference affects T8 to T11 and T13.
- Some series lack points from one seed: %s.
- The main points decide the rules. Each main point is drawn from %s; the paper used ten seeds. Intervals of one or two seeds cover the drawn
  operands alone. No interval includes the spread between cards.

## Which operand streams?

cuBLASLt decides which operand streams through the multipliers, and the choice depends on the dtype.
The table has the energy of weights whose rows come in runs of four equal rows, relative to random weights.
The operand x is random (` + "`bench/results/h200/probes`" + `). Equal neighbours save energy only in the operand that streams:

`
const takeawaysEnd = `
In BF16 and FP16 the operand called *streaming* streams. In FP8, INT8 and FP32 the operand called *stationary*
streams. The *stationary* operand holds a linear layer's weights.
`
