package cli

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

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
	event, end := newProgress(c)
	defer end()
	all, err := f.works(c, model, event)
	if err != nil {
		return nil, err
	}
	r := &sweep.Result{GPU: model.Card, Predicted: true, Valid: true, Workload: q.workload, Reference: sweep.Setting{Cap: model.PowerLimit},
		Date: time.Now().Format(time.RFC3339), Command: q.meter.Command, Calibration: all[0].Calibration}
	r.Before, r.After = q.names()
	settings := q.settings
	if len(settings) == 0 {
		// A calibration does not say how far down its card can be set; an H200 to less.
		settings = sweep.Caps(math.Round(0.04*model.PowerLimit)*10, model.PowerLimit, 8)
	}
	if !slices.Contains(settings, r.Reference) {
		settings = append(settings, r.Reference)
	}
	for _, s := range settings {
		p := sweep.Point{Setting: s, Predicted: true}
		for i, w := range all {
			h, err := model.Hold(w.work, cost.Setting(s))
			if err != nil {
				return nil, usageError{err}
			}
			figures := figuresOf(h)
			if i == 0 {
				p.Original = figures
			} else {
				p.Converted = &figures
			}
		}
		r.Points = append(r.Points, p)
	}
	r.Finish(q.k)
	relateIntervals(r, all, q.cold)
	for _, w := range all {
		for _, text := range w.Warnings {
			if !slices.Contains(r.Warnings, text) {
				r.Warnings = append(r.Warnings, text)
			}
		}
	}
	return r, nil
}

// works predicts every source's layers as the card runs them by default.
func (f *forecast) works(c *cli.Context, model *cost.Calibration, event func(transform.Event)) (all []predictedWork, err error) {
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
			return nil, err
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

// figuresOf what is held; its intervals are those of joules and seconds.
func figuresOf(h cost.Held) sweep.Figures {
	return sweep.Figures{Joules: h.Joules, Seconds: h.Seconds, Watts: h.Watts, Clock: &h.Clock,
		Interval: h.JoulesInterval[:], TimeInterval: h.SecondsInterval[:]}
}

// relateIntervals makes the intervals of joules and seconds those of ratios. What the model of bits is off by
// is common to before and after, so it counts for the change alone, as for any conversion.
func relateIntervals(r *sweep.Result, all []predictedWork, cold bool) {
	i := slices.IndexFunc(r.Points, func(p sweep.Point) bool { return p.Setting == r.Reference })
	base := r.Points[i].Original
	spread := 0.0
	if len(all) > 1 {
		before, after := all[0], all[1]
		change := math.Abs(after.Relative/before.Relative - 1)
		spread = min(change, (after.Interval[1]-after.Interval[0])/2)
	}
	relate := func(f *sweep.Figures, spread float64) {
		scale := func(in []float64, by, spread float64) { in[0], in[1] = in[0]/by*(1-spread), in[1]/by*(1+spread) }
		scale(f.Interval, base.Joules, spread)
		if cold { // where memory is waited for, what bits do shows in power alone
			spread = 0
		}
		scale(f.TimeInterval, base.Seconds, spread)
	}
	for i := range r.Points {
		relate(&r.Points[i].Original, 0)
		if f := r.Points[i].Converted; f != nil {
			relate(f, spread)
		}
	}
}
