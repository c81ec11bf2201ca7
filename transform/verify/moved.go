package verify

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// undo returns a quantised matrix before the image: codes, scales, zero points and groups at the source's places,
// with signs and powers of two undone. groups are the source's. The error names a claim that the codes or scales do
// not follow.
func (im *image) undo(b *quant.Matrix, groups []int32) (*quant.Matrix, error) {
	a := b.Clone()
	if groups != nil {
		a.Group = make([]int32, b.K)
		for k := range a.Group {
			g := int32(k / b.Block[1]) // for formats that do not store the order of groups
			if b.Group != nil {
				g = b.Group[k]
			}
			a.Group[place(im.col, k)] = g
		}
	}
	known := make([]bool, len(a.Scales))
	negative := map[uint8][]int{}
	for n := range b.N {
		for k := range b.K {
			to, from := a.Place(place(im.row, n), place(im.col, k)), b.Place(n, k)
			s := float32(math.Ldexp(float64(b.Scales[from]), -number(im.rowExp, n)-number(im.colExp, k)))
			if known[to] && (a.Scales[to] != s || a.Zeros != nil && a.Zeros[to] != b.Zeros[from]) {
				return nil, fmt.Errorf("scale %d of the source corresponds to several scales of the output", to)
			}
			if known[to], a.Scales[to] = true, s; a.Zeros != nil {
				a.Zeros[to] = b.Zeros[from]
			}
			code := int(b.Codes[n*b.K+k])
			if flag(im.rowFlip, n) != flag(im.colFlip, k) {
				zero := b.ZeroPoint(n, k)
				if negative[zero] == nil {
					negative[zero] = opposites(b, zero)
				}
				if code = negative[zero][code]; code < 0 {
					return nil, fmt.Errorf("code [%d, %d] has another sign, and no code has the opposite value", n, k)
				}
			}
			a.Codes[place(im.row, n)*b.K+place(im.col, k)] = byte(code)
		}
	}
	return a, nil
}

// opposites lists, for each code, the code of the opposite value under a zero point; −1 if there is none. Zero is its
// own opposite.
func opposites(m *quant.Matrix, zero uint8) []int {
	list := make([]int, len(m.Book.Values))
	for code, v := range m.Book.Values {
		list[code] = -1
		want := 2*float32(zero) - v
		for other, w := range m.Book.Values {
			if w == want && (list[code] < 0 || other == code) {
				list[code] = other
			}
		}
	}
	return list
}

// findMoved compares all values of a quantised weight with the source's. It finds the relation from these values
// alone.
func (c *claims) findMoved(ctx context.Context, t *Tensor, q, after *quant.Quantised, claimed image) error {
	var both [2]weights.Tensor
	for i, w := range []*quant.Quantised{q, after} {
		v, err := w.Values(ctx, 1)
		if err != nil {
			return err
		}
		data := make([]byte, 0, 4*len(v))
		for _, x := range v {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
		}
		both[i] = weights.Tensor{Info: weights.Info{Name: q.Name, DType: weights.F32, Shape: q.Shape, End: int64(len(data))}, Data: data}
	}
	f, _ := weights.F32.Format()
	p := newPair(both[0], both[1], f)
	d, err := p.compare(ctx, &claimed, nil, 0, nil)
	if err != nil {
		return err
	}
	im, source, err := c.search(ctx, t, p, claimed, &d)
	t.Relation = im.summary(source)
	return err
}
