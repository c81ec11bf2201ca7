package transform

import (
	"math"
	"slices"

	"github.com/lowtoggle/lowtoggle/transform/rounding"
)

// point is one way to treat a layer.
type point struct {
	Steps  []*Step `json:"steps,omitempty"`
	Error  float64 `json:"error"`  // of the output's power, on the layer's inputs
	Energy float64 `json:"energy"` // relative, predicted
}

// curve is what may be had of a layer: points of rising error and falling energy, each of which is
// best at some price of error; the first leaves the layer as it is.
type curve []point

// hull drops the points that are best at no price.
func (c curve) hull() curve {
	c = slices.Clone(c)
	slices.SortStableFunc(c, func(a, b point) int {
		switch {
		case a.Error < b.Error || a.Error == b.Error && a.Energy < b.Energy:
			return -1
		case a.Error > b.Error || a.Energy > b.Energy:
			return 1
		}
		return 0
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

// at is the point of least error + price·energy.
func (c curve) at(price float64) int {
	best, least := 0, math.Inf(1)
	for i, p := range c {
		if v := p.Error + price*p.Energy; v < least {
			best, least = i, v
		}
	}
	return best
}

// lambdas of the trellis that a search tries: from gentler than any budget asks for to where only
// powers of two and zeros are left.
func lambdas() []float64 {
	var list []float64
	for e := -17; e <= 3; e++ {
		list = append(list, math.Ldexp(1, e))
	}
	return list
}

// find is the place of a point that the curve was made from, or of the next gentler one.
func (c curve) find(p point) int {
	for i := len(c) - 1; i > 0; i-- {
		if c[i].Error <= p.Error {
			return i
		}
	}
	return 0
}

// curve tries what the passes can do to the target, the trellis with the given lambdas. frees is how
// many weights of other layers a pruned input of this one frees.
func (t *target) curve(passes []Choice, frees float64, lambdas []float64) (curve, error) {
	combos, err := t.combine(passes)
	if err != nil {
		return nil, err
	}
	combos = slices.DeleteFunc(combos, func(steps []*Step) bool { return len(steps) == 0 })
	c, err := t.points(passes, frees, lambdas, append(combos, nil)...)
	return c.hull(), err
}

// points are what the given steps and those of the trellis come to.
func (t *target) points(passes []Choice, frees float64, lambdas []float64, combos ...[]*Step) (c curve, err error) {
	t.known.keep = true
	defer func() { t.known = knownLayer{} }()
	if _, err := t.fitted(); err != nil {
		return nil, err
	}
	more, err := t.trellises(passes, frees, lambdas)
	if err != nil {
		return nil, err
	}
	combos = append(combos, more...)
	sample, err := t.sample(combos)
	if err != nil {
		return nil, err
	}
	for _, steps := range combos {
		p, err := t.try(sample, steps)
		if err != nil {
			return nil, err
		}
		c = append(c, p)
	}
	return c, nil
}

// try finds a point.
func (t *target) try(s *sample, steps []*Step) (p point, err error) {
	prog, err := t.compile(steps...)
	if err != nil {
		return p, err
	}
	if err := prog.prepare(t.p.ctx, 1); err != nil {
		return p, err
	}
	defer prog.letGo()
	e, err := s.energy(t.p, prog)
	if err != nil {
		return p, err
	}
	loss, err := t.inputLoss(prog)
	return point{steps, ratio(loss), e.Relative}, err
}

func ratio(l rounding.Loss) float64 {
	if l.Error == 0 {
		return 0
	}
	return l.Error / l.Signal
}

// inputLoss of a program's result on inputs that are held back.
func (t *target) inputLoss(prog *program) (rounding.Loss, error) {
	held, err := t.heldBack()
	if err != nil {
		return rounding.Loss{}, err
	}
	after, err := prog.outputs(t.p.ctx)
	if err != nil {
		return rounding.Loss{}, err
	}
	return held.lost(t.p.ctx, after, 1)
}

// fitted and heldBack load the target before anything lossy, with the inputs that values are chosen
// by and with those that are held back. While keep is set they stay loaded.
func (t *target) fitted() (l *layer, err error) {
	return t.loaded(&t.known.fitted, func() (*layer, error) { return t.base.fitted(t.p.ctx, t.p.opt.Inputs, 1) })
}

func (t *target) heldBack() (*layer, error) {
	return t.loaded(&t.known.held, func() (*layer, error) {
		if t.p.opt.Inputs == nil {
			return t.base.layer(t.p.ctx, nil, 1)
		}
		return t.base.layer(t.p.ctx, t.p.opt.Inputs.Held, 1)
	})
}

func (t *target) loaded(known **layer, load func() (*layer, error)) (l *layer, err error) {
	if *known != nil {
		return *known, nil
	}
	if l, err = load(); err == nil && t.known.keep {
		*known = l
	}
	return l, err
}

// damps are tried where compensate names none: little fits best to the tokens that are known, much is
// the better for others.
var damps = []float64{1e-3, 1e-2, 1e-1}

// trellises are the steps of the trellis at the given lambdas, with the inputs pruned that it then
// pays to prune; none where the passes do not name it.
func (t *target) trellises(passes []Choice, frees float64, lambdas []float64) (all [][]*Step, err error) {
	var use, prune bool
	feedbacks := []*Feedback{nil}
	for _, c := range passes {
		switch c.Pass {
		case trellisPass:
			use = len(c.Args) == 0
		case prunePass:
			prune = len(c.Args) == 0
		case compensatePass:
			feedbacks = nil
			for _, damp := range damps {
				feedbacks = append(feedbacks, &Feedback{damp})
			}
			if len(c.Args) > 0 {
				steps, _ := c.Pass.candidates(t, c.Args)
				feedbacks = []*Feedback{steps[0].Compensate}
			}
		}
	}
	if !use {
		return nil, nil
	}
	rates, err := t.rates()
	if err != nil {
		return nil, err
	}
	for _, f := range feedbacks {
		pruned := func(float64) *Prune { return nil }
		if prune && f != nil {
			if pruned, err = t.pruner(f, frees, rates); err != nil {
				return nil, err
			}
		}
		for _, lambda := range lambdas {
			var steps []*Step
			if p := pruned(lambda); p != nil {
				steps = append(steps, &Step{Pass: prunePass.Name, Prune: p})
			}
			steps = append(steps, &Step{Pass: trellisPass.Name, Trellis: &Trellis{lambda, rates}})
			if f != nil {
				steps = append(steps, &Step{Pass: compensatePass.Name, Compensate: f})
			}
			for _, s := range steps {
				s.Tensor = t.tensor.Name
			}
			all = append(all, steps)
		}
	}
	return all, nil
}

// pruner says which inputs it pays to prune at a lambda: nil for none.
func (t *target) pruner(f *Feedback, frees float64, rates rounding.Rates) (func(lambda float64) *Prune, error) {
	l, err := t.fitted()
	if err != nil {
		return nil, err
	}
	pruning, err := rounding.Prune(t.p.ctx, l.w, l.h, rounding.PruneOptions{Damp: f.Damp, Workers: 1})
	if err != nil {
		return nil, err
	}
	saved := max(0, rates.Significant[1]-rates.Line) * (float64(l.w.Rows) + frees)
	return func(lambda float64) *Prune {
		n := pruning.Best(lambda * saved)
		if n == 0 || n == l.w.Cols {
			return nil
		}
		return &Prune{Inputs: l.positions(pruning.Order[:n])}
	}, nil
}

func trellisOf(steps []*Step) *Trellis {
	for _, s := range steps {
		if s.Trellis != nil {
			return s.Trellis
		}
	}
	return nil
}
