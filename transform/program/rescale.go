package program

import (
	"context"
	"math"
	"slices"

	"github.com/lowtoggle/lowtoggle/transform/rounding"
	"github.com/lowtoggle/lowtoggle/weights"
)

// rescale chooses the scales, and the code book of each scale.
func (c *recoder) rescale(ctx context.Context, workers int) error {
	m, columns := c.src, c.src.Columns()
	return c.eachBlock(ctx, workers, func(w *recodeWorker, first, last int) error {
		for n := first; n < last; n += m.Block[0] {
			for g := range columns {
				if !c.Rescale && c.Grid == 0 {
					place := n/m.Block[0]*columns + g
					c.which[place] = w.plainBook(place)
					continue
				}
				w.chooseScale(n/m.Block[0]*columns+g, n, min(n+m.Block[0], m.N), g)
			}
		}
		return nil
	})
}

// chooseScale chooses the scale in one place, for rows [first, last) and the columns of group g.
func (w *recodeWorker) chooseScale(place, first, last, g int) {
	old, zero := w.src.Scales[place], w.zeroAt(place)
	w.which[place] = w.plainBook(place)
	if !(old > 0) { // all values under the scale are zero
		return
	}
	if !w.addSquares(first, last, g) {
		w.sample(first, last, g, old, zero)
	}
	rms := w.rms()
	scale := old
	switch {
	case !w.Rescale:
	case w.isFP8():
		scale = w.place(old, rms)
	default:
		scale = w.leastError(old, zero, place)
	}
	w.out.Scales[place] = scale
	if w.Grid > 0 && rms > 0 {
		w.which[place] = w.bookOf(weights.GridExponent(rms*float64(old)/float64(scale)/w.Grid), zero)
	}
}

// plainBook returns the book of a place without a grid. Under a scale of zero every target gets code 0, because the
// value is 0 for any code.
func (w *recodeWorker) plainBook(place int) uint16 {
	if w.target != nil && w.src.Scales[place] == 0 && w.isFloat() {
		return w.bookOf(onlyZero, 0)
	}
	return w.bookOf(noStep, w.zeroAt(place))
}

func (c *recoder) isFP8() bool { return c.isFloat() && len(c.src.Book.Values) == 256 }

// sample collects the targets under a scale: every code that occurs, with its weight; with a reference, every target.
func (w *recodeWorker) sample(first, last, g int, old, zero float32) {
	m := w.src
	w.pairs, w.squares, w.counted = w.pairs[:0], 0, 0
	each := func(fn func(row []byte, n, k int)) {
		for n := first; n < last; n++ {
			row := m.Codes[n*m.K : (n+1)*m.K]
			if m.Group != nil {
				for _, k := range w.groups[g] {
					fn(row, n, int(k))
				}
				continue
			}
			for k := g * m.Block[1]; k < min((g+1)*m.Block[1], m.K); k++ {
				fn(row, n, k)
			}
		}
	}
	if w.target != nil {
		s, row, values := w.effective(old), -1, []float32(nil)
		each(func(_ []byte, n, k int) {
			if n != row {
				row, values = n, w.targetRow(n, first, last)
			}
			x, d := values[k]/s, 1.0
			if w.weight != nil {
				d = w.weight[k]
			}
			if x-x == 0 {
				w.pairs = append(w.pairs, rounding.Sample{X: x, Weight: d})
				w.squares += float64(float64(x) * float64(x))
				w.counted++
			}
		})
		return
	}
	var sum, weight [256]float64
	switch {
	case w.weight != nil:
		each(func(row []byte, _, k int) {
			sum[row[k]]++
			weight[row[k]] += w.weight[k]
		})
	case m.Group != nil:
		each(func(row []byte, _, k int) { sum[row[k]]++ })
	default:
		w.count(&sum, first, last, g)
	}
	for c, n := range sum[:len(m.Book.Values)] {
		v, d := m.Book.Values[c], n
		if w.weight != nil {
			d = weight[c]
		}
		if x := v - zero; n > 0 && v-v == 0 {
			w.squares += float64(float64(float64(x)*float64(x)) * n)
			w.counted += n
			if d > 0 {
				w.pairs = append(w.pairs, rounding.Sample{X: x, Weight: d})
			}
		}
	}
}

// targetRow returns the targets of row n. Rows [first, last) share scales. If a row has several scales, all these
// rows are kept until another block of rows is read.
func (w *recodeWorker) targetRow(n, first, last int) []float32 {
	k := w.src.K
	if w.src.Columns() == 1 {
		w.values = slices.Grow(w.values[:0], k)[:k]
		w.target(w.values, n)
		return w.values
	}
	if w.block != first+1 {
		w.values = slices.Grow(w.values[:0], (last-first)*k)[:(last-first)*k]
		for i := range last - first {
			w.target(w.values[i*k:(i+1)*k], first+i)
		}
		w.block = first + 1
	}
	return w.values[(n-first)*k : (n-first+1)*k]
}

// count counts the codes of rows [first, last) and of group g.
func (w *recodeWorker) count(sum *[256]float64, first, last, g int) {
	m := w.src
	var a, b, c, d [256]uint32 // equal neighbours go to different counters, so they do not wait for each other
	lo, hi := g*m.Block[1], min((g+1)*m.Block[1], m.K)
	for n := first; n < last; n++ {
		row := m.Codes[n*m.K+lo : n*m.K+hi]
		for len(row) >= 4 {
			a[row[0]]++
			b[row[1]]++
			c[row[2]]++
			d[row[3]]++
			row = row[4:]
		}
		for _, x := range row {
			a[x]++
		}
	}
	for i := range sum {
		sum[i] = float64(a[i]) + float64(b[i]) + float64(c[i]) + float64(d[i])
	}
}

// rms returns the root mean square of the targets, in units of the old scale. It is not weighted by the inputs.
func (w *recodeWorker) rms() float64 {
	if w.counted == 0 {
		return 0
	}
	return math.Sqrt(w.squares / w.counted)
}

// place returns the scale that puts codes with a root mean square of rms near 2^Bits times the smallest code. The
// result is the old scale times a power of two that is at least 1.
func (w *recodeWorker) place(old float32, rms float64) float32 {
	smallest := float64(w.src.Book.Values[1])
	if !(rms > 0) {
		return old
	}
	down := weights.GridExponent(rms / smallest / math.Ldexp(1, w.Bits))
	for ; down > 0; down-- {
		if s := float32(math.Ldexp(float64(old), down)); s-s == 0 && w.src.Book.RoundScale(s) == s {
			return s
		}
	}
	return old
}

// leastError returns the scale near the old scale with at most Bits mantissa bits and the least error; of equally good
// scales, the smallest.
func (w *recodeWorker) leastError(old, zero float32, place int) float32 {
	// Scales further away clip large codes, or are coarser than needed.
	low, high := [3]float32{0.6, 0.65, 0.8}[min(w.Bits, 2)]*old, [3]float32{1.7, 1.5, 1.25}[min(w.Bits, 2)]*old
	best, least := float32(0), math.Inf(1)
	_, e := math.Frexp(float64(old))
	if most := float32(math.Ldexp(1, e)); old > 0.5*most && w.src.Book.RoundScale(most) != most {
		low = 0.5 * old // the next power of two is above the largest scale
	}
	for exp := e - 2; exp <= e; exp++ {
		for mant := 1 << w.Bits; mant < 2<<w.Bits; mant++ {
			s := float32(math.Ldexp(float64(mant), exp-w.Bits))
			if s < low || s > high || w.src.Book.RoundScale(s) != s {
				continue
			}
			if cost := w.costOf(old, s, zero, place, least); cost < least {
				best, least = s, cost
			}
		}
	}
	if best == 0 {
		return old
	}
	return best
}

// costOf returns the cost of the sampled targets under a scale: the squared error or, with Lambda, the relative error
// plus the energies. A cost of least or more may be inexact.
func (w *recodeWorker) costOf(old, scale, zero float32, place int, least float64) (sum float64) {
	s := float64(w.effective(scale))
	unit := float64(s * s)
	if w.Lambda > 0 {
		unit = 1
	}
	if w.target == nil {
		t := w.tableOf(old, scale, zero, w.which[place])
		i := 0
		for c, v := range w.src.Book.Values {
			if i < len(w.pairs) && w.pairs[i].X == v-zero && v-v == 0 {
				sum += float64(float64(t.cost[c]) * w.pairs[i].Weight)
				i++
			}
		}
		return sum * unit
	}
	b := w.book(w.which[place])
	price, weight := b.Prices(w.effective(scale), zero), float32(min(w.scale*s*s, math.MaxFloat32))
	ratio := old / scale
	if price == nil {
		const margin = 1 + 1e-12 // covers rounding errors
		w.near.Take(b, zero)
		return w.near.Squares(w.pairs, ratio, least/unit*margin) * unit
	}
	for _, p := range w.pairs {
		x := float32(p.X*ratio) + zero
		_, y := b.Best(x, zero, weight, price)
		d := x - y
		cost := float64(float32(float32(d*d)*weight)) + float64(w.Lambda*w.price(y, w.effective(scale), zero))
		sum += float64(cost * p.Weight)
	}
	return sum * unit
}
