package transform

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/transform/rounding"
	"github.com/lowtoggle/lowtoggle/weights"
)

// whole is how a program makes a layer whose values are chosen together and not row by row: its
// result is made once, kept while it is read, and then let go.
type whole struct {
	inputs     Inputs // nil where no tokens are known
	prune      *Prune
	zeros      op // makes the zeros of sparsify; nil where there are none
	trellis    *Trellis
	grid       *Grid
	round      *Bits
	compensate *Feedback

	mu    sync.Mutex
	data  []byte
	known *layer // loaded before, for many tries at one layer; nil: loaded when it is needed
}

// newWhole collects what steps do to a program's layer; nil where they can be carried out row by row.
func newWhole(p *program, steps []*Step, in Inputs) (*whole, error) {
	w := &whole{inputs: in}
	for _, s := range steps {
		switch {
		case s.Prune != nil:
			w.prune = s.Prune
		case s.Zeros != nil:
			w.zeros = p.ops[0] // the first of the table's passes that has one
		case s.Trellis != nil:
			w.trellis = s.Trellis
		case s.Grid != nil:
			w.grid = s.Grid
		case s.Round != nil:
			w.round = s.Round
		case s.Compensate != nil:
			w.compensate = s.Compensate
		}
	}
	if w.prune == nil && w.trellis == nil && w.compensate == nil {
		return nil, nil
	}
	choosers := 0
	for _, is := range []bool{w.trellis != nil, w.grid != nil, w.round != nil} {
		if is {
			choosers++
		}
	}
	switch {
	case p.affine != nil:
		return nil, errors.New("a shifted layer is not chosen as a whole: leave out shift, or prune, trellis and compensate")
	case choosers > 1:
		return nil, errors.New("prune, trellis and compensate take one of trellis, grid and round")
	case w.round != nil && w.round.Truncate:
		return nil, errors.New("truncated values cannot be compensated: round to nearest")
	case w.compensate != nil && in == nil:
		return nil, fmt.Errorf("compensate weighs errors by the layer's inputs: %w", errNoInputs)
	case w.prune != nil && len(w.prune.Inputs) > 0 && w.compensate == nil:
		return nil, errors.New("pruned inputs need compensate")
	}
	return w, nil
}

var errNoInputs = errors.New("give the tokens that it was planned with (--tokens FILE)")

// layer is a program's layer before anything lossy, outputs as rows.
type layer struct {
	w    sgemm.Matrix // [N, K]
	h    sgemm.Matrix // [K, K] of its inputs; without rows where they are not known
	from []int        // the source's position of each input
	// signal is the power of the outputs on these inputs, or on inputs of unit variance.
	signal float64
}

// positions in the source of inputs of the layer.
func (l *layer) positions(inputs []int) []int {
	out := make([]int, len(inputs))
	for i, k := range inputs {
		out[i] = l.from[k]
	}
	return out
}

// layer loads the program's layer. moments, either function of Inputs, may be nil.
func (p *program) layer(ctx context.Context, moments func(context.Context, string) (sgemm.Matrix, error), workers int) (*layer, error) {
	bare := *p
	bare.whole, bare.ops = nil, nil
	w, err := bare.outputs(ctx)
	if err != nil {
		return nil, err
	}
	axis, k := p.inputAxis()
	l := &layer{w: w, from: make([]int, k)}
	for i := range l.from {
		l.from[i] = at(axis.gather, i, i)
	}
	if moments != nil {
		if l.h, err = p.moments(ctx, moments); err != nil {
			return nil, err
		}
	}
	l.signal, err = l.power(ctx, sgemm.Matrix{}, workers)
	return l, err
}

// fitted is the layer with the inputs that values are chosen by.
func (p *program) fitted(ctx context.Context, in Inputs, workers int) (*layer, error) {
	if in == nil {
		return p.layer(ctx, nil, workers)
	}
	return p.layer(ctx, in.Moments, workers)
}

// outputs are the result's values, each row an output's.
func (p *program) outputs(ctx context.Context) (sgemm.Matrix, error) {
	m := sgemm.Dense(p.rows, p.cols, nil)
	err := p.eachValues(ctx, 0, p.rows, func(b block, v []float32) { copy(m.Data[b.first*p.cols:], v) })
	if p.outAxis == 1 {
		m = transposed(m)
	}
	return m, err
}

// sourceValues are the result's values where the source has them, without signs and powers of two:
// what other layers, left as they are, go together with.
func (p *program) sourceValues(ctx context.Context) ([]float32, error) {
	out := make([]float32, p.rows*p.cols)
	err := p.eachValues(ctx, 0, p.rows, func(b block, v []float32) {
		for i := range b.rows {
			row := at(p.row.gather, b.first+i, b.first+i)
			for k := range p.cols {
				col := at(p.col.gather, k, k)
				x := ldexp(v[i*p.cols+k], -at(p.row.exp, row, 0)-at(p.col.exp, col, 0))
				if at(p.row.flip, row, false) != at(p.col.flip, col, false) {
					x = -x
				}
				out[row*p.cols+col] = x
			}
		}
	})
	return out, err
}

func transposed(m sgemm.Matrix) sgemm.Matrix {
	t := sgemm.Dense(m.Cols, m.Rows, nil)
	const tile = 32
	for r0 := 0; r0 < m.Rows; r0 += tile {
		for c0 := 0; c0 < m.Cols; c0 += tile {
			for r := r0; r < min(r0+tile, m.Rows); r++ {
				for c := c0; c < min(c0+tile, m.Cols); c++ {
					t.Data[c*m.Rows+r] = m.Data[r*m.Cols+c]
				}
			}
		}
	}
	return t
}

// prepare makes a whole result, with the given number of goroutines; other programs need none.
func (p *program) prepare(ctx context.Context, workers int) error {
	if p.whole == nil {
		return nil
	}
	p.whole.mu.Lock()
	defer p.whole.mu.Unlock()
	if p.whole.data != nil {
		return nil
	}
	err := weights.Guard(p.src.File, func() (err error) {
		p.whole.data, err = p.choose(ctx, workers)
		return err
	})
	if err != nil {
		p.whole.data = nil
		return fmt.Errorf("%s: tensor %q: %w", p.src.File, p.src.Name, err)
	}
	return nil
}

// letGo frees a whole result.
func (p *program) letGo() {
	if p.whole != nil {
		p.whole.mu.Lock()
		p.whole.data = nil
		p.whole.mu.Unlock()
	}
}

// choose all values of the layer, stored as the result's bytes.
func (p *program) choose(ctx context.Context, workers int) (data []byte, err error) {
	l := p.whole.known
	if l == nil {
		if l, err = p.fitted(ctx, p.whole.inputs, workers); err != nil {
			return nil, err
		}
	}
	q, err := p.whole.values(ctx, p, l, workers)
	if err != nil {
		return nil, err
	}
	if p.outAxis == 1 {
		q = transposed(q)
	}
	data = make([]byte, p.rows*p.rowBytes())
	p.format.Encode(data, q.Data)
	return data, p.keepNotFinite(ctx, data)
}

// keepNotFinite gives values that are not finite their own bits back.
func (p *program) keepNotFinite(ctx context.Context, data []byte) error {
	bare := *p
	bare.whole, bare.ops = nil, nil
	return bare.eachBlock(ctx, 0, p.rows, func(b block) {
		for i := range b.rows * b.cols {
			if v := b.format.Elem(b.data, i); !b.format.Finite(v) {
				b.format.SetElem(data, b.first*b.cols+i, v)
			}
		}
	})
}

// values of the layer as the steps choose them.
func (w *whole) values(ctx context.Context, p *program, l *layer, workers int) (q sgemm.Matrix, err error) {
	n, k := l.w.Rows, l.w.Cols
	f := rounding.Flat(k)
	zero := 0
	switch {
	case w.compensate != nil:
		var first []int
		if w.prune != nil {
			in, _ := p.inputAxis()
			first, _ = in.places(k, w.prune.Inputs) // checked when it was compiled
		}
		zero = len(first)
		if f, err = rounding.NewFactor(ctx, l.h, rounding.FactorOptions{Damp: w.compensate.Damp, First: first, Workers: workers}); err != nil {
			return q, err
		}
	case l.h.Rows > 0:
		f = rounding.Uncompensated(l.h)
	}
	c, err := w.chooser(ctx, p, n, rounding.Loss{Signal: l.signal}.Scale(n*k))
	if err != nil {
		return q, err
	}
	if q, err = rounding.Round(ctx, l.w, f, c, rounding.Options{Workers: workers, Zero: zero}); err != nil {
		return q, err
	}
	if w.prune != nil {
		out, _ := p.outputAxis()
		rows, _ := out.places(n, w.prune.Outputs)
		for _, r := range rows {
			clear(q.Row(r))
		}
	}
	return q, nil
}

// lost is what the layer's outputs lose with the values of q.
func (l *layer) lost(ctx context.Context, q sgemm.Matrix, workers int) (rounding.Loss, error) {
	e, err := l.power(ctx, q, workers)
	return rounding.Loss{Error: e, Signal: l.signal}, err
}

// power of what outputs change by with the values of q, or of the outputs where q has no rows: on the
// layer's inputs, or, where they are not known, on inputs of unit variance.
func (l *layer) power(ctx context.Context, q sgemm.Matrix, workers int) (sum float64, err error) {
	if l.h.Rows > 0 {
		return rounding.Power(ctx, l.w, q, l.h, workers)
	}
	for n := range l.w.Rows {
		for k, v := range l.w.Row(n) {
			d := float64(v)
			if d-d != 0 {
				continue
			}
			if q.Rows > 0 {
				d -= float64(q.Row(n)[k])
			}
			sum += float64(d * d) // explicit, so that no machine fuses it
		}
	}
	return sum, ctx.Err()
}

func (w *whole) chooser(ctx context.Context, p *program, n int, scale float64) (c rounding.Chooser, err error) {
	switch {
	case w.trellis != nil:
		c = rounding.Trellis{Format: p.format, Rates: w.trellis.Rates, Lambda: w.trellis.Lambda, Scale: scale}
	case w.grid != nil:
		if len(w.grid.Exponents) != n {
			return nil, fmt.Errorf("the grid's steps are not one for each of %d outputs", n)
		}
		c = rounding.Grid{Format: p.format, Exponents: w.grid.Exponents}
	case w.round != nil:
		c = rounding.Bits{Format: p.format, Zeroed: w.round.Zeroed}
	default:
		c = rounding.Stored{Format: p.format}
	}
	if w.zeros == nil {
		return c, nil
	}
	keep, err := p.kept(ctx, w.zeros)
	return rounding.Sparse{Chooser: c, Keep: keep}, err
}

// kept tells the elements that sparsify leaves, outputs as rows.
func (p *program) kept(ctx context.Context, zeros op) ([]bool, error) {
	bare := *p
	bare.whole, bare.ops = nil, []op{zeros}
	keep := make([]bool, p.rows*p.cols)
	n, k := p.rows, p.cols
	if p.outAxis == 1 {
		n, k = k, n
	}
	err := bare.eachValues(ctx, 0, p.rows, func(b block, v []float32) {
		for i, x := range v {
			r, c := b.first+i/b.cols, i%b.cols
			if p.outAxis == 1 {
				r, c = c, r
			}
			keep[r*k+c] = x != 0
		}
	})
	return keep, err
}

func ldexp(v float32, exp int) float32 { return float32(math.Ldexp(float64(v), exp)) }
