package search

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/transform/rounding"
)

// point is one combination of steps for a layer, with its error and energy.
type point struct {
	Steps  []*plan.Step `json:"steps,omitempty"`
	Error  float64      `json:"error"`            // power of the output's error relative to the output's power, on held-out tokens
	Energy float64      `json:"energy"`           // predicted energy, relative to the source's
	Lambda float64      `json:"lambda,omitempty"` // lambda of a tuned pass; 0: no tuned pass
}

// curve is a layer's rate–distortion curve: points of rising error and falling energy. Each point has the least error
// + lambda·energy for some lambda. The first point leaves the layer unchanged.
type curve []point

// hull returns the lower convex hull: the points that are best at some lambda.
func (c curve) hull() curve {
	c = slices.Clone(c)
	slices.SortStableFunc(c, func(a, b point) int {
		return cmp.Or(cmp.Compare(a.Error, b.Error), cmp.Compare(a.Energy, b.Energy))
	})
	var h curve
	for _, p := range c {
		if len(h) > 0 && p.Energy >= h[len(h)-1].Energy {
			continue
		}
		for len(h) > 1 {
			a, b := h[len(h)-2], h[len(h)-1]
			// b lies above the line from a to p.
			if (a.Energy-b.Energy)*(p.Error-a.Error) > (a.Energy-p.Energy)*(b.Error-a.Error) {
				break
			}
			h = h[:len(h)-1]
		}
		h = append(h, p)
	}
	return h
}

// at returns the number of the point of least error + lambda·energy.
func (c curve) at(lambda float64) int {
	best, least := 0, math.Inf(1)
	for i, p := range c {
		if v := p.Error + float64(lambda*p.Energy); v < least {
			best, least = i, v
		}
	}
	return best
}

// find returns the number of the last point whose error is at most p's.
func (c curve) find(p point) int {
	for i := len(c) - 1; i > 0; i-- {
		if c[i].Error <= p.Error {
			return i
		}
	}
	return 0
}

// curveOf measures all combinations of the passes' steps on a layer, with tuned passes at the given lambdas. It
// returns the curve.
func curveOf(ctx context.Context, l *pass.Layer, lossy []pass.Choice, lambdas []float64) (curve, error) {
	combinations, err := combine(ctx, l, lossy)
	if err != nil {
		return nil, err
	}
	var fixed []point
	for _, steps := range combinations {
		if len(steps) > 0 {
			fixed = append(fixed, point{Steps: steps})
		}
	}
	c, err := pointsOf(ctx, l, lossy, lambdas, append(fixed, point{})...)
	return c.hull(), err
}

// pointsOf measures error and energy of the given points and of the tuned passes' points.
func pointsOf(ctx context.Context, l *pass.Layer, lossy []pass.Choice, lambdas []float64, points ...point) (c curve, err error) {
	keep := l.Keep
	if !slices.ContainsFunc(lossy, func(c pass.Choice) bool { return !c.Pass.ByRow }) {
		keep = l.KeepSample
	}
	free, err := keep(ctx)
	if err != nil {
		return nil, err
	}
	defer free()
	more, err := tuned(ctx, l, lossy, lambdas)
	if err != nil {
		return nil, err
	}
	points = append(points, more...)
	var all [][]*plan.Step
	for _, p := range points {
		all = append(all, p.Steps)
	}
	programs, err := l.Programs(ctx, all)
	if err != nil {
		return nil, err
	}
	if err := program.PrepareTogether(ctx, programs, 1); err != nil {
		return nil, err
	}
	held, err := l.Held(ctx)
	if err != nil {
		return nil, err
	}
	sample := l.Sample(programs...)
	for first := 0; first < len(points); {
		end := min(first+held.Batch(), len(points))
		for i := first; i < end; i++ {
			if err := points[i].predict(ctx, sample, programs[i]); err != nil {
				return nil, err
			}
		}
		lost, err := held.LostOf(ctx, programs[first:end], 1)
		if err != nil {
			return nil, err
		}
		for i, loss := range lost {
			points[first+i].Error = relative(loss)
			programs[first+i].Release()
		}
		first = end
	}
	return points, nil
}

// predict prepares a point's program and predicts its energy.
func (p *point) predict(ctx context.Context, s *pass.Sample, prog *program.Program) error {
	if err := prog.Prepare(ctx, 1); err != nil {
		return err
	}
	e, err := s.Energy(ctx, prog)
	p.Energy = e.Relative
	return err
}

// relative returns the error as a share of the signal.
func relative(l rounding.Loss) float64 {
	if l.Error == 0 {
		return 0
	}
	return l.Error / l.Signal
}

// heldLoss returns the error of a program's outputs on held-out tokens.
func heldLoss(ctx context.Context, l *pass.Layer, p *program.Program) (rounding.Loss, error) {
	held, err := l.Held(ctx)
	if err != nil {
		return rounding.Loss{}, err
	}
	lost, err := held.LostOf(ctx, []*program.Program{p}, 1)
	if err != nil {
		return rounding.Loss{}, err
	}
	return lost[0], nil
}

// tuned returns the points of the tuned passes, at the given lambdas and at each damping of the pass with Feedback.
// Without a tuned pass there are none.
func tuned(ctx context.Context, l *pass.Layer, lossy []pass.Choice, lambdas []float64) (all []point, err error) {
	dampings := []float64{0}
	var feedback, passes []*pass.Pass
	for _, c := range lossy {
		switch {
		case l.Codes() != nil && c.Fits(l.Codes()) != "":
		case c.Pass.Feedback != nil:
			feedback, dampings = append(feedback, c.Pass), c.Pass.Feedback.Dampings(c.Args)
		case c.Pass.Tuned != nil && len(c.Args) == 0:
			passes = append(passes, c.Pass)
		}
	}
	if len(passes) == 0 {
		return nil, nil
	}
	for _, damp := range dampings {
		at := make([]func(float64) any, len(passes))
		for i, p := range passes {
			if at[i], err = p.Tuned(ctx, l, damp); err != nil {
				return nil, err
			}
		}
		for _, lambda := range lambdas {
			var steps []*plan.Step
			for i, p := range passes {
				if data := at[i](lambda); data != nil {
					steps = append(steps, p.TensorStep(l.Weight.Name, data))
				}
			}
			if len(steps) == 0 {
				continue
			}
			for _, p := range feedback {
				steps = append(steps, p.TensorStep(l.Weight.Name, p.Feedback.At(damp)))
			}
			all = append(all, point{Steps: steps, Lambda: lambda})
		}
	}
	return all, nil
}
