package transform

import (
	"context"
	"fmt"
	"slices"

	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// program is what a plan does to one tensor: load rows of the result from the source through the
// symmetries, then rewrite them by the steps of the other passes. It is read-only once compiled
// and used by many workers at a time.
type program struct {
	src        weights.Tensor
	format     weights.Format
	rows, cols int
	// outAxis is 1 where columns are the outputs, as in GPT-2's Conv1D; else 0.
	outAxis int
	row     axisMap
	col     axisMap
	// values replaces the source's numbers, by source position, for biases and norms that a fold
	// rewrites.
	values []float32
	affine *affine
	ops    []op
	// whole takes the ops' place where a layer's values are chosen together; see prepare.
	whole *whole
	// unit is how many rows the ops must see at a time: a multiple of every block's height.
	unit int
}

// block is a range of whole rows of the result.
type block struct {
	first, rows, cols int
	data              []byte
	format            weights.Format
}

// op rewrites a block in place.
type op func(b block)

// identity reports whether the result is the source, byte for byte.
func (p *program) identity() bool {
	return p.row.identity() && p.col.identity() && p.values == nil && p.affine == nil && len(p.ops) == 0 && p.whole == nil
}

// untouched is the program that gives p's source back.
func (p *program) untouched() *program {
	return &program{src: p.src, format: p.format, rows: p.rows, cols: p.cols, outAxis: p.outAxis, unit: 1}
}

// rowBytes is the length of a row in bytes.
func (p *program) rowBytes() int { return p.cols * p.src.DType.Bits() / 8 }

// run writes rows [first, first+rows) of the result to dst. first is a multiple of p.unit. A whole
// result must have been prepared.
func (p *program) run(dst []byte, first, rows int) {
	if p.whole != nil {
		copy(dst[:rows*p.rowBytes()], p.whole.data[first*p.rowBytes():])
		return
	}
	b := block{first, rows, p.cols, dst[:rows*p.rowBytes()], p.format}
	p.load(b)
	if p.affine != nil {
		p.affine.apply(b)
	}
	for _, op := range p.ops {
		op(b)
	}
}

// load fills b through the symmetries. Every value keeps its bits but for the sign and, under
// scaling, the exponent.
func (p *program) load(b block) {
	size := p.rowBytes()
	for i := range b.rows {
		from := at(p.row.gather, b.first+i, b.first+i)
		dst := b.data[i*size : (i+1)*size]
		p.loadRow(dst, from)
		p.mark(dst, from)
	}
}

func (p *program) loadRow(dst []byte, from int) {
	if p.values != nil {
		for k := range p.cols {
			p.format.SetElem(dst, k, p.format.FromValue(p.values[from*p.cols+at(p.col.gather, k, k)]))
		}
		return
	}
	src := p.src.Data[from*len(dst) : (from+1)*len(dst)]
	if p.col.gather == nil {
		copy(dst, src)
		return
	}
	gatherElems(dst, src, p.col.gather, p.src.DType.Bits()/8)
}

func gatherElems(dst, src []byte, from []int, size int) {
	switch size {
	case 1:
		for i, j := range from {
			dst[i] = src[j]
		}
	case 2:
		for i, j := range from {
			*(*[2]byte)(dst[2*i:]) = [2]byte(src[2*j:])
		}
	default:
		for i, j := range from {
			copy(dst[i*size:(i+1)*size], src[j*size:(j+1)*size])
		}
	}
}

// mark applies signs and powers of two to a loaded row.
func (p *program) mark(dst []byte, from int) {
	if p.row.flip == nil && p.col.flip == nil && p.row.exp == nil && p.col.exp == nil {
		return
	}
	rowFlip, rowExp := at(p.row.flip, from, false), at(p.row.exp, from, 0)
	for k := range p.cols {
		j := at(p.col.gather, k, k)
		flip := rowFlip != at(p.col.flip, j, false)
		exp := rowExp + at(p.col.exp, j, 0)
		if flip || exp != 0 {
			b, _ := scaled(p.format, p.format.Elem(dst, k), flip, exp)
			p.format.SetElem(dst, k, b)
		}
	}
}

// scaled multiplies a value by ±2^exp. ok is false where the result is not exact: an overflow, a
// subnormal on either side, a NaN or an infinity; b is then returned as it is.
func scaled(f weights.Format, b uint32, flip bool, exp int) (_ uint32, ok bool) {
	if !f.IsFloat() {
		v := int64(int8(b))
		if flip {
			v = -v
		}
		switch {
		case exp > 8 && v != 0 || exp < -8 && v != 0:
			return b, false
		case exp >= 0:
			v <<= max(0, min(exp, 8))
		case v&(1<<min(-exp, 8)-1) != 0:
			return b, false
		default:
			v >>= min(-exp, 8)
		}
		return uint32(uint8(v)), v >= -128 && v <= 127
	}
	if !f.Finite(b) {
		return b, false
	}
	if exp != 0 && b&^f.SignMask() != 0 {
		e := int(b&f.ExpMask()) >> f.MantBits
		to := b&^f.ExpMask() | uint32(e+exp)<<f.MantBits
		if e == 0 || e+exp < 1 || e+exp >= 1<<f.ExpBits || to&^f.SignMask() > f.MaxFinite {
			return b, false
		}
		b = to
	}
	if flip {
		b ^= f.SignMask()
	}
	return b, true
}

// checkExact is an error naming the first element that the program's signs and powers of two
// cannot multiply exactly.
func (p *program) checkExact(ctx context.Context) error {
	if p.row.flip == nil && p.col.flip == nil && p.row.exp == nil && p.col.exp == nil {
		return nil
	}
	for n := range p.rows {
		if err := ctx.Err(); err != nil {
			return err
		}
		rowFlip, rowExp := at(p.row.flip, n, false), at(p.row.exp, n, 0)
		for k := range p.cols {
			flip, exp := rowFlip != at(p.col.flip, k, false), rowExp+at(p.col.exp, k, 0)
			if !flip && exp == 0 {
				continue
			}
			if _, ok := scaled(p.format, p.format.Elem(p.src.Data, n*p.cols+k), flip, exp); !ok {
				return fmt.Errorf("%w: %s: tensor %q: element [%d, %d] cannot be multiplied by ±2^%d exactly",
					ErrPlan, p.src.File, p.src.Name, n, k, exp)
			}
		}
	}
	return nil
}

// compiler turns steps into programs. It reads tensors only where a fold needs another tensor's
// numbers.
type compiler struct {
	ctx    context.Context // of the compilation: folds read whole tensors
	model  *weights.Model
	layout *arch.Layout // nil where the family is not known
	inputs Inputs       // nil where no tokens are known
	syms   symmetries
	prog   *program
}

// newCompiler merges a plan's exact steps, and refuses folds that lack a part.
func newCompiler(ctx context.Context, m *weights.Model, layout *arch.Layout, steps []*Step) (*compiler, error) {
	c := &compiler{ctx: ctx, model: m, layout: layout, syms: symmetries{}}
	index := map[string]*arch.Index{}
	if layout != nil {
		for _, ix := range layout.Indices {
			index[ix.Name] = ix
		}
	}
	for _, s := range steps {
		pass, _ := Lookup(s.Pass)
		if pass.Class != Exact {
			t, ok := m.Tensor(s.Tensor)
			if !ok || m.Adapter != nil && t.File == m.Adapter.Path {
				return nil, fmt.Errorf("%w: %s: the model has no tensor %q", ErrPlan, s.Pass, s.Tensor)
			}
			continue
		}
		ix := index[s.Index]
		if ix == nil {
			return nil, fmt.Errorf("%w: %s: the model has no index %q", ErrPlan, s.Pass, s.Index)
		}
		sym := c.syms[s.Index]
		if sym == nil {
			sym = &Symmetry{}
			c.syms[s.Index] = sym
		}
		if err := pass.merge(s, sym, ix.Len); err != nil {
			return nil, fmt.Errorf("%w: %s on %s: %w", ErrPlan, s.Pass, s.Index, err)
		}
		if err := sym.check(ix); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrPlan, s.Pass, err)
		}
	}
	if layout != nil {
		return c, checkFolds(layout, steps)
	}
	return c, nil
}

// program compiles what steps (those of this tensor, in the table's order) do to t.
func (c *compiler) program(t weights.Tensor, steps []*Step) (*program, error) {
	format, known := t.DType.Format()
	p := &program{src: t, format: format, unit: 1}
	p.rows, p.cols = t.Matrix()
	if c.layout != nil {
		if claim := c.layout.Claims[t.Name]; claim != nil {
			p.outAxis = claim.OutAxis
			p.row, p.col = c.syms.matrix(claim)
		}
	}
	if t.DType.Bits()%8 != 0 && !p.identity() {
		return nil, fmt.Errorf("%w: tensor %q: elements of %s cannot be moved", ErrPlan, t.Name, t.DType)
	}
	marks := p.row.flip != nil || p.row.exp != nil || p.col.flip != nil || p.col.exp != nil
	if !known && (marks || len(steps) > 0) {
		return nil, fmt.Errorf("%w: tensor %q: values of type %s are not transformed", ErrPlan, t.Name, t.DType)
	}
	prog := *c
	prog.prog = p
	for i, s := range steps {
		pass, _ := Lookup(s.Pass)
		if i > 0 && s.Pass == steps[i-1].Pass {
			return nil, fmt.Errorf("%w: %s: tensor %q: has two steps", ErrPlan, s.Pass, t.Name)
		}
		if err := pass.compile(s, &prog); err != nil {
			return nil, fmt.Errorf("%w: %s: tensor %q: %w", ErrPlan, s.Pass, t.Name, err)
		}
	}
	var err error
	if p.whole, err = newWhole(p, steps, c.inputs); err != nil {
		return nil, fmt.Errorf("%w: tensor %q: %w", ErrPlan, t.Name, err)
	}
	return p, nil
}

// byTensor sorts a plan's tensor steps to their tensors, in the table's order.
func byTensor(steps []*Step) map[string][]*Step {
	m := map[string][]*Step{}
	for _, s := range steps {
		if s.Tensor != "" {
			m[s.Tensor] = append(m[s.Tensor], s)
		}
	}
	for _, list := range m {
		slices.SortStableFunc(list, func(a, b *Step) int { return passRank(a.Pass) - passRank(b.Pass) })
	}
	return m
}

func passRank(name string) int {
	return slices.IndexFunc(Passes, func(p *Pass) bool { return p.Name == name })
}
