package program

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/lowtoggle/lowtoggle/transform/rounding"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// coded chooses the codes and scales of a quantised weight. Rows of the result are its values in float32.
// [Program.Recoded] returns the stored codes and scales.
type coded struct {
	weight   *quant.Quantised
	rule     Recoding
	operand  weights.DType
	hessians Hessians // nil if the errors of all inputs have equal weight
	damp     float64
	books    *books // of rows without error feedback and energy term

	mu    sync.Mutex
	done  []*quant.Matrix // by expert; nil before Prepare
	last  []*codedBlock   // the rows used last, of rows that share no scales with others
	layer *Layer          // loaded in advance; nil: loaded when needed

	experts struct { // shared by the experts until the last one is done
		mu    sync.Mutex
		layer *Layer
	}
}

// ErrNotCodes marks a step whose pass cannot change codes.
var ErrNotCodes = errors.New("the weight is stored as codes, which this pass does not choose")

// newCoded merges the operations' rules for a quantised weight; nil if there are none.
func newCoded(p *Program, ops []Operation, h Hessians) (*coded, error) {
	if p.Source.Quantised == nil || len(ops) == 0 {
		return nil, nil
	}
	c := &coded{weight: p.Source.Quantised, operand: p.Source.Quantised.Operand(), books: newBooks()}
	changes := false
	for _, o := range ops {
		if o.Codes == nil && o.Damp == 0 {
			return nil, fmt.Errorf("%s: %w", o.pass, ErrNotCodes)
		}
		if o.Codes != nil {
			c.rule, changes = c.rule.merge(*o.Codes), true
		}
		if o.Joint {
			c.hessians = h
		}
		if o.Damp > 0 {
			if c.damp = o.Damp; h == nil {
				return nil, fmt.Errorf("%s needs the layer's inputs: %w", o.pass, ErrNoHessians)
			}
		}
	}
	if !changes && p.reference == nil { // errors of unchanged codes are not fed back
		return nil, nil
	}
	return c, nil
}

// alone reports whether each row can be computed without the other rows.
func (c *coded) alone() bool { return c.hessians == nil && c.rule.Lambda == 0 }

// Coded reports whether the program's weight is stored as codes.
func (p *Program) Coded() bool { return p.Source.Quantised != nil }

// Referenced reports whether the codes approximate the weights of another model.
func (p *Program) Referenced() bool { return p.reference != nil }

// perExpert returns the number of rows of one expert's matrix.
func (p *Program) perExpert() int { return p.Rows / max(1, p.Source.Quantised.Experts()) }

// Recoded computes codes and scales of an expert's result. If codes is false, only the scales are valid.
func (p *Program) Recoded(ctx context.Context, expert int, codes bool, workers int) (*quant.Matrix, error) {
	m, err := p.recoded(ctx, expert, codes, workers)
	if err == nil {
		m, err = p.moved.matrix(m)
	}
	if err != nil {
		return nil, fmt.Errorf("tensor %q: %w", p.Source.Name, err)
	}
	return m, nil
}

// recoded is Recoded in the source's order.
func (p *Program) recoded(ctx context.Context, expert int, codes bool, workers int) (m *quant.Matrix, err error) {
	c := p.coded
	err = weights.Guard(p.File(), func() error {
		src, err := p.Source.Quantised.Read(expert)
		if err != nil || c == nil {
			m = src
			return err
		}
		m, err = c.recode(ctx, p, src, expert, codes, workers)
		return err
	})
	return m, err
}

// HasNoEffect reports whether a quantised weight's steps change neither its codes nor its scales. In a new format,
// the choice between two equally near codes is not a change. Steps with error feedback always count as changes.
func (p *Program) HasNoEffect(ctx context.Context, workers int) (bool, error) {
	if p.coded == nil || p.coded.hessians != nil {
		return p.coded == nil, nil
	}
	without := p.Untouched()
	if p.Source.Quantised.Make != nil { // compare with the result of the same arithmetic
		without.reference, without.coded = p.reference, &coded{weight: p.coded.weight, operand: p.coded.operand, books: newBooks()}
	}
	for expert := range p.Source.Quantised.Experts() {
		want, err := without.recoded(ctx, expert, true, workers)
		if err != nil {
			return false, err
		}
		got, err := p.recoded(ctx, expert, true, workers)
		if err != nil || !slices.Equal(got.Codes, want.Codes) || !slices.Equal(got.Scales, want.Scales) {
			return false, err
		}
	}
	return true, nil
}

// recode chooses codes and scales for all rows of an expert.
func (c *coded) recode(ctx context.Context, p *Program, src *quant.Matrix, expert int, codes bool, workers int) (*quant.Matrix, error) {
	r := newRecoder(c.rule, c.operand, src, src.Codes)
	r.target = p.target(expert * src.N)
	var f *rounding.Factor
	if !c.alone() {
		l, err := c.loaded(ctx, p, expert, workers)
		if err != nil {
			return nil, err
		}
		r.scale = rounding.Loss{Signal: l.Signal}.Scale(p.Rows * p.Cols)
		if err := c.weigh(ctx, r, l); err != nil {
			return nil, err
		}
		if codes {
			if f, err = c.factor(ctx, l, workers); err != nil {
				return nil, err
			}
		}
	}
	if err := r.rescale(ctx, workers); err != nil || !codes {
		return r.out, err
	}
	return r.out, r.choose(ctx, f, workers)
}

// loaded returns the layer with the Hessian that codes are fitted to. Experts come in order and load it once.
func (c *coded) loaded(ctx context.Context, p *Program, expert, workers int) (l *Layer, err error) {
	if c.layer != nil {
		return c.layer, nil
	}
	c.experts.mu.Lock()
	defer c.experts.mu.Unlock()
	if l = c.experts.layer; l == nil {
		l, err = p.Fitted(ctx, c.hessians, workers)
	}
	if c.experts.layer = l; err != nil || expert == c.weight.Experts()-1 {
		c.experts.layer = nil
	}
	return l, err
}

// factor returns the factor of the Hessian for error feedback; nil: no feedback, and equal weights for the errors of
// all inputs.
func (c *coded) factor(ctx context.Context, l *Layer, workers int) (*rounding.Factor, error) {
	switch {
	case c.damp > 0:
		return l.dampedFactor(ctx, c.damp, nil, workers)
	case l.known:
		d, err := l.diagonal(ctx)
		if err != nil {
			return nil, err
		}
		return rounding.Uncompensated(d), nil
	}
	return nil, nil
}

// weigh weights errors in the choice of scales by the power of the inputs, if it is known.
func (c *coded) weigh(ctx context.Context, r *recoder, l *Layer) error {
	if !l.known {
		return nil
	}
	d, err := l.diagonal(ctx)
	r.weight = make([]float64, len(d))
	for k, v := range d {
		r.weight[k] = float64(v)
	}
	return err
}

// target returns a function that reads a row of the reference, counted from a first row; nil without a reference.
func (p *Program) target(first int) func(dst []float32, n int) {
	if p.reference == nil {
		return nil
	}
	return func(dst []float32, n int) { readRow(dst, p.reference, first+n) }
}

// readRow decodes a row of a weight.
func readRow(dst []float32, w *quant.Weight, n int) {
	f, _ := w.DType.Format()
	f.Decode(dst[:w.Cols], w.ReadRows(nil, n, 1))
}

// prepareCoded computes all matrices of the result, unless rows are computed when they are needed.
func (p *Program) prepareCoded(ctx context.Context, workers int) error {
	c := p.coded
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done != nil {
		return nil
	}
	if c.alone() {
		return c.weight.Check()
	}
	done := make([]*quant.Matrix, c.weight.Experts())
	for e := range done {
		var err error
		if done[e], err = p.recoded(ctx, e, true, workers); err != nil {
			return err
		}
	}
	c.done = done
	return nil
}

// release frees all matrices of the result. It also frees the layer if not all experts are done.
func (c *coded) release() {
	c.mu.Lock()
	for _, b := range c.last {
		b.free()
	}
	c.done, c.last = nil, nil
	c.mu.Unlock()
	c.experts.mu.Lock()
	c.experts.layer = nil
	c.experts.mu.Unlock()
}

// eachMatrix calls fn with the matrices of rows [first, first+rows) of the result, or of the source for a program
// without steps. The rows are [from, from+n) of m, and begin at row at of the program.
func (p *Program) eachMatrix(first, rows int, fn func(m *quant.Matrix, from, n, at int)) {
	per := p.perExpert()
	for rows > 0 {
		expert, row := first/per, first%per
		n := min(rows, per-row)
		m, from := p.matrixOf(expert, row, n)
		fn(m, from, n, first)
		first, rows = first+n, rows-n
	}
}

// eachMoved is eachMatrix after the symmetries. Codes and scales that cannot follow the symmetries do not change; see
// [Program.CheckExact].
func (p *Program) eachMoved(first, rows int, fn func(m *quant.Matrix, from, n, at int)) {
	if p.moved == nil {
		p.eachMatrix(first, rows, fn)
		return
	}
	m, _ := p.moved.rows(p.Source.Quantised.Rows(0, 0, 1), first, rows, func(row int) (*quant.Matrix, int) { return p.matrixOf(0, row, 1) })
	fn(m, 0, rows, first)
}

// matrixOf returns a matrix that has rows [row, row+n) of an expert. from is the first row's place in the matrix.
func (p *Program) matrixOf(expert, row, n int) (m *quant.Matrix, from int) {
	q := p.Source.Quantised
	if p.coded == nil {
		return q.Rows(expert, row, n), 0
	}
	if p.coded.done != nil {
		return p.coded.done[expert], row
	}
	b := q.Rows(expert, row, 1).Block[0]
	if b <= 1 {
		return p.recodedRows(expert, row, n), 0
	}
	// Scales are chosen for all rows that share them, so these rows are kept for the next call.
	first := row / b * b
	block := p.coded.block(p, expert, first, min((row+n+b-1)/b*b, p.perExpert())-first)
	return block.matrix(row-block.first, row-block.first+n), row - block.first
}

// recodedRows chooses scales and codes of rows [first, first+n) of an expert. The rows share no scales with other
// rows.
func (p *Program) recodedRows(expert, first, n int) *quant.Matrix {
	r := p.rowsRecoder(expert, first, n)
	r.out.Codes = make([]byte, n*p.Cols)
	if err := r.chooseAlone(context.Background(), 0, n, 1); err != nil {
		panic(err)
	}
	return r.out
}

// rowsRecoder returns the recoder of rows [first, first+n) of an expert, with chosen scales. The rows share no scales
// with other rows. The recoder has no memory for codes yet.
func (p *Program) rowsRecoder(expert, first, n int) *recoder {
	r := newRecoder(p.coded.rule, p.coded.operand, p.Source.Quantised.Rows(expert, first, n), nil)
	r.books, r.target = p.coded.books, p.target(expert*p.perExpert()+first)
	if err := r.rescale(context.Background(), 1); err != nil { // without feedback, the only error is the end of ctx
		panic(err)
	}
	return r
}

// runCoded writes the values of rows of the result.
func (p *Program) runCoded(dst []byte, first, rows int) {
	row := make([]float32, p.Cols)
	p.eachMatrix(first, rows, func(m *quant.Matrix, from, n, at int) {
		for i := range n {
			m.Row(row, from+i)
			p.Format.Encode(dst[(at-first+i)*p.RowBytes():][:p.RowBytes()], row)
		}
	})
}

// OperandDType is the type of the values that tensor cores read; see [quant.Quantised.Operand].
func (p *Program) OperandDType() weights.DType {
	if p.Coded() {
		return p.Source.Quantised.Operand()
	}
	return p.Source.DType
}

// OperandRowBytes returns the length in bytes of a row that RunOperand writes.
func (p *Program) OperandRowBytes() int { return p.Cols * p.OperandDType().Bits() / 8 }

// RunOperand is Run for the values that tensor cores read. A global scale is not included, because kernels apply it
// after the product.
func (p *Program) RunOperand(dst []byte, first, rows int) {
	if !p.Coded() {
		p.Run(dst, first, rows)
		return
	}
	d, size := p.OperandDType(), p.OperandRowBytes()
	p.eachMoved(first, rows, func(m *quant.Matrix, from, n, at int) {
		m.PutOperand(dst[(at-first)*size:][:n*size], d, from, n)
	})
}

// Dequantised reports whether kernels read four-bit codes of the weight from memory and dequantise them.
func (p *Program) Dequantised() bool {
	return p.Coded() && p.OutAxis == 0 && p.Source.Quantised.Dequantised()
}

// PackedRows returns the codes of rows [first, first+rows) of a dequantised result, two in a byte.
func (p *Program) PackedRows(first, rows int) []byte {
	data := make([]byte, 0, rows*p.Cols/2)
	p.eachMoved(first, rows, func(m *quant.Matrix, from, n, _ int) { data = append(data, m.Packed(from, n)...) })
	return data
}

// exact returns the program whose result the codes approximate.
func (p *Program) exact() *Program {
	q := p.Untouched()
	if r := p.reference; r != nil {
		q.Source = r
		q.Format, _ = r.DType.Format()
	}
	return q
}

// lossCoded is Loss for a quantised weight.
func (p *Program) lossCoded(ctx context.Context, first, last int) (l Loss, err error) {
	want, got := make([]float32, p.Cols), make([]float32, p.Cols)
	source := p.Untouched()
	for step := p.windowRows(first); first < last; first += step {
		if err := ctx.Err(); err != nil {
			return l, err
		}
		n := min(step, last-first)
		p.eachMatrix(first, n, func(m *quant.Matrix, from, n, at int) {
			source.eachMatrix(at, n, func(exact *quant.Matrix, row, n, at int) {
				for i := range n {
					if m.Row(got, from+i); p.reference == nil {
						exact.Row(want, row+i)
					} else {
						readRow(want, p.reference, at+i)
					}
					l.add(want, got)
				}
			})
		})
	}
	return l, nil
}

// windowRows returns the number of rows to compute at a time. Rows that share scales are computed together.
func (p *Program) windowRows(first int) int {
	return max(blockElems/max(1, p.Cols), p.Source.Quantised.Rows(first/p.perExpert(), 0, 1).Block[0])
}

// hessianLoss returns the loss of the whole layer on held-out tokens.
func (p *Program) hessianLoss(ctx context.Context, h Hessians) (l Loss, err error) {
	before, err := p.HeldOf(ctx, nil, h, 1)
	if err != nil {
		return l, err
	}
	lost, err := before.LostOf(ctx, []*Program{p}, 1)
	if err != nil {
		return l, err
	}
	return Loss{Signal: lost[0].Signal, Noise: lost[0].Error}, nil
}
