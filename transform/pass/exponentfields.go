package pass

import (
	"context"

	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// fieldBits is the width of the exponents of BF16 and F32.
const fieldBits = 8

// fields are the exponent fields of a sample of a layer's elements, grouped by the indices that scale them.
type fields struct {
	elements float64 // of the layer
	sampled  int
	groups   []fieldGroup
}

// fieldGroup are elements that the same indices scale in the same directions.
type fieldGroup struct {
	by     []scaling
	share  float64      // of the layer's elements
	counts []fieldCount // by rising field
}

// fieldCount is the number of elements with an exponent field. Field 0 belongs to zeros, which no scaling changes.
type fieldCount struct{ field, n int }

// scaling is the effect of an index on an element: exponent 1 of the index multiplies the element by 2^dir.
type scaling struct{ index, dir int }

// fields samples the exponent fields of a layer of BF16 or F32 after the lossy passes, with the given exponents of
// labels. For other types, the result is nil.
func (v *exponentChooser) fields(ctx context.Context, views *previews, w *quant.Weight, claim *arch.Claim, labels program.Symmetries) (l fields, err error) {
	f, known := w.DType.Format()
	elements, cols := w.Rows*w.Cols, w.Cols
	if !known || f.ExpBits != fieldBits || elements == 0 {
		return l, nil
	}
	seen, err := views.of(ctx, w, true)
	if err != nil {
		return l, err
	}
	read := rowsOf(seen)
	const sample = 1 << 16
	rowPart, rowBy := v.parts(claim.Axes[0])
	colPart, colBy := v.parts(claim.Axes[1])
	row, col := labels.Matrix(claim)
	counts := make([][1 << fieldBits]int, len(rowBy)*len(colBy))
	step := max(1, elements/sample)
	for gcd(step, cols) > 1 { // otherwise some columns would never be sampled
		step++
	}
	for i := 0; i < elements; i += step {
		n, k := i/cols, i%cols
		b := f.Elem(read(n), k)
		if !f.Finite(b) {
			continue
		}
		b, _ = program.Scaled(f, b, false, row.Power(n)+col.Power(k))
		counts[rowPart[n]*len(colBy)+colPart[k]][b&f.ExpMask()>>f.MantBits]++
		l.sampled++
	}
	l.elements = float64(elements)
	for i := range counts {
		r, c := rowBy[i/len(colBy)], colBy[i%len(colBy)]
		g := fieldGroup{by: append(r[:len(r):len(r)], c...)}
		for field, n := range counts[i] {
			if n > 0 {
				g.share += float64(n) / float64(l.sampled)
				g.counts = append(g.counts, fieldCount{field, n})
			}
		}
		l.groups = append(l.groups, g)
	}
	return l, nil
}

// gcd returns the greatest common divisor.
func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// parts divides an axis into parts that the same indices scale. It returns the part of every position, and the
// scalings of each part.
func (v *exponentChooser) parts(a *arch.Axis) (part []int, by [][]scaling) {
	part, by = make([]int, a.Len()), [][]scaling{nil}
	for _, name := range a.Indices() {
		i, chosen := v.number[name]
		if !chosen {
			continue
		}
		dir := a.Exps(func(n string) []int {
			if n != name {
				return nil
			}
			return ones(v.indices[i].Len)
		})
		type finer struct{ part, dir int }
		seen, next := map[finer]int{}, [][]scaling{}
		for pos, from := range part {
			key := finer{from, directionAt(dir, pos)}
			if _, ok := seen[key]; !ok {
				seen[key] = len(next)
				list := by[from]
				if key.dir != 0 {
					list = append(list[:len(list):len(list)], scaling{i, key.dir})
				}
				next = append(next, list)
			}
			part[pos] = seen[key]
		}
		by = next
	}
	return part, by
}

// toggles returns the expected number of toggling exponent bits between two elements of the layer, times the number
// of elements, if indices are scaled by powers of two.
func (l *fields) toggles(power []int) float64 {
	if l.sampled == 0 {
		return 0
	}
	var ones [fieldBits]int
	for i := range l.groups {
		g := &l.groups[i]
		shift := g.shift(power)
		for _, c := range g.counts {
			if c.field > 0 {
				c.field = max(1, min(c.field+shift, 1<<fieldBits-2))
			}
			for b := range ones {
				ones[b] += c.n * (c.field >> b & 1)
			}
		}
	}
	pairs := 0
	for _, n := range ones {
		pairs += 2 * n * (l.sampled - n)
	}
	return float64(l.elements * (float64(pairs) / float64(l.sampled) / float64(l.sampled)))
}

// shiftPenalty is the cost, in toggles, of changing exponents.
func (l *fields) shiftPenalty(power []int) (cost float64) {
	for i := range l.groups {
		g := &l.groups[i]
		shift := g.shift(power)
		each := float64(liftCost * float64(shift))
		if shift < 0 {
			each = float64(-lowerCost * float64(shift))
		}
		cost += float64(each * g.share) // the conversion prevents fusing, for equal results on all machines
	}
	return float64(l.elements * cost)
}

// shift returns the change of the group's exponents, in octaves, if indices are scaled by powers of two.
func (g *fieldGroup) shift(power []int) (octaves int) {
	for _, s := range g.by {
		octaves += s.dir * power[s.index]
	}
	return octaves
}

func directionAt(dir []int, pos int) int {
	if dir == nil {
		return 0
	}
	return dir[pos]
}
