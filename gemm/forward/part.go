package forward

import (
	"context"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
)

// part is what a block computes between two norms: attention, a feed-forward network, routed experts.
type part interface {
	// first are the linear layers that read the part's input. rest are the layers behind them. Both are in
	// the order in which they are computed.
	first() []linear
	rest() []linear
	// load asks for the part's tensors, and makes buffers for batches of so many rows.
	load(ctx context.Context, w Weights, rows int) (loadedPart, error)
}

type loadedPart interface {
	// apply computes y[tokens, hidden] from x[tokens, hidden]. The observer has already seen x as the input
	// of the first layers.
	apply(p *pass, y, x sgemm.Matrix) error
}

// pass is a batch in a block.
type pass struct {
	context.Context
	*Decoder
	observer  Observer // may be nil
	sequences [][]int32
}

func (p *pass) observe(x sgemm.Matrix, layers ...linear) error {
	return observe(p.observer, x, layers...)
}

func observe(o Observer, x sgemm.Matrix, layers ...linear) error {
	if o == nil {
		return nil
	}
	return o.Input(weightNames(layers), x)
}

// mixed is a part with linear layers, a mixer of their outputs, and a last linear layer that reads the result.
type mixed struct {
	in    []linear
	norms []spanNorm // of the first layers' outputs
	mix   mixer
	out   linear
}

// mixer computes what lies between the linear layers of a part.
type mixer interface {
	// widths are those of y and z.
	widths() (in, out int)
	// mix writes z from y, the outputs of the part's first layers side by side. It may overwrite y.
	mix(ctx context.Context, d *Decoder, z, y sgemm.Matrix, sequences [][]int32) error
}

func (m *mixed) first() []linear { return m.in }
func (m *mixed) rest() []linear  { return []linear{m.out} }

type loadedMixed struct {
	*mixed
	in    []loaded
	norms []loadedSpanNorm
	out   loaded
	y, z  sgemm.Matrix
}

func (m *mixed) load(ctx context.Context, w Weights, rows int) (loadedPart, error) {
	l, err := m.loadLayers(ctx, w)
	if err != nil {
		return nil, err
	}
	l.y, l.z = m.room(rows)
	return l, nil
}

// room returns buffers for the outputs of the first layers and of the mixer.
func (m *mixed) room(rows int) (y, z sgemm.Matrix) {
	in, out := m.mix.widths()
	return sgemm.Dense(rows, in, nil), sgemm.Dense(rows, out, nil)
}

// loadLayers loads the layers without buffers.
func (m *mixed) loadLayers(ctx context.Context, w Weights) (l *loadedMixed, err error) {
	l = &loadedMixed{mixed: m}
	if l.in, err = loadAll(ctx, w, m.in); err != nil {
		return nil, err
	}
	for _, n := range m.norms {
		norm, err := n.norm.load(ctx, w)
		if err != nil {
			return nil, err
		}
		l.norms = append(l.norms, loadedSpanNorm{norm, n.columns})
	}
	l.out, err = m.out.load(ctx, w)
	return l, err
}

func (l *loadedMixed) apply(p *pass, to, x sgemm.Matrix) error {
	y, z := l.y.Slice(0, x.Rows, 0, l.y.Cols), l.z.Slice(0, x.Rows, 0, l.z.Cols)
	if err := p.applyAll(p, l.in, y, x); err != nil {
		return err
	}
	for _, n := range l.norms {
		if err := n.apply(p, y); err != nil {
			return err
		}
	}
	if err := l.mix.mix(p, p.Decoder, z, y, p.sequences); err != nil {
		return err
	}
	if err := p.observe(z, l.mixed.out); err != nil {
		return err
	}
	return p.Decoder.apply(p, l.out, to, z)
}

// spanNorm normalises some columns of layers' outputs: each span by itself, from one of columns on, as
// wide as the norm.
type spanNorm struct {
	norm
	columns []int
}

type loadedSpanNorm struct {
	loadedNorm
	columns []int
}

func (n loadedSpanNorm) apply(p *pass, y sgemm.Matrix) error {
	return p.rows(p, y.Rows, func(i int) {
		row := y.Row(i)
		for _, c := range n.columns {
			x := row[c : c+n.width]
			n.loadedNorm.apply(x, x)
		}
	})
}
