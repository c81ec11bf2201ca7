package pass

import (
	"context"
	"encoding/binary"
	"math"
	"slices"
	"sync"

	"github.com/lowtoggle/lowtoggle/internal/elementary"
	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/weights"
)

// meanExponents returns the mean of ±log2|w| over each label's nonzero finite values. The sign is the direction of
// scaling, so a label's exponent is added to its mean. A label without such values has NaN.
func (u *use) meanExponents(ctx context.Context) ([]float64, error) {
	mean, n := make([]float64, len(u.Positions)), make([]float64, len(u.Positions))
	err := u.sum(ctx, mean, n)
	for label := range mean {
		mean[label] /= n[label]
	}
	return mean, err
}

// sum is sumEach with a fast path for 16-bit formats.
func (u *use) sum(ctx context.Context, sum, n []float64) error {
	return guard(u.w, func() error {
		switch {
		case u.Format.Bits != 16 || !u.unscaled():
			return u.sumEach(ctx, sum, n)
		case u.Axis == 0:
			return u.sumRows(ctx, sum, n)
		}
		return u.sumColumns(ctx, sum, n)
	})
}

// unscaled reports whether the values are floats and no earlier pass multiplied them by powers of two.
func (u *use) unscaled() bool { return u.Format.IsFloat() && u.row.Exp == nil && u.col.Exp == nil }

// sumEach adds ±log2|w| of every value to its label's sum, and 1 to its label's count.
func (u *use) sumEach(ctx context.Context, sum, n []float64) error {
	return u.each(ctx, func(label int, b uint32, dir int) {
		if v := math.Abs(float64(u.Format.Value(b))); v > 0 && u.Format.Finite(b) {
			sum[label] += float64(elementary.Log2(v) * float64(dir)) // the conversion prevents fusing, for equal results on all machines
			n[label]++
		}
	})
}

// magnitudes16 is the number of magnitudes of 16-bit elements.
const magnitudes16 = 1 << 15

// logs holds log2 of every magnitude of a 16-bit format; 0 for zero and for magnitudes that are not finite.
var logs sync.Map // by format

func logsOf(f weights.Format) *[magnitudes16]float64 {
	if t, ok := logs.Load(f.DType); ok {
		return t.(*[magnitudes16]float64)
	}
	t := new([magnitudes16]float64)
	for b := range f.MaxFinite {
		t[b+1] = elementary.Log2(math.Abs(float64(f.Value(b + 1))))
	}
	logs.Store(f.DType, t)
	return t
}

// side is the number of labels that are summed at the same time, each in the order of its elements. Each addition
// waits for the previous one of its label, so several labels use the processor better.
const side = 4

// sumRows is sumEach for rows of 16-bit elements.
func (u *use) sumRows(ctx context.Context, sum, n []float64) error {
	t := logsOf(u.Format)
	for first := 0; first < len(u.Positions); {
		if err := ctx.Err(); err != nil {
			return err
		}
		var labels [side]int // if fewer labels have equally many rows, only the first one counts
		alone := false
		for j := range labels {
			labels[j] = min(first+j, len(u.Positions)-1)
			alone = alone || labels[j] != first+j || len(u.Positions[labels[j]]) != len(u.Positions[first])
		}
		if alone {
			labels = [side]int{first, first, first, first}
		}
		s, left := u.sumLabels(t, labels)
		for j, label := range labels {
			sum[label], n[label] = s[j], float64(len(u.Positions[label])*u.Cols-left[j])
			if !alone {
				first++
			}
		}
		if alone {
			first++
		}
	}
	return nil
}

// sumLabels sums labels with equally many rows, and counts the values that are left out.
func (u *use) sumLabels(t *[magnitudes16]float64, labels [side]int) (sum [side]float64, left [side]int) {
	for i := range u.Positions[labels[0]] {
		var rows [side][]byte
		var dir [side]float64
		for j, label := range labels {
			pos := u.Positions[label][i]
			rows[j], dir[j] = u.w.ReadRows(nil, pos, 1), float64(directionAt(u.Dir, pos))
		}
		sumLogs(t, u.Format.MaxFinite, rows, dir, &sum, &left)
	}
	return sum, left
}

// sumLogs adds dir·log2 of the elements of rows to sum. It counts elements that are zero or not finite in left.
func sumLogs(t *[magnitudes16]float64, most uint32, rows [side][]byte, dir [side]float64, sum *[side]float64, left *[side]int) {
	n := len(rows[0])
	a, b, c, d := rows[0], rows[1][:n], rows[2][:n], rows[3][:n]
	s0, s1, s2, s3 := sum[0], sum[1], sum[2], sum[3]
	for k := 0; k+2 <= n; k += 2 {
		x0, x1 := uint32(binary.LittleEndian.Uint16(a[k:]))%magnitudes16, uint32(binary.LittleEndian.Uint16(b[k:]))%magnitudes16
		x2, x3 := uint32(binary.LittleEndian.Uint16(c[k:]))%magnitudes16, uint32(binary.LittleEndian.Uint16(d[k:]))%magnitudes16
		// The conversions prevent fusing, for equal results on all machines.
		s0 += float64(t[x0] * dir[0])
		s1 += float64(t[x1] * dir[1])
		s2 += float64(t[x2] * dir[2])
		s3 += float64(t[x3] * dir[3])
		if x0-1 >= most || x1-1 >= most || x2-1 >= most || x3-1 >= most {
			for j, x := range [side]uint32{x0, x1, x2, x3} {
				if x-1 >= most {
					left[j]++
				}
			}
		}
	}
	*sum = [side]float64{s0, s1, s2, s3}
}

// sumColumns is sumEach for columns of 16-bit elements.
func (u *use) sumColumns(ctx context.Context, sum, n []float64) error {
	t, columns := logsOf(u.Format), u.columns()
	for row := range u.Rows {
		if err := ctx.Err(); err != nil {
			return err
		}
		data := u.w.ReadRows(nil, row, 1)
		for _, c := range columns {
			x := uint32(binary.LittleEndian.Uint16(data[2*c.pos:])) % magnitudes16
			sum[c.label] += float64(t[x] * c.dir)
			if x-1 < u.Format.MaxFinite {
				n[c.label]++
			}
		}
	}
	return nil
}

// column is a position of a label.
type column struct {
	pos, label int
	dir        float64
}

// columns returns the labels' positions in rising order. [use.each] visits a label's positions in this order.
func (u *use) columns() (list []column) {
	for label, positions := range u.Positions {
		for _, pos := range positions {
			list = append(list, column{pos, label, float64(directionAt(u.Dir, pos))})
		}
	}
	slices.SortFunc(list, func(a, b column) int { return a.pos - b.pos })
	return list
}

// limit moves each label's exponent towards zero until the exponent scales every value of the label exactly.
func (u *use) limit(ctx context.Context, exps []int) error {
	return guard(u.w, func() error {
		switch {
		case !u.unscaled():
			return u.each(ctx, u.lower(exps))
		case u.Axis == 0:
			return u.limitRows(ctx, exps)
		}
		return u.limitColumns(ctx, exps)
	})
}

// lower returns the function that applies limit to one value.
func (u *use) lower(exps []int) func(label int, b uint32, dir int) {
	return func(label int, b uint32, dir int) {
		for e := &exps[label]; *e != 0; *e -= *e / max(*e, -*e) {
			if _, ok := program.Scaled(u.Format, b, false, *e*dir); ok {
				return
			}
		}
	}
}

// limitRows applies limit to rows. It examines only elements that their label's exponent might not scale exactly.
func (u *use) limitRows(ctx context.Context, exps []int) error {
	lower := u.lower(exps)
	for label, list := range u.Positions {
		for _, pos := range list {
			if exps[label] == 0 {
				break
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			dir, row := directionAt(u.Dir, pos), u.w.ReadRows(nil, pos, 1)
			safe := program.SafeMagnitudes(u.Format, exps[label]*dir, exps[label]*dir)
			safe.Others(row, func(k int) bool {
				lower(label, u.Format.Elem(row, k), dir)
				return exps[label] != 0
			})
		}
	}
	return nil
}

// limitColumns is limitRows for labels that are columns.
func (u *use) limitColumns(ctx context.Context, exps []int) error {
	labels := make([]int, u.Cols) // of columns; −1: none
	for i := range labels {
		labels[i] = -1
	}
	var low, high int // extreme exponents of the columns; lower moves exponents towards zero
	for label, list := range u.Positions {
		for _, pos := range list {
			labels[pos] = label
			e := exps[label] * directionAt(u.Dir, pos)
			low, high = min(low, e), max(high, e)
		}
	}
	if low == 0 && high == 0 {
		return nil
	}
	lower, safe := u.lower(exps), program.SafeMagnitudes(u.Format, low, high)
	for n := range u.Rows {
		if err := ctx.Err(); err != nil {
			return err
		}
		row := u.w.ReadRows(nil, n, 1)
		safe.Others(row, func(k int) bool {
			if label := labels[k]; label >= 0 {
				lower(label, u.Format.Elem(row, k), directionAt(u.Dir, k))
			}
			return true
		})
	}
	return nil
}
