package program

import (
	"context"
	"fmt"

	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// Program is the effect of a plan on one weight. It loads rows of the source, applies the symmetries, and then runs
// the operations of the steps. Many goroutines may use a program at a time; only Use, Prepare and Release change it.
// Callers must not change the fields.
type Program struct {
	Source     *quant.Weight
	Format     weights.Format
	Rows, Cols int
	// OutAxis is 1 if columns are the outputs, as in GPT-2's Conv1D; else 0.
	OutAxis int
	// Row and Col are the maps of the symmetries along the axes.
	Row, Col AxisMap
	// Unit is the number of rows that the operations need at a time: the largest Height of an operation, a power of
	// two.
	Unit int

	// values replace the source's values in biases and norms that a fold rewrites. They are in the source's order.
	values []float32
	affine *Affine
	ops    []Op
	extras []Extra
	joint  *joint // replaces ops if the layer's values are chosen together
	coded  *coded // replaces ops if the weight is stored as codes; nil without steps
	moved  *moved // replaces Row and Col if the weight is stored as codes; nil: nothing moves
	// reference has the values that the codes should approximate; nil: the values of the source's codes.
	reference *quant.Weight

	steps []*plan.Step // in the order of the passes
	count *Counters    // may be nil

	signals *signals // may be nil
}

// add adds the operation of a further step.
func (p *Program) add(o Operation) {
	if o.Values != nil {
		p.values = o.Values
		p.Row.Flip, p.Row.Exp, p.Col.Flip, p.Col.Exp = nil, nil, nil, nil
	}
	if o.Affine != nil {
		p.affine = o.Affine
	}
	if o.Apply != nil {
		p.ops = append(p.ops[:len(p.ops):len(p.ops)], o.Apply)
		p.Unit = max(p.Unit, o.Height) // all are powers of two
	}
	if o.Extra != nil {
		p.extras = append(p.extras, *o.Extra)
	}
}

// With returns the program with a further operation. The operation must not be joint.
func (p *Program) With(o Operation) *Program {
	q := *p
	q.add(o)
	return &q
}

// Extras returns the tensors that only the result has.
func (p *Program) Extras() []Extra { return p.extras }

// IsIdentity reports whether the result is the source, byte for byte.
func (p *Program) IsIdentity() bool {
	return p.Row.IsIdentity() && p.Col.IsIdentity() && p.values == nil && p.affine == nil && len(p.ops) == 0 && p.joint == nil && p.coded == nil && p.moved == nil
}

// Untouched returns a program whose result is p's source.
func (p *Program) Untouched() *Program {
	return &Program{Source: p.Source, Format: p.Format, Rows: p.Rows, Cols: p.Cols, OutAxis: p.OutAxis, Unit: 1}
}

// Lossless returns the program without its operations. Its result is the operations' input; for a quantised weight
// with a reference, it is the reference's values.
func (p *Program) Lossless() *Program {
	if p.Coded() {
		return p.exact()
	}
	q := *p
	q.joint, q.ops = nil, nil
	return &q
}

// File returns the path of the weight's file, for messages and [weights.Guard].
func (p *Program) File() string { return p.Source.Parts[0].File }

// RowBytes returns the length of a row in bytes.
func (p *Program) RowBytes() int { return p.Source.RowBytes() }

// Scales reports whether the symmetries multiply by powers of two.
func (p *Program) Scales() bool { return p.Row.Exp != nil || p.Col.Exp != nil }

// Moves reports whether the symmetries move or change the codes or scales of a quantised weight.
func (p *Program) Moves() bool { return p.moved != nil }

// Run writes rows [first, first+rows) of the result to dst, as stored. first must be a multiple of p.Unit. For a
// joint choice, Prepare must have been called.
func (p *Program) Run(dst []byte, first, rows int) {
	if p.coded != nil {
		p.runCoded(dst, first, rows)
		return
	}
	if p.HoldsResult() {
		copy(dst[:rows*p.RowBytes()], p.joint.data[p.joint.bands.find(first)*p.RowBytes():])
		return
	}
	b := Block{first, rows, p.Cols, dst[:rows*p.RowBytes()], p.Format}
	p.load(b)
	if p.joint != nil {
		p.chooseAlone(b)
		return
	}
	if p.affine != nil {
		p.affine.apply(b)
	}
	for _, op := range p.ops {
		op(b)
	}
}

// load fills b with the source's rows and applies the symmetries. Values keep all bits except the sign and, with
// powers of two, the exponent.
func (p *Program) load(b Block) {
	if p.Coded() {
		copy(b.Data, p.Source.ReadRows(b.Data[:0], b.First, b.Rows))
		return
	}
	size, marks := p.RowBytes(), p.marks()
	for i := range b.Rows {
		from := at(p.Row.Gather, b.First+i, b.First+i)
		dst := b.Data[i*size : (i+1)*size]
		p.loadRow(dst, from)
		if marks != nil {
			marks.apply(dst, from)
		}
	}
}

func (p *Program) loadRow(dst []byte, from int) {
	if p.values != nil {
		for k := range p.Cols {
			p.Format.SetElem(dst, k, p.Format.FromValue(p.values[from*p.Cols+at(p.Col.Gather, k, k)]))
		}
		return
	}
	src := p.Source.ReadRows(nil, from, 1)
	if p.Col.Gather == nil {
		copy(dst, src)
		return
	}
	gatherElems(dst, src, p.Col.Gather, p.Source.DType.Bits()/8)
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

// marked reports whether signs or powers of two are applied.
func (p *Program) marked() bool {
	return p.Row.Flip != nil || p.Col.Flip != nil || p.Row.Exp != nil || p.Col.Exp != nil
}

// Scaled multiplies a value by 2^exp, or by −2^exp with flip. b and the result are the value's bits. ok is false if
// the product would not be exact: for overflow, a subnormal value or result, NaN and infinity. The value is then
// returned unchanged.
func Scaled(f weights.Format, b uint32, flip bool, exp int) (_ uint32, ok bool) {
	if !f.IsFloat() {
		v := int64(int8(b))
		if flip {
			v = -v
		}
		switch exp = max(-8, min(exp, 8)); { // multiplied by 2^8 or by 2^-8, only 0 is exact
		case exp >= 0:
			v <<= exp
		case v&(1<<-exp-1) != 0:
			return b, false
		default:
			v >>= -exp
		}
		if v < -128 || v > 127 {
			return b, false
		}
		return uint32(uint8(v)), true
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

// CheckExact returns a [plan.ErrInvalid] that names the first element that signs and powers of two do not multiply
// exactly; nil if there is none.
func (p *Program) CheckExact(ctx context.Context) error {
	if ctx == nil {
		return parallel.ErrNoContext
	}
	if p.Coded() {
		return p.checkMoved(ctx)
	}
	if !p.marked() {
		return nil
	}
	low, high := bounds(p.Col.Exp)
	for n := range p.Rows {
		if err := ctx.Err(); err != nil {
			return err
		}
		row := p.Source.ReadRows(nil, n, 1)
		rowFlip, rowExp := at(p.Row.Flip, n, false), at(p.Row.Exp, n, 0)
		var err error
		safe := SafeMagnitudes(p.Format, rowExp+low, rowExp+high)
		safe.Others(row, func(k int) bool {
			flip, exp := rowFlip != at(p.Col.Flip, k, false), rowExp+at(p.Col.Exp, k, 0)
			if !flip && exp == 0 {
				return true
			}
			_, ok := Scaled(p.Format, p.Format.Elem(row, k), flip, exp)
			if !ok {
				err = fmt.Errorf("%w: %s: tensor %q: element [%d, %d] cannot be multiplied by ±2^%d exactly",
					plan.ErrInvalid, p.File(), p.Source.Name, n, k, exp)
			}
			return ok
		})
		if err != nil {
			return err
		}
	}
	return nil
}
