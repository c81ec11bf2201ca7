package bench

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/cost/pattern"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
)

// burstReading is a recorded comparison in bursts, in which mean power is below the cap, beside its prediction.
type burstReading struct {
	where, weights string
	energy, time   float64 // relative
	error          float64 // standard error of energy
	predicted      *cost.BelowCap
}

// within reports whether the prediction's interval holds the reading, whose own error widens it.
func (r burstReading) within() bool {
	half := (r.predicted.Interval[1] - r.predicted.Interval[0]) / 2
	return math.Abs(r.energy-r.predicted.Relative) <= math.Hypot(half, 1.96*r.error)
}

// burstReadings returns all recorded savings in bursts of products of 8192³, of weights that a pattern describes. The cost model is
// fitted to none of them: its clock in bursts comes from the time of random weights, and the rest from readings at the cap.
func burstReadings(t *testing.T, c *cost.Calibration) (list []burstReading) {
	t.Helper()
	patterns := map[string]string{"round=4": "normal(0,0.02) | round(4)", "grid=16": "normal(0,0.02) | grid(16)", "grid=4": "normal(0,0.02) | grid(4)",
		"grid=2": "normal(0,0.02) | grid(2)"}
	operand := func(text string) cost.Operand {
		p, s := pattern.MustParse(text), pattern.Spec{DType: weights.BF16, Rows: 8192, Cols: 8192, Seed: 3}
		return func(ctx context.Context, row, rows, col, cols int) ([]byte, error) {
			return p.Block(ctx, s, pattern.Range{From: row, To: row + rows}, pattern.Range{From: col, To: col + cols})
		}
	}
	predicted := map[string]*cost.BelowCap{}
	add := func(where string, run *measure.Result) {
		for _, v := range run.Variants {
			text := v.Name
			if of, ok := patterns[text]; ok {
				text = of
			}
			if text == "trellis=0.19" || v.Blocks == 0 {
				continue
			}
			if predicted[text] == nil {
				p, err := c.Predict(t.Context(), cost.Product{Type: arith.BF16, M: 8192, N: 8192, K: 8192}, operand("normal(0,1)"), operand(text))
				testmodel.OK(t, err)
				predicted[text] = p.BelowCap
			}
			list = append(list, burstReading{where, v.Name, v.RelativeEnergy, v.RelativeTime, standardError(run.Result), predicted[text]})
		}
	}
	var bursts measure.Result
	read(t, recorded+"duty-prefill.json", &bursts)
	for _, run := range append([]*measure.Result{&bursts}, bursts.AtDuty...) {
		add(fmt.Sprintf("%s, duty %.2g", run.Card.ID(), run.Pacing.Duty), run)
	}
	for _, r := range cardRecords(t, recorded+"cards") {
		for _, p := range r.Phases {
			for name, run := range p.runs() {
				if strings.Contains(name, "below") {
					add(fmt.Sprintf("%s, six plans", r.Card), run)
				}
			}
		}
	}
	return list
}

// TestBurstPredictions: the intervals hold the recorded savings in bursts, all but at most one in twenty, and none is wider than today's.
func TestBurstPredictions(t *testing.T) {
	c, err := cost.FindCalibration("h200")
	testmodel.OK(t, err)
	list := burstReadings(t, c)
	outside := 0
	for _, r := range list {
		half := (r.predicted.Interval[1] - r.predicted.Interval[0]) / 2
		t.Logf("%s, %s: %.4f ± %.4f, predicted %.4f ± %.4f; time %.4f, %.4f", r.where, r.weights, r.energy, 1.96*r.error, r.predicted.Relative, half, r.time, r.predicted.RelativeTime)
		if !r.within() {
			outside++
		}
		if half > 0.4*(1-r.predicted.Relative)+0.005 {
			t.Errorf("%s: ± %.4f is too wide to tell anything", r.weights, half)
		}
	}
	if len(list) < 31 || 20*outside > len(list) {
		t.Errorf("%d of %d readings are outside their intervals", outside, len(list))
	}
}

// costBelowCap prints the recorded savings in bursts beside their predictions.
func costBelowCap(t *testing.T, b *bytes.Buffer, c *cost.Calibration) {
	list := burstReadings(t, c)
	inside := 0
	for _, r := range list {
		if r.within() {
			inside++
		}
	}
	l := c.Facts.Power.Bursts
	fmt.Fprintf(b, costBelowCapText, l.Usual, l.Low, l.High, inside, len(list))
	for _, r := range list {
		fmt.Fprintf(b, "| %s | `%s` | %s ± %.1f | %s (%s … %s) | %s | %s |\n", r.where, strings.ReplaceAll(r.weights, "|", `\|`), percent(change(r.energy), 1), 196*r.error,
			percent(change(r.predicted.Relative), 1), signed(change(r.predicted.Interval[0]), 1), signed(change(r.predicted.Interval[1]), 1),
			percent(change(r.time), 1), percent(change(r.predicted.RelativeTime), 1))
	}
}

const costBelowCapText = `
## Below the power cap

In short bursts with gaps, as on a lightly loaded server, mean power is below the cap. The card then limits power within a
burst. The clock in bursts is %.2f times the clock at the cap (%.2f to %.2f). This ratio comes from the times of random weights.
The model predicts the saving of other weights from this ratio and from the response to activity. The response was measured at the cap.
The interval of a prediction covers the errors of the activity, the ratio, the static power and the clock's exponent, and the
differences between cards. No fit used a saving in bursts. The intervals, with the error of the reading, contain %d of %d recorded
savings. ` + "`±`" + ` is half of a reading's 95 %% interval. *Duty* is the share of time in which the GEMM runs. *Six plans* are the plans of
[cards.md](cards.md), here without ` + "`trellis=0.19`" + `, whose weights no pattern describes. In their records, the readings of a
block share the error of the source's readings.

| card and record | weights | energy, measured | energy, predicted (95 %% interval) | time, measured | time, predicted |
|---|---|---|---|---|---|
`
