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

const intro = `Gregersen, Patel and Choukse (SC'24 workshops) measured on an A100 how the power of matrix products (GEMMs) depends on the
matrices' values. They stated the takeaways T1 to T15. ` + "`lowtoggle reproduce`" + ` repeats their experiments on other cards.
Energy is relative to a GEMM of *normal operands*, with 95 % intervals. The values of normal operands are normally distributed, with mean
0 and σ = 1024 (32 in FP8 and INT8). At the power cap, a pattern that needs less energy shortens the GEMM and leaves its power
unchanged. So energy decides whether a takeaway holds, except in T7, which is about power. The page also gives power.

Each *series* has one setup: the dtype, the size, and the operands that have the experiment's pattern. The pattern is in both operands,
x and w, or only in the weights w. *Stationary* means that w is the A operand of the cuBLAS call, where linear layers put their weights.
*Streaming* means that w is the B operand. For example, the setup bf16-8192-streaming has BF16 GEMMs of 8192³, the pattern only in w,
and w as the B operand. The dtype fp16-cuda is FP16 without tensor cores.

GEMMs are x·wᵀ: x is the paper's A, and w is the paper's B transposed. The rows of x and w run along K. In series that change only the
weights, w has the pattern of the paper's A, and x is normal with σ = 1 (32 in FP8). In these series, 5b equals 5a and is left out.
Operands whose GEMM could overflow were divided by a power of two. This division changes only exponents, except for elements that
become subnormal or zero. A point without a number of seeds was drawn from one seed; the paper used ten seeds. Intervals
of one or two seeds cover repeated readings of the drawn operands. From three seeds on, intervals also cover the choice of the seed.

In 5a, the sorted values run along K in x and along N in w. In 5b (*sorted and aligned*), they run along K in both operands.
*Rows* on this page are the rows in the paper's text. The paper's published program stores matrices by columns: its rows hold the
elements of one index along K. The program's experiments therefore differ from the text. In the program's 5b and 6b, sorted values run
along M in x and along N in w. The program's 5d sorts only along M or N. The program's 5a is 5c on this page, and the program's 5c is 5b.`

const figureNotes = `Colours show dtypes. Markers and dashes show the size, and the operands that have the pattern. Figure 8 shows energy
against bit alignment, the share of equal bits in two elements that are multiplied, and against Hamming weight, the share of set bits.
Both come from operands of 128×128, drawn from each point's pattern. The points of Figure 8 scatter, as in the paper.
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
	p.head("", "takeaway of the paper", "energy in the paper, A100", "change of energy here, over all setups", "holds if", "result")
	for _, j := range p.assessed {
		p.row(j.ID, j.Claim, j.Paper, j.Overall(), j.Rule, "**"+j.Verdict+"**")
	}
	p.print(rules, randomMeans())
}

const rules = `
The paper's figures without a dtype are for FP16 on tensor cores and come from the paper's published logs.

In a series, a takeaway holds if its whole 95 %% interval satisfies the rule, and fails if no part of the interval does. Otherwise the
takeaway is undecided.

- A takeaway fails in a series only if it also fails in an interval that is corrected for the number of series (Bonferroni).
- T1 and T13 use the largest of several changes. In the tables of [Effects](#effects), their intervals are in square brackets. The
  low end is corrected for the number of changes (Bonferroni). The high end needs no correction.
- T2 uses the largest measured mean at which neighbouring values of the dtype differ by at most σ/2 (σ = 1):
  %s.
  At larger means most elements become equal, and T3 already tests equal elements.
- T7 compares the dtypes on one card and at one clock, the highest measured. A card may lower the clock even if its power is below the
  cap, as H200s do in FP16 on tensor cores. So the power above idle is converted to the highest measured clock. If the voltage is
  constant, the conversion factor is the ratio of the clocks. If the voltage rises in proportion to the clock, the factor is the third
  power of this ratio. The tables give the range between these two cases. T7 holds only if the low end of FP16 is above the high ends
  of all other dtypes. The intervals that decide whether T7 fails are corrected for the three comparisons.
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

// effects prints a table of takeaways by dtype for each size and choice of operands.
func (p *page) effects() {
	p.print(`
## Effects

Each cell has the change of energy in per cent with its 95 %% interval. The change of power in per cent is in parentheses. The cell of
T7 has only power. In bold cells the takeaway does not hold. The cell of T1 has the largest difference between two energies. The cell
of T13 has the largest rise of energy at any share of zeros.
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

// points prints all measured points, with a table for each setup.
func (p *page) points() {
	p.print("\n## Points\n\nEach entry gives a point's value on the axis of its experiment, and the point's energy relative to normal operands.\n")
	for _, s := range p.all {
		p.print("\n### Points of %v\n\n", s.Setup)
		p.head("experiment", "axis", "energy")
		var lost Result
		axis := ""
		for _, e := range experiments {
			var places []string
			for _, r := range s.of[e.ID] {
				places = append(places, fmt.Sprintf("%v: %s", r.X, within(r.Relative, r.HalfWidth))+seeds(r.Seeds))
				if r.Flushed > lost.Flushed {
					lost, axis = r, e.Axis
				}
			}
			if places != nil {
				p.row(e.ID+" "+e.Title, e.Axis, strings.Join(places, "; "))
			}
		}
		if lost.Flushed > 0 {
			p.print("\nThe division by a power of two set at most %.2g %% of a point's elements to zero (experiment %s, %s: %v).\n", 100*lost.Flushed, lost.Experiment, axis, lost.X)
		}
	}
}
