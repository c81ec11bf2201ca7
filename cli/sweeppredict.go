package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/operand"
	"github.com/lowtoggle/lowtoggle/gemm/predict"
	"github.com/lowtoggle/lowtoggle/gemm/sweep"
)

// predictedWork is what a calibration says of one set of weights.
type predictedWork struct {
	cost.Prediction // of all layers
	work            []cost.Work
}

// predict makes a sweep of a calibration.
func (q *sweepRequest) predict(c *cli.Context) (*sweep.Result, error) {
	model, err := calibration(c)
	if err != nil {
		return nil, err
	}
	event, end := term.Progress(c)
	defer end()
	all, err := q.works(c.Context, model, event)
	if err != nil {
		return nil, err
	}
	settings, err := q.predictable(model)
	if err != nil {
		return nil, err
	}
	r := &sweep.Result{GPU: model.Card, Predicted: true, Valid: true, Workload: q.workload, Reference: model.PowerLimit, Intervals: sweep.IntervalsModel,
		Date: time.Now().Format(time.RFC3339), Command: q.meter.Command, Calibration: all[0].Calibration}
	r.Before, r.After = q.names()
	base, err := model.Hold(all[0].work, cost.Setting{})
	if err != nil {
		return nil, err
	}
	bits := bitsSpread(all)
	for _, s := range settings {
		p := sweep.Point{Setting: s, Predicted: true, Extrapolated: model.Extrapolates(cost.Setting(s))}
		for i, w := range all {
			h, err := model.Hold(w.work, cost.Setting(s))
			if err != nil {
				return nil, usageError{err}
			}
			if i == 0 {
				p.Original = figuresOf(h, base, 0, q.cold)
			} else {
				p.Converted = new(figuresOf(h, base, bits, q.cold))
			}
		}
		r.Points = append(r.Points, p)
	}
	r.Finish(q.k)
	for _, w := range all {
		for _, text := range w.Warnings {
			if !slices.Contains(r.Warnings, text) {
				r.Warnings = append(r.Warnings, text)
			}
		}
	}
	return r, nil
}

// predictable settings: those that were asked for, or the usual ones, and the calibration's own.
func (q *sweepRequest) predictable(model *cost.Calibration) ([]sweep.Setting, error) {
	lowest, highest := model.Reach()
	if highest.Cap == 0 {
		return nil, errors.New("the calibration does not say what power limit it was measured at: make it anew with lowtoggle calibrate")
	}
	can := sweep.Reach{LowestCap: lowest.Cap, HighestCap: highest.Cap, LowestClock: lowest.Clock, HighestClock: highest.Clock}
	if err := can.Check(model.Card+" is predicted", q.settings); err != nil {
		return nil, usageError{err}
	}
	settings, reference := slices.Clone(q.settings), sweep.Setting{Cap: highest.Cap}
	if len(settings) == 0 {
		settings = sweep.Usual(lowest.Cap, highest.Cap)
	}
	if !slices.Contains(settings, reference) {
		settings = append(settings, reference)
	}
	return settings, nil
}

// works predicts every source's layers as the card runs them by default.
func (q *sweepRequest) works(ctx context.Context, model *cost.Calibration, event func(predict.Event)) (all []predictedWork, err error) {
	sources := append([]operand.Source{q.w}, q.against...)
	r, err := predict.Sources(ctx, model, sources, predict.Options{Operands: q.operands(), Cold: q.cold, Compare: true, Progress: event})
	if errors.Is(err, predict.ErrNotComparable) {
		return nil, fmt.Errorf("%w; sweep each by itself", err)
	}
	if err != nil {
		return nil, operandError(err)
	}
	stack := 1
	if q.cold {
		stack = measure.Stack(r.Predictions[0].Count, bytesOf(r.Predictions[0].Layers))
	}
	for _, p := range r.Predictions {
		one := predictedWork{Prediction: p.Prediction}
		for _, l := range p.Layers {
			w, err := model.Work(cost.Product{Type: l.Problem.Type, M: l.Problem.M, N: l.Problem.N, K: l.Problem.K, Role: q.role, Cold: q.cold}, l.Prediction, stack)
			if err != nil {
				return nil, err
			}
			one.work = append(one.work, w)
		}
		all = append(all, one)
	}
	return all, nil
}

// bytesOf all weights.
func bytesOf(layers []predict.Layer) (bytes int) {
	for _, l := range layers {
		bytes += l.Problem.N * l.Problem.K * l.Problem.Type.Operand().Bits() / 8
	}
	return bytes
}

// bitsSpread is what the model of bits is off by, as a share. It is common to before and after, so it counts
// for the change alone, as for any conversion.
func bitsSpread(all []predictedWork) float64 {
	if len(all) < 2 {
		return 0
	}
	before, after := all[0], all[1]
	return min(math.Abs(after.Relative/before.Relative-1), (after.Interval[1]-after.Interval[0])/2)
}

// figuresOf what is held; its intervals are those of ratios to base.
func figuresOf(h, base cost.Held, bits float64, cold bool) sweep.Figures {
	ratio := func(in [2]float64, base, bits float64) []float64 {
		return []float64{in[0] / base * (1 - bits), in[1] / base * (1 + bits)}
	}
	f := sweep.Figures{Joules: h.Joules, Seconds: h.Seconds, Watts: h.Watts, Clock: &h.Clock, Interval: ratio(h.JoulesInterval, base.Joules, bits)}
	if cold { // where memory is waited for, what bits do shows in power alone
		bits = 0
	}
	f.TimeInterval = ratio(h.SecondsInterval, base.Seconds, bits)
	return f
}
