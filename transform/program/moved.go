package program

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// moved is the effect of the symmetries on a weight that is stored as codes. Orders move codes with their scales,
// zero points and group indices. Signs change codes, and powers of two change scales. All other work on the weight
// uses the source's order.
type moved struct {
	row, col AxisMap // of outputs and of inputs
	groups   carried // of the inputs' scales
}

// carried maps the scales along an axis, by the scale's place in the result.
type carried struct {
	from []int // place in the source
	exp  []int // multiply by 2^exp
}

// movedOf returns the effect of the symmetries on a quantised weight; nil if there is none. The error gives the
// reason why the weight's format cannot follow the symmetries.
func movedOf(w *quant.Quantised, c *arch.Claim, row, col AxisMap) (*moved, error) {
	switch {
	case row.IsIdentity() && col.IsIdentity():
		return nil, nil
	case len(w.Shape) != 2 || c.OutAxis != 0:
		return nil, errors.New("a quantised weight that is not a matrix of outputs × inputs cannot be permuted or scaled")
	case col.Exp != nil && w.HasActivationScale():
		return nil, errors.New("the layer's inputs have a fixed scale, so they cannot be multiplied by powers of two")
	}
	m := w.Rows(0, 0, 1)
	if _, err := carry(row, w.Shape[0], m.Block[0], nil); err != nil {
		return nil, fmt.Errorf("%d outputs share a scale: %w", m.Block[0], err)
	}
	groups, err := carry(col, m.K, m.Block[1], m.Group)
	if err != nil {
		return nil, fmt.Errorf("%d inputs share a scale: %w", m.Block[1], err)
	}
	return &moved{row: row, col: col, groups: groups}, nil
}

// carry maps the scales along an axis of n positions, where unit neighbours share a scale. If positions have group
// indices, the groups keep their places. If positions with one scale would need several, it returns an error.
func carry(a AxisMap, n, unit int, group []int32) (carried, error) {
	c := carried{}
	for k := range n {
		from := a.From(k)
		place, source, e := k/unit, from/unit, a.Power(from)
		if group != nil {
			place = int(group[from])
			source = place
		}
		for place >= len(c.from) {
			c.from, c.exp = append(c.from, -1), append(c.exp, 0)
		}
		switch {
		case c.from[place] < 0:
			c.from[place], c.exp[place] = source, e
		case c.from[place] != source:
			return c, errors.New("an order must keep them together")
		case c.exp[place] != e:
			return c, errors.New("they must be multiplied by the same power of two")
		}
	}
	for place, from := range c.from {
		if from < 0 { // a group without inputs
			c.from[place] = place
		}
	}
	return c, nil
}

// checkMoved returns a [plan.ErrInvalid] if the weight's codes or scales cannot follow the symmetries exactly.
func (p *Program) checkMoved(ctx context.Context) error {
	for expert := 0; p.moved != nil && expert < p.Source.Quantised.Experts(); expert++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		m, err := p.Source.Quantised.Load(expert)
		if err == nil {
			_, err = p.moved.matrix(m)
		}
		if err != nil {
			return fmt.Errorf("%w: %s: tensor %q: %w", plan.ErrInvalid, p.File(), p.Source.Name, err)
		}
	}
	return nil
}

// matrix returns a whole matrix after the symmetries.
func (v *moved) matrix(m *quant.Matrix) (*quant.Matrix, error) {
	if v == nil {
		return m, nil
	}
	rows, err := v.rows(m, 0, m.N, func(n int) (*quant.Matrix, int) { return m, n })
	if err != nil {
		return nil, err
	}
	columns := m.Columns()
	out := *rows
	out.Block, out.Scales, out.Zeros = m.Block, nil, nil
	for n := 0; n < m.N; n += m.Block[0] { // all outputs of a block have the same scales
		out.Scales = append(out.Scales, rows.Scales[n*columns:(n+1)*columns]...)
		if rows.Zeros != nil {
			out.Zeros = append(out.Zeros, rows.Zeros[n*columns:(n+1)*columns]...)
		}
	}
	return &out, nil
}

// rows returns n rows of the moved matrix from first on, each with its own scales. source finds a row of the source's
// matrix. After an error, codes and scales that cannot follow the symmetries are the source's.
func (v *moved) rows(like *quant.Matrix, first, n int, source func(row int) (*quant.Matrix, int)) (*quant.Matrix, error) {
	columns := like.Columns()
	out := *like
	out.N, out.Block[0] = n, 1
	out.Codes, out.Scales, out.Zeros, out.Group = make([]byte, n*like.K), make([]float32, n*columns), nil, nil
	if like.Zeros != nil {
		out.Zeros = make([]uint8, n*columns)
	}
	if like.Group != nil {
		out.Group = make([]int32, like.K)
		for k := range out.Group {
			out.Group[k] = like.Group[v.col.From(k)]
		}
	}
	negated := negatives{}
	var failed error
	for i := range n {
		row := v.row.From(first + i)
		m, at := source(row)
		err := errors.Join(v.scaleRow(&out, i, m, at, row), v.codeRow(&out, i, m, at, row, negated))
		if failed == nil {
			failed = err
		}
	}
	return quant.Whole(out), failed
}

// scaleRow writes the scales and zero points of row i of the moved matrix from row at of m. In the source, this is
// row number row.
func (v *moved) scaleRow(out *quant.Matrix, i int, m *quant.Matrix, at, row int) (err error) {
	columns, block := m.Columns(), m.RowScales(at)
	for g := range columns {
		from, e := g, v.row.Power(row)
		if g < len(v.groups.from) {
			from, e = v.groups.from[g], e+v.groups.exp[g]
		}
		s, ok := timesPower(&m.Book, m.Scales[block+from], e)
		if !ok {
			err = fmt.Errorf("scale %g of output %d cannot be multiplied by 2^%d exactly", s, row, e)
		}
		out.Scales[i*columns+g] = s
		if out.Zeros != nil {
			out.Zeros[i*columns+g] = m.Zeros[block+from]
		}
	}
	return err
}

// codeRow writes the codes of row i of the moved matrix.
func (v *moved) codeRow(out *quant.Matrix, i int, m *quant.Matrix, at, row int, negated negatives) (err error) {
	source, codes := m.Codes[at*m.K:(at+1)*m.K], out.Codes[i*m.K:(i+1)*m.K]
	for k := range codes {
		from := v.col.From(k)
		codes[k] = source[from]
		if v.row.Flipped(row) == v.col.Flipped(from) {
			continue
		}
		c, ok := negated.of(m, at, from)
		if codes[k] = c; !ok {
			err = fmt.Errorf("code [%d, %d] cannot change its sign: no code has the opposite value", row, from)
		}
	}
	return err
}

// negatives maps each code to the code of its negative value, for each zero point.
type negatives map[uint8]*[256]negative

type negative struct {
	code byte
	ok   bool
}

// of returns the negative of code [n, k]. If there is none, it returns the code itself and false.
func (t negatives) of(m *quant.Matrix, n, k int) (byte, bool) {
	zero := m.ZeroPoint(n, k)
	list := t[zero]
	if list == nil {
		list = negativesOf(&m.Book, zero, m.Zeros == nil && m.Book.Zero == 0)
		t[zero] = list
	}
	c := list[m.Codes[n*m.K+k]]
	return c.code, c.ok
}

// negativesOf returns the negatives under a zero point. Floating-point codes of zero do not change, because −0 equals
// 0.
func negativesOf(b *quant.Book, zero uint8, float bool) *[256]negative {
	list, half := &[256]negative{}, len(b.Values)/2
	for c, v := range b.Values {
		other := 2*int(zero) - c
		if float {
			if other = c ^ half; v == 0 {
				other = c
			}
		}
		list[c].code = byte(c)
		if other >= 0 && other < len(b.Values) && (!float || b.Values[other] == -v) {
			list[c] = negative{byte(other), true}
		}
	}
	return list
}

// timesPower multiplies a scale by 2^exp. ok is false if the product is not a normal number of the scale's type, or
// if products with codes might not be normal.
func timesPower(b *quant.Book, s float32, exp int) (_ float32, ok bool) {
	if exp == 0 || s == 0 {
		return s, true
	}
	least, most := float32(0x1p-100), float32(0x1p100)
	if f, known := b.ScaleType.Format(); known && b.ScaleType != weights.F8E8M0 {
		least = max(least, f.Value(1<<f.MantBits))
	}
	v := float32(math.Ldexp(float64(s), exp))
	if min(s, v) < least || max(s, v) > most || b.RoundScale(v) != v {
		return s, false
	}
	return v, true
}
