package bench

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/bench/experiment"
	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/internal/goldenfile"
)

// TestCostPage checks that docs/cost.md agrees with the calibration and the recorded measurements.
func TestCostPage(t *testing.T) { goldenfile.Same(t, "../docs/cost.md", costPage(t)) }

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
	cards := map[string]bool{} // of the readings that the fit has
	for _, folder := range []string{"probes", "reproduce"} {
		all, err := experiment.LoadFolder(recorded + folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range all {
			for _, session := range s.Sessions {
				if day, _, _ := strings.Cut(session.Date, "T"); day <= c.Date {
					cards[session.Card.ID()] = true
				}
			}
		}
	}
	fmt.Fprintf(&b, costIntroduction, c.Facts.Power.Static.Usual, c.Facts.Power.ClockExponent.Usual, points, len(c.Series), c.Card, c.Driver, c.PowerLimit, len(cards), strings.Join(slices.Sorted(maps.Keys(cards)), ", "))
	b.WriteString("\n## Accuracy on families that the fit has not seen\n")
	b.WriteString(costJudged)
	b.WriteString("\n| points | n | mean | worst | rank | Hamming weight and alignment | toggles of both operands |\n|---|---|---|---|---|---|---|\n")
	var far []cost.LeftOut
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
	b.WriteString("\nThe rows FP8, INT8 and FP32 hold all series of the dtype; the rows below them split these.\n")
	b.WriteString(costMisses)
	slices.SortFunc(far, func(x, y cost.LeftOut) int { return int(1e6 * (math.Abs(y.Error()) - math.Abs(x.Error()))) })
	b.WriteString("\n| type | role | w | measured | predicted |\n|---|---|---|---|---|\n")
	for _, p := range far {
		fmt.Fprintf(&b, "| %s | %v | `%s` | %.3f | %.3f |\n", p.Series.Type, p.Series.Role, strings.ReplaceAll(p.Point.W, "|", `\|`), p.Point.Energy, p.Predicted)
	}
	costLayersTable(t, &b, c)
	costCoefficients(&b, c)
	return b.Bytes()
}

// layersFiles are the measured and predicted totals of llama-17m's layers.
var layersFiles = []string{"layers-stationary", "layers-streaming", "layers-decode-stationary", "layers-decode-streaming"}

// layersTotal is the energy of all layers after a conversion relative to that before.
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

// worstInDecode is the largest error of rounding and grids in decode, in percentage points.
func worstInDecode(totals []layersTotal) (worst float64) {
	for _, l := range totals {
		if strings.Contains(l.file, decode) && !pruned(l.name) {
			worst = max(worst, 100*math.Abs(l.predicted-l.measured))
		}
	}
	return worst
}

// worstSearchedInDecode is the largest error for models planned with a budget of loss.
func worstSearchedInDecode(t *testing.T) (worst float64) {
	f, err := loadFrontier(recorded)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range f.planned(decode) {
		if m := f.reading(p, f.of(decode)); m != nil {
			worst = max(worst, 100*math.Abs(p.Predicted-m.RelativeEnergy))
		}
	}
	return worst
}

// pruned weights, and zeros, are off by more than a point: docs/cost.md says why.
func pruned(name string) bool { return name == "zeros" || strings.HasPrefix(name, "sparsify") }

// TestLayers checks predictions for a trained model's layers, converted by passes that no fit has seen.
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

func costLayersTable(t *testing.T, b *bytes.Buffer, c *cost.Calibration) {
	results := c.Facts.Kernels.ResultProducts
	fmt.Fprintf(b, costLayers, worstInDecode(layersTotals(t)), worstSearchedInDecode(t), results, (1+results/512)/(1+results/2048))
	b.WriteString("\n| recipe | workload and role | measured | predicted | off by, points |\n|---|---|---|---|---|\n")
	for _, l := range layersTotals(t) {
		fmt.Fprintf(b, "| %s | %s | %.4f ± %.4f | %.4f | %+.2f |\n", l.name, strings.ReplaceAll(strings.TrimPrefix(l.file, "layers-"), "-", ", "),
			l.measured, l.half, l.predicted, 100*(l.predicted-l.measured))
	}
}

func costCoefficients(b *bytes.Buffer, c *cost.Calibration) {
	b.WriteString(costCoefficientsText)
	b.WriteString("\n| feature |")
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
	b.WriteString("\nIn these dtypes cuBLASLt streams the operand that the call makes stationary, as measurements of equal rows show:")
	var swapped []arith.Type
	for _, m := range c.Models {
		if m.Swapped && !slices.Contains(swapped, m.Type) {
			swapped = append(swapped, m.Type)
		}
	}
	fmt.Fprintf(b, " %s.\n", arith.Names(swapped))
}

const costIntroduction = `# The cost model

Generated from the built-in calibration and [bench/results](../bench/results) by ` + "`go test ./bench -run Page -update`" + `.

The model predicts the power of a GEMM from samples of its operands' bits. It has three steps:

1. *Features* count toggling bits, in the order in which the multipliers get the operands. They are sampled in 160
   tiles of both operands (24 tiles for each layer when a model is planned). They cover sums of 4 and 16 products, the
   aligned terms of these sums, the streaming operand, and memory. Further features count groups that are all zero.
2. *Activity* is a constant plus a non-negative combination of the features. Each feature is relative to random operands
   of the same scale, which have an activity of 1.
3. *Response* turns activity into power and clock. Power has a static part (%.0f W) and a part proportional to activity, clock
   and voltage squared (activity · clock^%g in all). The clock comes from measurements of the shape. At the power cap, less activity first raises the clock. Below the cap, it lowers the power.

The fit uses %d points in %d series on %s (driver %s, cap %.0f W), from %d cards (%s). They were measured by
` + "`lowtoggle calibrate --full` and `lowtoggle reproduce`" + ` and fitted by ` + "`lowtoggle calibrate OUT --from A --from B`" + `.
`

const costJudged = `
Points belong to families of patterns: sorted values; random zeros, single or in blocks; rounding, grids and zeroed
bits; random bits; constants and few values; shifts. Each point is predicted by a model and a response that
were fitted without its whole family, and compared with the measurement. Several families end with weights that are all zero.
These points count once in a series, but a fit without one family still includes the zeros of the others. Errors are in
percentage points of the energy of random operands. Rank is Spearman's correlation. The last two columns are simpler models,
tested in the same way. They are linear in fewer features and use the same response. Their cells give mean error, worst
error and rank.

Three choices were made on all the data, families left out included: which features there are, the weights of steps
within a run of rows, and the two constants of the response.
`

const costMisses = `
The targets for BF16 and FP16 in both roles were a mean error of 1 point, a worst error of 4 points, and a rank of 0.95.
In decode the target was a mean of 1.5 points, for the other dtypes a mean of 2. FP32 misses its target by half a point.
Its kernel for CUDA cores takes rows in another order, which few measured patterns cover. The points below exceed the limit of 4
points; all of them use more energy than predicted. With zeros in large blocks, sums stay constant for longer than in any
other family. The other points have a large mean, or random signs on one magnitude:
`

const costLayers = `
## A trained model's layers

The table shows all linear layers of ` + "`llama-17m`" + ` together, converted by several passes. No fit has seen these
conversions. Energy after conversion is relative to energy before. It was measured with the model's own activations and
predicted with random ones (bench/results/predicted has the commands). In decode, predictions of rounding and grids are
within %.2f points here, and within %.2f points for the searched models of [frontier.md](frontier.md).

Predictions for pruned weights are off by more than a point. The model's activations decide which weights are pruned,
and the prediction uses random ones. Weights that are all zero are outside the range of the fit in these small layers.

Two constants were fitted to these layers' absolute energy and roles, not to their conversions. First, each
element of the result costs as much as %.0f multiplications. So a multiplication costs %.1f times as much in a GEMM with
K = 512 as in one with K = 2048. Second, with far more tokens than outputs both roles cost the same.
`

const costCoefficientsText = `
## Coefficients

A coefficient is a share of the dynamic power with random operands. Dynamic power is all power but the static part.
Features that no model uses are left out.
`
