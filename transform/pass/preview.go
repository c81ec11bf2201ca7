package pass

import (
	"context"
	"math"
	"sync"

	"github.com/lowtoggle/lowtoggle/transform/order"
	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// previews approximate the layers' values after the lossy passes. Orders, signs and scales are chosen before the
// lossy passes, and coarse values make labels equal that differ only in low bits.
type previews struct {
	m        *Model
	compiler *program.Compiler // with the planned signs and powers of two, in the source's order
	views    sync.Map          // by weight: func() (*program.Program, error)
	// budgeted shows passes without arguments at the budget of output SNR. Otherwise a preview uses half of their
	// strongest effect.
	budgeted bool
}

func (m *Model) previews() *previews {
	syms := program.Symmetries{}
	for name, s := range m.Compiler.Symmetries() {
		syms[name] = &program.Symmetry{Flip: s.Flip, Exp: s.Exp}
	}
	return &previews{m: m, compiler: m.Compiler.With(syms)}
}

// of returns the preview of a weight. Values of weights that are no layers do not change.
func (v *previews) of(ctx context.Context, w *quant.Weight, layer bool) (*program.Program, error) {
	once, _ := v.views.LoadOrStore(w.Name, sync.OnceValues(func() (p *program.Program, err error) {
		err = guard(w, func() (err error) {
			p, err = v.make(ctx, w, layer)
			return err
		})
		return p, err
	}))
	return once.(func() (*program.Program, error))()
}

func (v *previews) make(ctx context.Context, w *quant.Weight, layer bool) (*program.Program, error) {
	l, err := NewLayer(ctx, v.m.Context, v.compiler, w, nil)
	if err != nil || !layer {
		return l.base, err
	}
	expected := v.m.expected()
	if v.budgeted && v.m.Budget.MinSNR != nil && len(expected) > 0 && len(expected[0].Args) == 0 {
		return l.withinBudget(ctx)
	}
	p := l.base
	for _, c := range expected {
		all, err := c.Pass.Candidates(ctx, l, c.Args)
		if err != nil {
			return nil, err
		}
		if len(all) == 0 {
			continue
		}
		o, err := c.Pass.Preview(ctx, l, all[len(all)/2])
		if err != nil {
			return nil, err
		}
		p = p.With(o)
	}
	return p, nil
}

// expected lists the lossy passes that a preview shows: those with arguments, because they are certain to run. If
// there are none, it is the last pass that a budget chooses for, at half of its strongest effect.
func (m *Model) expected() (list []Choice) {
	var free []Choice
	for _, c := range m.Choices {
		switch {
		case c.Pass.Preview == nil:
		case len(c.Args) > 0:
			list = append(list, c)
		default:
			free = append(free, c)
		}
	}
	if list == nil {
		return free[max(0, len(free)-1):]
	}
	return list
}

// withinBudget returns the preview with the largest predicted saving within the budget of output SNR, among the
// passes without arguments. The saving is predicted from a sample. If no preview saves energy, the layer is
// unchanged.
func (l *Layer) withinBudget(ctx context.Context) (*program.Program, error) {
	list := []*program.Program{l.base}
	for _, c := range l.Choices {
		if c.Pass.Preview == nil || len(c.Args) > 0 {
			continue
		}
		all, err := c.Pass.Candidates(ctx, l, nil)
		if err != nil {
			return nil, err
		}
		for _, data := range all {
			o, err := c.Pass.Preview(ctx, l, data)
			if err != nil {
				return nil, err
			}
			list = append(list, l.base.With(o))
		}
	}
	sample, best, least := l.Sample(list...), l.base, math.Inf(1)
	for _, p := range list {
		loss, err := sample.Loss(ctx, p)
		if err != nil {
			return nil, err
		}
		if loss.Decibels() < *l.Budget.MinSNR {
			continue
		}
		e, err := sample.Energy(ctx, p)
		if err != nil {
			return nil, err
		}
		if e.Relative < least {
			best, least = p, e.Relative
		}
	}
	return best, nil
}

// show returns uses that read the rows of their previews.
func (v *previews) show(ctx context.Context, uses []*use) ([]*order.Use, error) {
	var list []*order.Use
	for _, u := range uses {
		p, err := v.of(ctx, u.w, u.layer)
		if err != nil {
			return nil, err
		}
		shown := u.Use
		shown.Reader = func() func(int) []byte { return rowsOf(p) }
		list = append(list, &shown)
	}
	return list, nil
}

// rowsOf returns a function that reads rows of a program's result, for one goroutine. A row stays valid until the
// next call.
func rowsOf(p *program.Program) func(row int) []byte {
	if p.IsIdentity() {
		return func(row int) []byte { return p.Source.ReadRows(nil, row, 1) }
	}
	size := p.RowBytes()
	block, at := make([]byte, p.Unit*size), -1
	return func(row int) []byte {
		first := row / p.Unit * p.Unit
		if first != at {
			rows := min(p.Unit, p.Rows-first)
			p.Run(block[:rows*size], first, rows)
			at = first
		}
		return block[(row-first)*size : (row-first+1)*size]
	}
}
