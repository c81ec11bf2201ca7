package bench

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
)

// TestCostPage keeps docs/cost.md what the calibration and the recorded measurements say.
func TestCostPage(t *testing.T) {
	page := costPage(t)
	const path = "../docs/cost.md"
	if *update {
		if err := os.WriteFile(path, page, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(have), string(page)); diff != "" {
		t.Errorf("%s is stale; run go test ./bench -run Page -update:\n%s", path, diff)
	}
}

func costPage(t *testing.T) []byte {
	c, err := cost.FindCalibration("h200")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	points := 0
	for i := range c.Series {
		points += len(c.Series[i].Points)
	}
	fmt.Fprintf(&b, costIntroduction, points, len(c.Series), c.Card, c.Driver, c.PowerLimit)
	b.WriteString("\n## Judged by families it has not seen\n")
	b.WriteString(costJudged)
	b.WriteString("\n| points | n | mean | worst | rank | Hamming weight and alignment | toggles of both operands |\n|---|---|---|---|---|---|---|\n")
	var far []cost.Judged
	for _, g := range groups {
		keep := func(s *cost.Series) bool { return s.Type == g.typ && g.in(s) }
		all := in(c.LeaveOut(g.typ, g.cold, nil), keep)
		j := sumUp(g.name, all)
		fmt.Fprintf(&b, "| %s | %d | %.2f | %.2f | %.3f |", g.name, len(j.points), 100*j.mean, 100*j.worst, j.rank)
		for _, r := range cost.Rivals {
			o := sumUp(r.Name, in(c.LeaveOutBy(r, g.typ, g.cold), keep))
			if len(o.points) < len(j.points) {
				b.WriteString(" – |")
				continue
			}
			fmt.Fprintf(&b, " %.2f, %.2f, %.3f |", 100*o.mean, 100*o.worst, o.rank)
		}
		b.WriteString("\n")
		if strings.Contains(g.name, "16, weights") {
			for _, p := range all {
				if math.Abs(p.Error()) > 0.04 {
					far = append(far, p)
				}
			}
		}
	}
	b.WriteString("\nFP8, INT8 and FP32 hold all series of the type; the rows below split them.\n")
	b.WriteString(costMisses)
	slices.SortFunc(far, func(x, y cost.Judged) int { return int(1e6 * (math.Abs(y.Error()) - math.Abs(x.Error()))) })
	b.WriteString("\n| type | role | w | measured | predicted |\n|---|---|---|---|---|\n")
	for _, p := range far {
		fmt.Fprintf(&b, "| %s | %v | `%s` | %.3f | %.3f |\n", p.Series.Type, p.Series.Role, strings.ReplaceAll(p.Point.W, "|", `\|`), p.Point.Energy, p.Predicted)
	}
	costLayersTable(t, &b)
	costCoefficients(&b, c)
	return b.Bytes()
}

// layersFiles are the measured and predicted totals of llama-17m's layers.
var layersFiles = []string{"layers-stationary", "layers-streaming", "layers-decode-stationary", "layers-decode-streaming"}

// layer totals of a recipe, after over before.
type layersTotal struct {
	name, file                string
	measured, half, predicted float64
}

func layersTotals(t *testing.T) (list []layersTotal) {
	for _, file := range layersFiles {
		var have measure.Result
		read(t, recorded+file+".json", &have)
		var predicted struct {
			Predictions []struct {
				Name string
				Over *struct {
					Relative float64 `json:"relative_energy"`
				} `json:"over_w"`
			}
		}
		read(t, "results/predicted/"+file+".json", &predicted)
		for _, v := range have.Variants {
			for _, p := range predicted.Predictions {
				if p.Name == v.Name && p.Over != nil {
					list = append(list, layersTotal{strings.TrimSuffix(v.Name, ":"), file, v.RelativeEnergy,
						(v.Interval[1] - v.Interval[0]) / 2, p.Over.Relative})
				}
			}
		}
	}
	return list
}

// pruned weights, and none at all, are further off than a point: docs/cost.md says why.
func pruned(name string) bool { return name == "zeros" || strings.HasPrefix(name, "sparsify") }

// TestLayers: a trained model's layers under recipes that no fit has seen.
func TestLayers(t *testing.T) {
	seen := 0
	for _, l := range layersTotals(t) {
		off := 100 * (l.predicted - l.measured)
		t.Logf("%s %-14s measured %.4f, predicted %.4f: %+.2f points", l.file, l.name, l.measured, l.predicted, off)
		if pruned(l.name) {
			continue
		}
		seen++
		if math.Abs(off) > 1 {
			t.Errorf("%s: %s is %.2f points off", l.file, l.name, off)
		}
	}
	if seen < 12 {
		t.Errorf("only %d totals of recipes", seen)
	}
}

func costLayersTable(t *testing.T, b *bytes.Buffer) {
	b.WriteString(costLayers)
	b.WriteString("\n| recipe | workload and role | measured | predicted | off by, points |\n|---|---|---|---|---|\n")
	for _, l := range layersTotals(t) {
		fmt.Fprintf(b, "| %s | %s | %.4f ± %.4f | %.4f | %+.2f |\n", l.name, strings.ReplaceAll(strings.TrimPrefix(l.file, "layers-"), "-", ", "),
			l.measured, l.half, l.predicted, 100*(l.predicted-l.measured))
	}
}

func costCoefficients(b *bytes.Buffer, c *cost.Calibration) {
	b.WriteString(costCoefficientsText)
	b.WriteString("\n| signal |")
	for _, m := range c.Models {
		fmt.Fprintf(b, " %s%s |", m.Type, map[bool]string{true: ", decode"}[m.Cold])
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(c.Models)) + "\n")
	for i, name := range append([]string{"constant"}, c.Names...) {
		row, any := "", false
		for _, m := range c.Models {
			v, ok := m.Coefficients[name]
			any = any || ok
			if ok {
				row += fmt.Sprintf(" %.3f |", v)
			} else {
				row += "  |"
			}
		}
		doc := ""
		if i > 0 {
			doc = ": " + c.Facts.Features()[i-1].Doc
		}
		if any {
			fmt.Fprintf(b, "| `%s`%s |%s\n", name, doc, row)
		}
	}
	b.WriteString("\nTypes of which the library streams the operand in the stationary slot, as runs of equal rows show:")
	var swapped []string
	for _, m := range c.Models {
		if m.Swapped && !slices.Contains(swapped, m.Type) {
			swapped = append(swapped, m.Type)
		}
	}
	fmt.Fprintf(b, " %s.\n", strings.Join(swapped, ", "))
}

const costIntroduction = `# The cost model

Generated from the built-in calibration and [bench/results](../bench/results) by ` + "`go test ./bench -run Page -update`" + `.

What a product's operands make a card draw, predicted from samples of their bits. Three steps:

1. *Signals*: what wires do in the order in which the multipliers see the operands, sampled in 160
   tiles of both (24 for each layer of a model that is planned): bits that toggle in sums of 4 and 16
   products, in their aligned terms, in the streaming operand; groups that are all zero; bits that
   toggle in memory.
2. *Activity*: a constant and non-negative shares of the signals, each over that of random operands
   of the same scale; 1 for these.
3. *Response*: power is static (100 W), or proportional to activity, clock and voltage squared
   (clock to the 2.5th in all). The clock follows the activity as it was measured for the shape: at
   the power cap less activity is a higher clock first, below it less power.

Fitted to %d points in %d series on %s (driver %s, cap %.0f W), from four cards of one server:
` + "`lowtoggle calibrate --full` and `lowtoggle reproduce`" + `, refitted by ` + "`lowtoggle calibrate OUT --from A --from B`" + `.
`

const costJudged = `
Every point is predicted by a model and a response that were fitted without the point's family, then
compared. Families of the probes and experiments of the paper that are of one kind are left out
together: all sorts, all random zeros and blocks of them, all roundings, grids and zeroed bits, all
random bits, all constants and few values, all shifts. Errors are in points of energy relative to random
operands (0.01 of it); rank is Spearman's correlation. The rivals are lines through fewer signals,
with the same response, left out likewise: mean, worst, rank. What is not left out: the choice of
signals, the weights of steps within a run of rows and the two constants of the response were found
on the same data.
`

const costMisses = `
Asked for were a mean of 1 point, 4 at worst and a rank of 0.95 for BF16 and FP16 in both roles; 1.5
in decode; 2 for the others. Missed are FP32, by half a point (its kernel for CUDA cores takes rows in
another order, of which there are few probes), and the worst, by the points below: zeros in large
blocks, whose sums hold still for longer than in any family that is left, and signs alone, which
toggle more than their bits say.
`

const costLayers = `
## A trained model's layers

All linear layers of ` + "`llama-17m`" + ` as six recipes and more leave them, none of which any fit has seen:
energy after over before, measured with its own activations, predicted with random ones
(bench/results/predicted says by which commands). Pruned weights are off by more than a point:
which weights are zero goes by the inputs there, which random activations do not know. Weights of
zero are out of the model's depth in these small layers. Two things were learnt from these layers'
absolute energy and their roles, not from the recipes: results take as much as 250 products each
(an operation with K = 512 takes 1.4 times that of one at 2048³), and with far more tokens than
outputs both roles cost the same.
`

const costCoefficientsText = `
## Coefficients

Shares of the power that depends on data, for random operands; what no model uses is left out.
`
