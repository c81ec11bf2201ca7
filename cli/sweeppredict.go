package cli

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/sweep"
	"github.com/lowtoggle/lowtoggle/transform"
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
	f := &forecast{operands: q.operands, model: model, sources: append([]source{q.w}, q.against...), compared: true, m: q.m, shape: q.shape, cold: q.cold}
	event, end := term.Progress(c)
	defer end()
	all, err := f.works(c, model, event)
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
func (f *forecast) works(c *cli.Context, model *cost.Calibration, event func(transform.Event)) (all []predictedWork, err error) {
	defer orInterrupt(c.Context, &err)
	like, err := f.like()
	if err != nil {
		return nil, err
	}
	xs := map[shape]blocks{}
	products := make([][]multiplied, len(f.sources))
	for i, s := range f.sources {
		layers, err := f.take(c.Context, s, like)
		if err != nil {
			return nil, err
		}
		for j, l := range layers {
			scale := l
			if j < len(like) && like[j].rows == l.rows && like[j].cols == l.cols {
				scale = like[j]
			}
			p, err := f.product(c.Context, l, scale.blocks, xs)
			if err != nil {
				return nil, err
			}
			products[i] = append(products[i], p)
		}
		if err := f.comparable(products[0], products[i], s); err != nil {
			return nil, fmt.Errorf("%w; sweep each by itself", err)
		}
	}
	stack := 1
	if f.cold {
		stack = measure.Stack(len(products[0]), bytesOf(products[0]))
	}
	for i, s := range f.sources {
		var parts []part
		var one predictedWork
		for j, p := range products[i] {
			e, err := f.one(c.Context, p)
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", s.text, p.layer, err)
			}
			w, err := model.Work(cost.Product{Type: p.problem.Type.String(), M: p.problem.M, N: p.problem.N, K: p.problem.K, Role: f.role, Cold: f.cold}, e, stack)
			if err != nil {
				return nil, err
			}
			parts, one.work = append(parts, part{p.layer, p.problem, e}), append(one.work, w)
			event(transform.Event{Stage: "predict", Done: int64(i*len(products[i]) + j + 1), Total: int64(len(f.sources) * len(products[i]))})
		}
		one.Prediction = sumOf(parts)
		all = append(all, one)
	}
	return all, nil
}

// bytesOf all weights.
func bytesOf(products []multiplied) (bytes int) {
	for _, p := range products {
		bytes += p.w.rows * p.w.cols * p.w.dtype.Bits() / 8
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
