package paper

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/bench/experiment"
)

// Page returns the report as Markdown, the file report.md, and then its figures. The report links to the figures in
// folder: "" is its own folder, else a path that ends with a slash. Errors are those of [Figures].
func Page(ctx context.Context, series []*experiment.Series, folder string) ([]File, error) {
	series = slices.Clone(series)
	slices.SortFunc(series, func(a, b *experiment.Series) int { return compareSetups(a.Setup, b.Setup) })
	var results []Result
	for _, s := range series {
		results = append(results, Results(s)...)
	}
	figures, err := Figures(ctx, results)
	if err != nil {
		return nil, err
	}
	p := page{series: series, all: bySetup(results), assessed: Assess(results)}
	p.print("# What did each experiment of \"Input-Dependent Power Usage in GPUs\" give?\n\n%s\n", intro)
	p.measured()
	p.takeaways()
	p.remaining()
	p.print("\n## Figures\n\n%s", figureNotes)
	for _, f := range figures {
		name := strings.TrimSuffix(strings.ReplaceAll(f.Name, "-", " "), ".svg")
		p.print("\n![%s](%s%s)\n", strings.ToUpper(name[:1])+name[1:], folder, f.Name)
	}
	p.effects()
	p.points()
	return append([]File{{"report.md", p.Bytes()}}, figures...), nil
}

const intro = `Gregersen, Patel and Choukse (SC'24 workshops) measured how the power of matrix products (GEMMs) on an A100 depends on the
values of the matrices. They stated the takeaways T1 to T15. This page repeats their experiments. Energy is relative to a
GEMM of normal operands (σ = 1024; 32 in FP8 and INT8), with 95 % intervals. At the power cap, a saving shortens the time and
does not change the power. So energy decides whether a takeaway holds. The page gives power, too.

GEMMs are x·wᵀ: x is the paper's A, and w is the paper's B transposed. The rows of x and w run along K. In series that change
only the weights, w has the pattern of A and x is normal. Experiment 5b then equals 5a and is left out. Operands whose
GEMM could overflow were divided by a power of two. This division changes only exponents, except for elements that
become subnormal or zero. Patterns are drawn from one seed if no number of seeds is given; the paper used ten seeds. Intervals
of one or two seeds cover the readings of the drawn operands. From three seeds on, intervals also cover the choice of the seed.

*Rows* are the rows in the paper's text. The paper's published program stores matrices by columns, so a row of
the program's patterns is one position along K. In 5b and 6b the program sorts both operands along M and N first, and in 5d
along M and N only. The program's 5a is 5c on this page, and the program's 5c is 5b.`

const figureNotes = `Colours show dtypes. Markers and dashes show the shape, the role and the changed operands. In figure 8, each point at 128×128
has new operands, so the points scatter, as in the paper.
`

// page is the report under construction.
type page struct {
	bytes.Buffer
	series   []*experiment.Series
	all      []setupResults
	assessed []Assessment
}

func (p *page) print(format string, args ...any) { fmt.Fprintf(p, format, args...) }

// row prints a row of a table.
func (p *page) row(cells ...string) { p.print("| %s |\n", strings.Join(cells, " | ")) }

// head prints the head of a table.
func (p *page) head(cells ...string) {
	p.row(cells...)
	p.print("|%s\n", strings.Repeat("---|", len(cells)))
}

// takeaways prints the table of takeaways.
func (p *page) takeaways() {
	p.print("\n## Takeaways\n\n")
	p.head("", "the paper", "its measurement, A100", "here, over all setups", "holds if", "result")
	for _, j := range p.assessed {
		p.row(j.ID, j.Claim, j.Paper, j.Overall(), j.Rule, "**"+j.Verdict+"**")
	}
	p.print(rules, randomMeans())
}

const rules = `
A takeaway holds or fails in a series if the 95 %% interval decides it. Otherwise it is undecided.

- If a takeaway holds in some series, a failure in another series needs an interval corrected for the number of series (Bonferroni).
- T1 and T13 use the largest of several changes. Their intervals are in brackets. The low end is corrected for the
  number of changes (Bonferroni). The high end needs no correction.
- T2 uses the largest mean at which the spacing of the type is at most half of σ = 1. An element then has about three random bits.
  These means are %s.
  At larger means most elements become equal. T3 is about equal elements.
- T7 compares the types on one card and at one clock, the highest measured. A card may lower the clock even below the power cap.
  H200s do so in FP16 on tensor cores. So the power above idle is converted to the highest clock. If the voltage stays constant,
  this power is multiplied by the ratio of the clocks. If the voltage rises in proportion, the factor is the ratio's third power.
  The page gives the range between these two cases. T7 holds only if the low end is above the high ends of the other types. T7
  fails only in intervals that are corrected for the three comparisons.
`

// randomMeans lists the means of T2.
func randomMeans() string {
	types := map[float64][]string{}
	for _, s := range Setups() {
		if mean := randomMean(s.Type); mean > 0 {
			types[mean] = with(types[mean], s.Type.String())
		}
	}
	var list []string
	for _, mean := range slices.Sorted(maps.Keys(types)) {
		list = append(list, fmt.Sprintf("%v in %s", mean, strings.Join(types[mean], ", ")))
	}
	return strings.Join(list, "; ")
}

// effects prints, for all setups under the same conditions, a table of takeaways by type.
func (p *page) effects() {
	p.print(`
## Effects

Each cell is the change of energy in per cent with its 95 %% interval, and the change of power in parentheses. A bold cell
means that the takeaway does not hold. T1 is the largest difference between two energies, T13 the largest rise of energy.
`)
	setups := setupsOf(p.all)
	for _, w := range allConditions(setups) {
		p.print("\n### Effects at %v\n\n", w)
		cells := []string{""}
		for _, s := range setups {
			if conditionsOf(s) == w {
				cells = append(cells, s.Type.String())
			}
		}
		p.head(cells...)
		for _, j := range p.assessed {
			cells := []string{j.ID}
			for _, s := range setups {
				if conditionsOf(s) == w {
					cells = append(cells, effectCell(j.Effects, s))
				}
			}
			p.row(cells...)
		}
	}
}

// points prints every measured point, a table for every setup.
func (p *page) points() {
	p.print("\n## Points\n\nEach entry gives the place of a point on the axis of its experiment, and the relative energy of the point.\n")
	for _, s := range p.all {
		p.print("\n### Points of %v\n\n", s.Setup)
		p.head("experiment", "axis", "energy")
		var lost Result
		for _, e := range experiments {
			var places []string
			for _, r := range s.of[e.ID] {
				places = append(places, fmt.Sprintf("%v: %s", r.X, within(r.Relative, r.HalfWidth))+seeds(r.Seeds))
				if r.Flushed > lost.Flushed {
					lost = r
				}
			}
			if places != nil {
				p.row(e.ID+" "+e.Title, e.Axis, strings.Join(places, "; "))
			}
		}
		if lost.Flushed > 0 {
			p.print("\nThe division by a power of two set at most %.2g %% of a point's elements to zero (experiment %s at %v).\n", 100*lost.Flushed, lost.Experiment, lost.X)
		}
	}
}
