package transform

import (
	"sync"

	"github.com/lowtoggle/lowtoggle/transform/rounding"
)

// previews show layers as the lossy passes will leave them, about: orders and signs are chosen first, and
// on coarse values labels may coincide that differ in every low bit.
type previews struct {
	p     *planner
	views sync.Map // by tensor: func() (*view, error)
}

// view is a tensor in the source's order, with the signs and powers of two that are planned.
type view struct{ program }

// newPreviews for the plan as it stands.
func newPreviews(p *planner) *previews {
	q, c := *p, *p.compiler
	c.syms = symmetries{}
	for name, s := range p.compiler.syms {
		c.syms[name] = &Symmetry{Flip: s.Flip, Exp: s.Exp}
	}
	q.compiler = &c
	return &previews{p: &q}
}

// of a use's tensor. Values of tensors that are no layers stay.
func (v *previews) of(u *use) (*view, error) {
	once, _ := v.views.LoadOrStore(u.tensor.Name, sync.OnceValues(func() (*view, error) { return v.make(u) }))
	return once.(func() (*view, error))()
}

func (v *previews) make(u *use) (*view, error) {
	t := &target{p: v.p, tensor: u.tensor, format: u.format}
	base, err := t.compile()
	if err != nil || !u.layer {
		return &view{*base}, err
	}
	t.base = base
	prog := *base
	c := &compiler{ctx: v.p.ctx, prog: &prog}
	for _, choice := range v.p.foreseen() {
		steps, err := choice.Pass.candidates(t, choice.Args)
		if err != nil {
			return nil, err
		}
		if len(steps) == 0 {
			continue
		}
		s := steps[len(steps)/2]
		if s.Trellis != nil {
			err = t.foresee(s.Trellis, &prog)
		} else {
			err = choice.Pass.compile(s, c)
		}
		if err != nil {
			return nil, err
		}
	}
	return &view{prog}, nil
}

// foreseen are the lossy passes that are sure to be carried out: those with arguments. Where there are
// none it is the first pass that a budget chooses for, at half of what it could do.
func (p *planner) foreseen() (list []Choice) {
	var free []Choice
	for _, c := range p.opt.Passes {
		switch {
		case c.Pass != sparsifyPass && c.Pass != trellisPass && c.Pass != gridPass && c.Pass != roundPass:
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

// foresee adds a trellis that weighs all errors alike and decides every value alone.
func (t *target) foresee(trellis *Trellis, prog *program) error {
	rms, err := t.outputRMS()
	if err != nil {
		return err
	}
	var mean float64 // square
	for _, v := range rms {
		mean += v * v / float64(len(rms))
	}
	if mean == 0 {
		return nil
	}
	alone := trellis.Rates
	alone.Differ, alone.Sign, alone.Run = 0, 0, 0
	chooser := rounding.Trellis{Format: t.format, Rates: alone, Lambda: trellis.Lambda, Scale: 1 / mean}
	if _, err := chooser.Begin(prog.rows, prog.cols); err != nil {
		return err
	}
	prog.ops = append(prog.ops, func(b block) {
		choose, _ := chooser.Begin(prog.rows, prog.cols)
		v := make([]float32, b.rows*b.cols)
		b.format.Decode(v, b.data)
		own := map[int]uint32{} // values that are not finite stay
		for i, x := range v {
			if x-x != 0 {
				own[i], v[i] = b.format.Elem(b.data, i), 0
			}
		}
		choose(rounding.Column{D: 1, T: v})
		b.format.Encode(b.data, v)
		for i, x := range own {
			b.format.SetElem(b.data, i, x)
		}
	})
	return nil
}

// rowReader reads rows of a view, one goroutine's.
type rowReader struct {
	v     *view
	first int // row of the block at hand
	block []byte
}

func (v *view) reader() *rowReader { return &rowReader{v: v, first: -1} }

// read gives a row's bytes, which stay valid until the next call.
func (r *rowReader) read(row int) []byte {
	size := r.v.rowBytes()
	if r.v.identity() {
		return r.v.src.Data[row*size : (row+1)*size]
	}
	if r.block == nil {
		r.block = make([]byte, r.v.unit*size)
	}
	first := row / r.v.unit * r.v.unit
	if first != r.first {
		rows := min(r.v.unit, r.v.rows-first)
		r.v.run(r.block[:rows*size], first, rows)
		r.first = first
	}
	return r.block[(row-first)*size : (row-first+1)*size]
}
