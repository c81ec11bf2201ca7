package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/internal/goldenfile"
)

// TestCostPage checks that docs/cost.md and docs/cost-accuracy.md agree with the calibration and the recorded measurements.
func TestCostPage(t *testing.T) {
	c, err := cost.FindCalibration("h200")
	if err != nil {
		t.Fatal(err)
	}
	goldenfile.Same(t, "../docs/cost.md", costPage(c))
	goldenfile.Same(t, "../docs/cost-accuracy.md", costAccuracyPage(t, c))
}

// costPage returns the page of the model: its steps and coefficients.
func costPage(c *cost.Calibration) []byte {
	var b bytes.Buffer
	points := 0
	for i := range c.Series {
		points += len(c.Series[i].Points)
	}
	fmt.Fprintf(&b, costIntroduction, c.Facts.Power.Static.Usual, c.Facts.Power.ClockExponent.Usual, points, len(c.Series), c.Card, c.Driver, c.PowerLimit, len(fittedCards(c)), strings.Join(slices.Sorted(maps.Keys(fittedCards(c))), ", "))
	costCoefficients(&b, c)
	return b.Bytes()
}

// costAccuracyPage compares predictions with measurements that the fit has not seen.
func costAccuracyPage(t *testing.T, c *cost.Calibration) []byte {
	var b bytes.Buffer
	b.WriteString(costJudged)
	b.WriteString("\n| points | number | mean error | worst error | rank | Hamming weight and alignment | toggles of both operands |\n|---|---|---|---|---|---|---|\n")
	var far []cost.LeftOut
	var short []string
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
			if j.rank < targetRank {
				short = append(short, fmt.Sprintf("%s (%.3f)", g.name, j.rank))
			}
			for _, p := range all {
				if math.Abs(p.Error()) > 0.04 && !p.Repeated {
					far = append(far, p)
				}
			}
		}
	}
	b.WriteString("\nThe rows FP8, INT8 and FP32 have all series of the dtype except decode. The rows *weights alone* and *both operands* of\nthese dtypes each have a part of these series.\n")
	if short == nil {
		t.Error("all ranks reach the target, and the text says that some do not")
	}
	fmt.Fprintf(&b, costMisses, strings.Join(short, "; "))
	slices.SortFunc(far, func(x, y cost.LeftOut) int { return int(1e6 * (math.Abs(y.Error()) - math.Abs(x.Error()))) })
	b.WriteString("\n| type | role | weights | energy, measured | energy, predicted |\n|---|---|---|---|---|\n")
	for _, p := range far {
		fmt.Fprintf(&b, "| %s | %v | `%s` | %.3f | %.3f |\n", p.Series.Type, p.Series.Role, strings.ReplaceAll(p.Point.W, "|", `\|`), p.Point.Energy, p.Predicted)
	}
	costFeatures(&b, c)
	costShared(&b, c)
	costCards(t, &b, c)
	costLayersTable(t, &b, c)
	costBelowCap(t, &b, c)
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
		var predicted struct{ Predictions []layersPrediction }
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

// worstInDecode returns the largest error of rounding and grids in decode, in percentage points.
func worstInDecode(totals []layersTotal) (worst float64) {
	for _, l := range totals {
		if strings.Contains(l.file, decode) && !pruned(l.name) {
			worst = max(worst, 100*math.Abs(l.predicted-l.measured))
		}
	}
	return worst
}

// worstSearchedInDecode returns the largest error for models planned with a budget of loss.
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

// pruned weights, and zeros, are off by more than a point: docs/cost-accuracy.md says why.
func pruned(name string) bool { return name == "zeros" || strings.HasPrefix(name, "sparsify") }

// TestLayers checks predictions for a trained model's layers, converted by passes that no fit has seen, by at most so many points
// as docs/cost-accuracy.md states. Today's code makes the recorded predictions.
func TestLayers(t *testing.T) {
	seen, mean := 0, 0.0
	totals := layersTotals(t)
	for _, l := range totals {
		off := 100 * (l.predicted - l.measured)
		t.Logf("%s %s measured %.4f, predicted %.4f: %+.2f points", l.file, l.name, l.measured, l.predicted, off)
		if pruned(l.name) {
			continue
		}
		seen, mean = seen+1, mean+math.Abs(off)
		most := 1.
		if strings.Contains(l.file, decode) {
			most = 1.4 // the same conversions differ by a point between cards
		}
		if math.Abs(off) > most {
			t.Errorf("%s: %s is %.2f points off", l.file, l.name, off)
		}
	}
	if mean /= float64(seen); seen < 12 || mean > 0.6 {
		t.Errorf("%d totals of recipes are %.2f points off on average", seen, mean)
	}
	e := newEvidence(t)
	model := e.llama()
	if model == "" {
		t.Skip("llama-17m is missing: recorded predictions are not compared with today's")
	}
	for _, file := range layersFiles {
		role, workload := "stationary", "prefill"
		if strings.Contains(file, "streaming") {
			role = "streaming"
		}
		if strings.Contains(file, decode) {
			workload = decode
		}
		for name, pass := range map[string]string{"round-4": "round=4", "grid-4": "grid=4"} {
			out := e.converted(model, "--passes", pass)
			var today struct{ Predictions []layersPrediction }
			text := e.command("predict", "--w", model+":", "--against", out+":", "--role", role, "--workload", workload, "--json")
			if err := json.Unmarshal([]byte(text), &today); err != nil || len(today.Predictions) != 2 {
				t.Fatal(err, text)
			}
			i := slices.IndexFunc(totals, func(l layersTotal) bool { return l.file == file && l.name == name })
			if now := today.Predictions[1].Over.Relative; math.Abs(now-totals[i].predicted) > 1e-6 {
				t.Errorf("%s: %s is predicted as %v today, and as %v in results/predicted", file, name, now, totals[i].predicted)
			}
		}
	}
}

// layersPrediction is a part of the output of predict.
type layersPrediction struct {
	Name string
	Over *struct {
		Relative float64 `json:"relative_energy"`
	} `json:"over_w"`
}

func costLayersTable(t *testing.T, b *bytes.Buffer, c *cost.Calibration) {
	results := c.Facts.Kernels.ResultProducts
	fmt.Fprintf(b, costLayers, worstInDecode(layersTotals(t)), worstSearchedInDecode(t), results, (1+results/512)/(1+results/2048), c.Facts.Kernels.StreamedTokensRatio)
	b.WriteString("\n| recipe | workload and role | measured | predicted | error, percentage points |\n|---|---|---|---|---|\n")
	for _, l := range layersTotals(t) {
		fmt.Fprintf(b, "| %s | %s | %.4f ± %.4f | %.4f | %+.2f |\n", l.name, strings.ReplaceAll(strings.TrimPrefix(l.file, "layers-"), "-", ", "),
			l.measured, l.half, l.predicted, 100*(l.predicted-l.measured))
	}
}

// costFeatures writes the effect of each feature on the mean error: without a feature that models use, or with one that they do
// not use.
func costFeatures(b *bytes.Buffer, c *cost.Calibration) {
	b.WriteString(costFeaturesText)
	b.WriteString("\n| feature |")
	errors := "\n| all features of the model: mean error |"
	mean := map[*cost.Model]float64{}
	for i := range c.Models {
		m := &c.Models[i]
		mean[m] = sumUp("", c.LeaveOut(m.Type, m.Cold, nil)).mean
		fmt.Fprintf(b, " %s |", modelName(*m))
		errors += fmt.Sprintf(" %.2f |", 100*mean[m])
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(c.Models)) + errors + "\n")
	rows := map[bool]string{}
	for _, f := range c.Facts.Features() {
		if strings.Contains(f.Doc, "no part of the model") {
			continue
		}
		row, without := "", false
		for i := range c.Models {
			m := &c.Models[i]
			if strings.HasPrefix(f.Name, "weights_") != m.Cold && (f.Name != "streaming_nonzero" || m.Cold && m.Type != arith.FP8) {
				row += "  |"
				continue
			}
			var points []cost.LeftOut
			points, without = c.LeaveOutChanged(f.Name, m.Type, m.Cold)
			row += fmt.Sprintf(" %+.2f |", 100*(sumUp("", points).mean-mean[m]))
		}
		rows[without] += fmt.Sprintf("| %s `%s` |%s\n", map[bool]string{true: "without", false: "with"}[without], f.Name, row)
	}
	b.WriteString(rows[true] + rows[false])
}

// sharing are types whose products pass through the same multipliers, or through the same memory.
var sharing = []struct {
	name  string
	cold  bool
	types []arith.Type
}{
	{"floats of 16 bits", false, []arith.Type{arith.BF16, arith.FP16}},
	{"types of 8 bits", false, []arith.Type{arith.FP8, arith.INT8}},
	{"decode", true, []arith.Type{arith.BF16, arith.FP16, arith.FP8}},
}

// costShared compares models of each type with models that share all coefficients.
func costShared(b *bytes.Buffer, c *cost.Calibration) {
	b.WriteString(costSharedText)
	b.WriteString("\n| types | type | own coefficients | shared | streaming weights: own | shared |\n|---|---|---|---|---|---|\n")
	for _, s := range sharing {
		shared := c.LeaveOutShared(s.cold, s.types...)
		for _, typ := range s.types {
			own, ofType := c.LeaveOut(typ, s.cold, nil), func(s *cost.Series) bool { return s.Type == typ }
			streaming := func(s *cost.Series) bool { return s.Type == typ && weightsAlone(cost.Streaming)(s) }
			mean := func(list []cost.LeftOut, keep func(*cost.Series) bool) string {
				if list = in(list, keep); len(list) == 0 {
					return "–"
				}
				return fmt.Sprintf("%.2f", 100*sumUp("", list).mean)
			}
			fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s |\n", s.name, typ, mean(own, ofType), mean(shared, ofType), mean(own, streaming), mean(shared, streaming))
		}
	}
}

// costCards shows predictions for cards that no fit has seen.
func costCards(t *testing.T, b *bytes.Buffer, c *cost.Calibration) {
	fmt.Fprintf(b, costCardsText, len(fittedCards(c)))
	b.WriteString("\n| readings | card | number | in their interval | mean half width | mean error |\n|---|---|---|---|---|---|\n")
	row := func(name, card string, all []unseenReading) {
		held, mean, half := coverage(all)
		fmt.Fprintf(b, "| %s | %s | %d | %.1f %% | ± %.2f | %.2f |\n", name, card, len(all), 100*float64(held)/float64(len(all)), 100*half, 100*mean)
	}
	names, lists := unseenCards(c)
	var all []unseenReading
	for i, list := range lists {
		row("calibration, "+names[i], "each in turn", list)
		all = append(all, list...)
	}
	row("**calibration, all**", "", all)
	all = nil
	for _, r := range unseenRecords {
		list := unseenRecord(t, c, r.file, r.role, r.cold)
		row("`"+r.file+"`", recordedRun(t, r.file).Card.ID(), list)
		all = append(all, list...)
	}
	row("**records, all**", "", all)
}

// modelName returns the heading of a model's column.
func modelName(m cost.Model) string {
	return m.Type.String() + map[bool]string{true: ", decode"}[m.Cold]
}

func costCoefficients(b *bytes.Buffer, c *cost.Calibration) {
	b.WriteString(costCoefficientsText)
	b.WriteString("\n| feature |")
	for _, m := range c.Models {
		fmt.Fprintf(b, " %s |", modelName(m))
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
	b.WriteString("\nFor some dtypes, cuBLASLt streams the A operand instead. Measurements with equal rows show this for")
	var swapped []arith.Type
	for _, m := range c.Models {
		if m.Swapped && !slices.Contains(swapped, m.Type) {
			swapped = append(swapped, m.Type)
		}
	}
	fmt.Fprintf(b, " %s.\n", arith.Names(swapped))
}

const costIntroduction = `# How does the cost model work?

Generated from the built-in calibration and [bench/results](../bench/results) by ` + "`go test ./bench -run Page -update`" + `.

The model predicts the power of a GEMM from samples of its operands' bits. A prediction has three steps:

1. *Features* count toggling bits, in the order in which the multipliers get the operands. The counts come from a sample of 160
   tiles of both operands (24 tiles for each layer when a conversion is planned). The features cover sums of 16 products, the aligned
   terms of these sums, the streaming operand (the B operand of the cuBLAS call), and memory. Further features count nonzero groups of
   16 elements, and nonzero bytes.
2. *Activity* is a constant plus a non-negative combination of the features. Each feature is relative to random operands
   of the same scale. Random operands have an activity of 1.
3. *Response* turns activity into power and clock. Power has a static part (%.0f W) and a dynamic part. The dynamic part is proportional to
   activity, clock and voltage squared (in total to activity · clock^%g). The clock comes from measurements of the GEMM's shape. At the
   power cap, less activity first raises the clock. Below the cap, less activity lowers the power.

The fit uses %d measured products (points) in %d series on %ss (driver %s, cap %.0f W). The points come from %d cards (%s).
` + "`lowtoggle calibrate --full` and `lowtoggle reproduce`" + ` measured the points, and ` + "`lowtoggle calibrate OUT --from A --from B`" + ` fitted the
model. For a comparison with measurements outside the fit, see [cost-accuracy.md](cost-accuracy.md).
`

const costJudged = `# How accurate is the cost model?

Generated from the built-in calibration and [bench/results](../bench/results) by ` + "`go test ./bench -run Page -update`" + `.
[cost.md](cost.md) explains the model.

## Patterns of classes that the fit has not seen

The patterns are divided into these classes:

- sorted values;
- random zeros, single or in blocks, with any other change of the values;
- rounding, grids and zeroed bits;
- random bits;
- constants and few values;
- shifts;
- repeated rows;
- repeated columns;
- signs;
- standard deviation.

For each measured product (a point), the model is fitted without the class of the point's pattern. The response, which turns activity
into power and clock ([cost.md](cost.md)), is fitted without this class, too. The prediction is then compared with the measurement.
All-zero weights occur in several kinds of pattern. No fit of this test contains all-zero weights. The errors count all-zero
weights once for each series of measurements.
Errors are in percentage points of the energy of random operands. Rank is Spearman's correlation between predictions and
measurements. The last two columns are simpler models, tested in the same way. The simpler models are linear in fewer features and
use the same response. The cells of these columns give mean error, worst error and rank; a dash means that a fit was not possible.

Three choices used all data, including the left-out classes: the list of features, the factors of the changes from row to row, and the two
constants of the response (static power and the clock's exponent).
`

const costMisses = `
The targets for BF16 and FP16 in both roles were a mean error of 1 percentage point, a worst error of 4 percentage points, and a rank
of 0.95. The rank misses its target for %s.
The target for the mean error was 1.5 percentage points in decode, and 2 percentage points for the other dtypes. FP32 misses its target
for the mean error. The FP32 kernel on CUDA cores takes rows in another order. Few measured patterns cover this order.

The next table lists the predictions with errors above the target of 4 percentage points. For all-zero weights, a fit without
all-zero weights predicts too small a saving. Groups of operands that are all zero save more energy than their bits explain. With zeros in large
blocks, sums stay constant for longer than in any other class. The fits for real predictions use all classes. Energy is relative to
random operands.
`

const costFeaturesText = `
## The effect of each feature on the error

The table gives the change of the first table's mean error if the model loses one feature or gets one unused feature. The changes are
in percentage points, over all points of a type. A negative change means better predictions. Some features hardly vary among the
points of a fit. These features get no coefficient, because the fit cannot distinguish them from the constant. For example, groups
that are all zero occur in few classes. The column *fp16-cuda* is FP16 on CUDA cores.
`

const costSharedText = `
## Coefficients of each type

BF16 and FP16 use the same multipliers of the tensor cores. FP8 and INT8 may share multipliers, too. In decode, the weights of all
types pass through the same memory. The table compares the mean errors, in percentage points, of models with own and with shared
coefficients. Features are relative to random operands of each type, so coefficients are shares of the dynamic power. In each
group, shared coefficients make the predictions for at least one type worse. For example, a mantissa of 7 bits (BF16) takes a smaller
share of a multiplier's power than a mantissa of 10 bits (FP16). Each type therefore has its own coefficients.
`

const costCardsText = `
## Cards that no fit has seen

The interval of a prediction is for one reading of about a second. The card is of the calibration's kind, and the fit has not seen this
card. The interval's width is proportional to √(floor² + (growth · saving)²). The floor comes from errors at small predicted savings,
the growth from errors at larger savings. Floor and growth are chosen so that the intervals contain 95 %% of the points of the first
test. If all points of a type come from one card, the growth includes the spread of savings between cards ([cards.md](cards.md)).

The rows *calibration* leave out each of the calibration's %d cards in turn. The model, the response and the intervals come from the
other cards, and predict the readings of the left-out card. Only shapes that were measured on another card are predicted. The other
rows are readings of cards that no fit has seen, in BF16 with 8192 outputs and inputs. The energy of these readings is relative to the
baseline in the same block. Half widths and errors are in percentage points.
`

const costLayers = `
## A trained model's layers

Each row of the table shows the energy of all linear layers of ` + "`llama-17m`" + ` together after one conversion. No fit has seen these
conversions. Energy is relative to the energy before the conversion, with ` + "`±`" + ` half of the 95 %% interval. Energy was measured with
the model's own activations and predicted with random activations (bench/results/predicted has the commands). In decode, the
predictions for rounding and grids in the table are within %.2f percentage points of the measurement. The predictions for the searched models of
[frontier.md](frontier.md) are within %.2f percentage points. The saving of one plan differs about as much between cards ([cards.md](cards.md)).

Predictions for ` + "`sparsify`" + ` are off by more than a percentage point, because they use random activations instead of the model's own
activations. All-zero weights are outside the range of the fit in these small layers.

Two constants were fitted to these layers' absolute energy and roles, not to their conversions. First, each element of the result
costs as much as %.0f multiplications. So a multiplication costs %.1f times as much in a GEMM with K = 512 as in a GEMM with K =
2048. Second, both roles use the same energy if there are at least %d times as many tokens as outputs.
`

const costCoefficientsText = `
## Coefficients

A coefficient is a share of the dynamic power with random operands. Dynamic power is all power except static power. Features that no
model uses are left out. A multiplier processes rows of the streaming operand one after the other, one row in each *step*. *K* is the
dimension over which the products are summed. The column *fp16-cuda* is FP16 on CUDA cores.
`
