package transform

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/weights"
)

// target is a layer for which the lossy passes choose.
type target struct {
	p      *planner
	tensor weights.Tensor
	format weights.Format
	fixed  []*Step // compensated steps that are already decided
	base   *program
	rms    []float64
	known  knownLayer
}

// knownLayer is a target's layer while much is tried with it.
type knownLayer struct {
	keep         bool
	fitted, held *layer
}

// compile gives the program of the fixed steps and some more.
func (t *target) compile(more ...*Step) (*program, error) {
	prog, err := t.p.compiler.program(t.tensor, append(append([]*Step{}, t.fixed...), more...))
	if err == nil && prog.whole != nil {
		prog.whole.known = t.known.fitted
	}
	return prog, err
}

// outputRMS is the root mean square of each output's weights in the result's order, before
// anything lossy; values that are not finite do not count.
func (t *target) outputRMS() ([]float64, error) {
	if t.rms != nil {
		return t.rms, nil
	}
	p := t.base
	outputs := p.rows
	if p.outAxis == 1 {
		outputs = p.cols
	}
	sum, n := make([]float64, outputs), make([]float64, outputs)
	err := p.eachValues(t.p.ctx, 0, p.rows, func(b block, v []float32) {
		for i := range b.rows {
			out, step := b.first+i, 0
			if p.outAxis == 1 {
				out, step = 0, 1
			}
			for _, x := range v[i*b.cols : (i+1)*b.cols] {
				if x-x == 0 {
					sum[out] += float64(float64(x) * float64(x)) // explicit, so that no machine fuses it
					n[out]++
				}
				out += step
			}
		}
	})
	for i := range sum {
		sum[i] = math.Sqrt(sum[i] / max(1, n[i]))
	}
	t.rms = sum
	return sum, err
}

// choice is one way to treat a target, with what is known of it.
type choice struct {
	steps  []*Step
	energy cost.Estimate // from the sample
	snr    float64       // of the sample, dB
}

// choose takes, among all combinations of the lossy passes' candidates, the one that is predicted
// to save most within the budget. missed says what of an explicit request did not fit.
func (t *target) choose(combos [][]*Step, explicit []string) (steps []*Step, out Outlook, err error) {
	out = Outlook{Tensor: t.tensor.Name, Linear: true}
	sample, err := t.sample(combos)
	if err != nil {
		return nil, out, err
	}
	before, err := sample.energy(t.p, t.base.untouched())
	if err != nil {
		return nil, out, err
	}
	base := before
	if !t.base.identity() {
		if base, err = sample.energy(t.p, t.base); err != nil {
			return nil, out, err
		}
	}
	out.Before = &before
	var list []choice
	for _, steps := range combos {
		prog, err := t.compile(steps...)
		if err != nil {
			return nil, out, err
		}
		if err := prog.prepare(t.p.ctx, 1); err != nil {
			return nil, out, err
		}
		c := choice{steps: steps, energy: base}
		if least := t.p.opt.MinSNR; least != nil {
			// What was asked for by name is judged by the whole tensor alone.
			if c.snr = sample.snr(t.p, prog); c.snr < *least-slack && len(explicit) == 0 {
				prog.letGo()
				continue
			}
		}
		if len(steps) > 0 {
			if c.energy, err = sample.energy(t.p, prog); err != nil {
				return nil, out, err
			}
		}
		prog.letGo()
		list = append(list, c)
	}
	best, loss, err := t.best(list)
	if err != nil {
		return nil, out, err
	}
	out.NonFinite = loss.nonFinite
	after := base
	switch {
	case best != nil && best.energy.Relative < base.Relative+1e-9 || best != nil && len(explicit) > 0:
		steps, after = best.steps, best.energy
		if t.p.opt.MinSNR != nil {
			if t.p.opt.Inputs != nil && slices.ContainsFunc(steps, (*Step).Whole) {
				out.InputSNR = finiteOrNil(loss.decibels())
			} else {
				out.SNR = finiteOrNil(loss.decibels())
			}
		}
	case len(explicit) > 0:
		out.Missed = fmt.Sprintf("%v would fall below %g dB", explicit, *t.p.opt.MinSNR)
	}
	out.After = &after
	return steps, out, nil
}

// slack is how far a sample's signal-to-noise ratio may be off the whole tensor's, in decibels.
const slack = 0.25

// best is the choice of least energy that keeps the budget, checked on the whole tensor. Without a
// budget nothing is checked.
func (t *target) best(list []choice) (best *choice, l loss, err error) {
	for len(list) > 0 {
		i := 0
		for j := range list {
			a, b := list[j].energy.Relative, list[i].energy.Relative
			if a < b || a == b && list[j].snr > list[i].snr {
				i = j
			}
		}
		c := list[i]
		if t.p.opt.MinSNR == nil {
			return &c, l, nil
		}
		prog, err := t.compile(c.steps...)
		if err != nil {
			return nil, l, err
		}
		if err := prog.prepare(t.p.ctx, 1); err != nil {
			return nil, l, err
		}
		if l, err = prog.loss(t.p.ctx, 0, prog.rows); err != nil || l.decibels() >= *t.p.opt.MinSNR {
			return &c, l, err
		}
		list[i] = list[len(list)-1]
		list = list[:len(list)-1]
	}
	return nil, l, nil
}

func finiteOrNil(v float64) *float64 {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return nil
	}
	return &v
}

// fits reports whether a tensor keeps the budget under a step of the pass being planned.
func (p *planner) fits(name string, s *Step) (bool, error) {
	if p.opt.MinSNR == nil {
		return true, nil
	}
	s.Pass = p.pass.Name
	tensor, _ := p.model.Tensor(name)
	f, _ := tensor.DType.Format()
	prog, err := (&target{p: p, tensor: tensor, format: f}).compile(s)
	if err != nil {
		return false, err
	}
	l, err := prog.loss(p.ctx, 0, prog.rows)
	return l.decibels() >= *p.opt.MinSNR, err
}

// planTensors lets the lossy passes choose for every layer, several layers at a time.
func (p *planner) planTensors() error {
	var lossy []Choice
	var explicit []string
	for _, c := range p.opt.Passes {
		if c.Pass.Class == Lossy {
			lossy = append(lossy, c)
			if len(c.Args) > 0 {
				explicit = append(explicit, c.String())
			}
		}
	}
	if err := p.compile(); err != nil {
		return err
	}
	fixed := byTensor(p.plan.Steps)
	var targets []*target
	for _, info := range p.model.Infos() {
		if f, ok := info.DType.Format(); ok && p.layout.IsLinear(info) && info.Len() > 0 {
			if p.opt.Inputs != nil && (p.opt.MaxLoss != nil || UsesInputs(p.opt.Passes)) && !p.opt.Inputs.Has(info.Name) {
				p.note("%s: no token gets to it as a layer: nothing lossy is done to it", info.Name)
				continue
			}
			tensor, _ := p.model.Tensor(info.Name)
			targets = append(targets, &target{p: p, tensor: tensor, format: f, fixed: fixed[info.Name]})
		}
	}
	if p.opt.MaxLoss != nil {
		return p.planBudget(targets, lossy)
	}
	steps := make([][]*Step, len(targets))
	outlook := make([]Outlook, len(targets))
	err := p.parallel(p.ctx, "plan", len(targets), len(targets), func(i int) (err error) {
		t := targets[i]
		if t.base, err = t.compile(); err != nil {
			return err
		}
		combos, err := t.combine(lossy)
		if err != nil {
			return err
		}
		steps[i], outlook[i], err = t.choose(combos, explicit)
		return err
	})
	for i := range targets {
		p.plan.Steps = append(p.plan.Steps, steps[i]...)
		p.plan.Outlook = append(p.plan.Outlook, outlook[i])
	}
	return err
}

// combine lists what the lossy passes may do together: all that have arguments, and besides them
// one candidate of those that have none, or nothing.
func (t *target) combine(lossy []Choice) ([][]*Step, error) {
	fixed := [][]*Step{nil} // alternatives of the passes with arguments
	var free []*Step
	var modifiers []*Step
	for _, c := range lossy {
		cands, err := c.Pass.candidates(t, c.Args)
		if err != nil {
			return nil, err
		}
		for _, s := range cands {
			s.Pass, s.Tensor = c.Pass.Name, t.tensor.Name
		}
		if c.Pass.modifies {
			modifiers = append(modifiers, cands...)
		} else if len(c.Args) == 0 {
			free = append(free, cands...)
		} else if len(cands) > 0 {
			fixed = withEach(fixed, cands)
		}
	}
	combos := fixed
	for _, s := range free {
		combos = append(combos, withEach(fixed, []*Step{s})...)
	}
	for _, m := range modifiers {
		for i, c := range combos {
			if len(c) > 0 {
				combos[i] = append(c[:len(c):len(c)], m)
			}
		}
	}
	return combos, nil
}

// withEach appends each of the steps to each of the combinations, in the table's order.
func withEach(combos [][]*Step, steps []*Step) [][]*Step {
	var all [][]*Step
	for _, c := range combos {
		for _, s := range steps {
			next := append(append([]*Step{}, c...), s)
			slices.SortStableFunc(next, func(a, b *Step) int { return passRank(a.Pass) - passRank(b.Pass) })
			all = append(all, next)
		}
	}
	return all
}

// sample is a few ranges of rows of a program's result.
type sample struct {
	ranges [][2]int
	data   []byte  // holds them, one program's at a time
	scale  float64 // root mean square of the source's; 0: not asked for yet
}

// sample cuts ranges of whole blocks of every combination's steps, spread evenly.
func (t *target) sample(combos [][]*Step) (*sample, error) {
	p, unit := t.base, 1
	for _, steps := range combos {
		prog, err := t.compile(steps...)
		if err != nil {
			return nil, err
		}
		unit = max(unit, prog.unit) // all are powers of two
	}
	s := &sample{ranges: cost.SampleRows(p.rows, p.cols, unit)}
	rows := 0
	for _, r := range s.ranges {
		rows += r[1] - r[0]
	}
	s.data = make([]byte, rows*p.rowBytes())
	return s, nil
}

// energy predicts a product by a program's result from the sample's ranges of it. Where powers of two
// are planned it is relative to random weights of the source's scale, so that before and after compare.
func (s *sample) energy(p *planner, prog *program) (e cost.Estimate, err error) {
	w := cost.Weights{DType: prog.src.DType, OutAxis: prog.outAxis, Rows: prog.rows, Cols: prog.cols}
	rest := s.data
	for _, r := range s.ranges {
		if err := p.ctx.Err(); err != nil {
			return e, err
		}
		n := (r[1] - r[0]) * prog.rowBytes()
		prog.run(rest[:n], r[0], r[1]-r[0])
		w.Bands = append(w.Bands, cost.Band{First: r[0], Data: rest[:n]})
		rest = rest[n:]
	}
	if prog.row.exp != nil || prog.col.exp != nil {
		if w.Scale, err = s.sourceScale(p.ctx, prog); err != nil {
			return e, err
		}
	}
	if e, err = p.opt.Cost.Energy(p.ctx, w, p.opt.Role, p.opt.Workload); err != nil {
		err = fmt.Errorf("%s: tensor %q: predicting energy: %w", prog.src.File, prog.src.Name, err)
	}
	return e, err
}

// sourceScale is the root mean square of the sample's ranges of a program's source.
func (s *sample) sourceScale(ctx context.Context, prog *program) (_ float64, err error) {
	if s.scale > 0 {
		return s.scale, nil
	}
	w := cost.Weights{DType: prog.src.DType, OutAxis: prog.outAxis, Rows: prog.rows, Cols: prog.cols}
	for _, r := range s.ranges {
		w.Bands = append(w.Bands, cost.Band{First: r[0], Data: prog.src.Data[r[0]*prog.rowBytes() : r[1]*prog.rowBytes()]})
	}
	s.scale, err = w.RMS(ctx)
	return s.scale, err
}

func (s *sample) snr(p *planner, prog *program) float64 {
	var sum loss
	for _, r := range s.ranges {
		l, _ := prog.loss(p.ctx, r[0], r[1]) // where ctx ends nothing is decided any more
		sum = sum.plus(l)
	}
	return sum.decibels()
}
