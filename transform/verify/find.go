package verify

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/bits"
	"slices"

	"github.com/lowtoggle/lowtoggle/internal/elementary"
	"github.com/lowtoggle/lowtoggle/weights"
)

// image relates the elements of an output b to a source a: b[n,k] = ±2^e·a[row[n], col[k]]. The sign is the product
// of the row's and the column's sign, and e is the sum of their exponents. flip and exp are by place in the output.
// Nil fields have no effect.
type image struct {
	row, col         []int
	rowFlip, colFlip []bool
	rowExp, colExp   []int
}

// pair is a tensor before and after.
type pair struct {
	a, b       weights.Tensor
	f          weights.Format
	rows, cols int
	inputRows  bool      // storage is [in, out]
	aValues    []float64 // replace a's values if a fold computes new ones
}

// find searches for an image in the data alone. If neither the identity nor a permutation fits, the data are not
// conclusive and ok is false.
func (p *pair) find(ctx context.Context) (im image, ok bool, err error) {
	if !p.inPlace() {
		if im.row, im.col, ok, err = p.permutation(ctx); !ok || err != nil {
			return image{}, false, err
		}
	}
	return im, true, errors.Join(p.findExponents(ctx, &im), p.findSigns(ctx, &im))
}

// evenly calls fn with up to m of the numbers below n, spread evenly.
func evenly(n, m int, fn func(i int)) {
	m = min(n, m)
	for i := range m {
		fn(i * n / m)
	}
}

// inPlace reports whether values are at their old places, apart from signs, powers of two and noise. It samples large
// values of some rows and compares their mantissas.
func (p *pair) inPlace() bool {
	near, all := 0, 0
	evenly(p.rows, 64, func(n int) {
		var sum float64
		evenly(p.cols, 1024, func(k int) { sum += square(p.value(p.a, n, k)) })
		floor := math.Sqrt(sum / float64(min(p.cols, 1024)))
		evenly(p.cols, 1024, func(k int) {
			a := math.Abs(p.value(p.a, n, k))
			if !(a >= floor) || a == 0 || math.IsInf(a, 0) {
				return
			}
			all++
			octaves := elementary.Log2(math.Abs(p.value(p.b, n, k)) / a)
			if math.Abs(octaves-math.Round(octaves)) < 0.2 {
				near++
			}
		})
	})
	return all == 0 || float64(near) >= 0.7*float64(all)
}

func square(v float64) float64 {
	if v-v != 0 {
		return 0
	}
	return v * v
}

func (p *pair) value(t weights.Tensor, n, k int) float64 {
	return float64(p.f.Value(p.f.Elem(t.Data, n*p.cols+k)))
}

// quantiser is a possible rounding of the output: low bits zeroed, to nearest or truncated.
type quantiser struct {
	bits     int
	truncate bool
}

// mantissa returns the part of a value, after the quantiser, that signs and powers of two do not change. Zero and
// values that are not finite get separate numbers.
func (q quantiser) mantissa(f weights.Format, b uint32) uint64 {
	mag := b &^ f.SignMask()
	switch {
	case !f.IsFloat():
		if v := abs8(b); v != 0 {
			return uint64(v >> bits.TrailingZeros(uint(v))) // a power of two does not change the odd part
		}
		return 1 << 41
	case mag > f.MaxFinite:
		return 1<<40 + uint64(b)
	case mag == 0:
		return 1 << 41
	}
	unit := uint32(1) << q.bits
	if q.bits > 0 && !q.truncate {
		up := mag + unit/2 - 1 + mag>>q.bits&1
		if up&^(unit-1) <= f.MaxFinite {
			mag = up
		}
	}
	if mag &^= unit - 1; mag == 0 {
		return 1 << 41
	}
	return uint64(mag & f.MantMask())
}

// mixer returns a hash of a value's mantissa; for narrow types it uses a table.
func (q quantiser) mixer(f weights.Format) func(b uint32) uint64 {
	if f.Bits > 16 {
		return func(b uint32) uint64 { return mix(q.mantissa(f, b)) }
	}
	table := make([]uint64, 1<<f.Bits)
	for b := range table {
		table[b] = mix(q.mantissa(f, uint32(b)))
	}
	return func(b uint32) uint64 { return table[b] }
}

func abs8(b uint32) int {
	v := int(int8(b))
	return max(v, -v)
}

// mix hashes a 64-bit word (the finaliser of SplitMix64).
func mix(x uint64) uint64 {
	x += 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// colours are hashes of rows and columns. A row's hash does not depend on the order of columns, nor a column's on the
// order of rows.
type colours struct{ row, col []uint64 }

// refine computes colours in three rounds. A row's colour is the sum, over its elements, of a hash of the mantissa
// and the column's colour. Columns have the same rule. Rows that differ in more than order get different colours.
func (p *pair) refine(ctx context.Context, t weights.Tensor, q quantiser) (colours, error) {
	c := colours{make([]uint64, p.rows), make([]uint64, p.cols)}
	mixed := q.mixer(p.f)
	for round := range 3 {
		next := colours{make([]uint64, p.rows), make([]uint64, p.cols)}
		for n := range p.rows {
			if n%64 == 0 {
				if err := ctx.Err(); err != nil {
					return c, err
				}
			}
			for k := range p.cols {
				h := mixed(p.f.Elem(t.Data, n*p.cols+k)) + uint64(round)
				next.row[n] += mix(h ^ c.col[k])
				next.col[k] += mix(h ^ bits.RotateLeft64(c.row[n], 32))
			}
		}
		c = next
	}
	return c, nil
}

// permutation finds row and column orders by colour. It tries all roundings that the output's zero bits allow.
func (p *pair) permutation(ctx context.Context) (row, col []int, ok bool, err error) {
	try := []quantiser{{}}
	if z := p.zeroBits(p.b); z > p.zeroBits(p.a) {
		try = append(try, quantiser{z, false}, quantiser{z, true})
	}
	after, err := p.refine(ctx, p.b, quantiser{})
	if err != nil {
		return nil, nil, false, err
	}
	for _, q := range try {
		before, err := p.refine(ctx, p.a, q)
		if err != nil {
			return nil, nil, false, err
		}
		if row, ok := match(before.row, after.row); ok {
			if col, ok := match(before.col, after.col); ok {
				return row, col, true, nil
			}
		}
	}
	return nil, nil, false, nil
}

// match pairs places of equal colour: the k-th place of a colour in after with the k-th place of the colour in
// before. It returns the place in before, by the place in after.
func match(before, after []uint64) ([]int, bool) {
	from, to := byColour(before), byColour(after)
	m := make([]int, len(after))
	for i := range to {
		if before[from[i]] != after[to[i]] {
			return nil, false
		}
		m[to[i]] = from[i]
	}
	return m, true
}

func byColour(c []uint64) []int {
	order := make([]int, len(c))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(c[a], c[b]) })
	return order
}

// zeroBits returns the number of low bits that are zero in every finite value.
func (p *pair) zeroBits(t weights.Tensor) int {
	var or uint32
	for i := 0; i < p.rows*p.cols && or&1 == 0; i++ { // stop when the lowest bit is set somewhere
		if b := p.f.Elem(t.Data, i); p.f.Finite(b) {
			or |= b
		}
	}
	return min(p.f.MantBits, bits.TrailingZeros32(or|1<<p.f.MantBits))
}

// octaves returns the rounded binary logarithm of |b[n,k]/a[row,col]|. ok is false if either value is zero or not
// finite.
func (p *pair) octaves(im *image, n, k int) (e int, negative, ok bool) {
	a, b := p.value(p.a, place(im.row, n), place(im.col, k)), p.value(p.b, n, k)
	r := b / a
	if a == 0 || b == 0 || r-r != 0 {
		return 0, false, false
	}
	const mantissa = 1<<52 - 1
	size := math.Float64bits(math.Abs(r))
	e = int(size>>52) - 1023
	if e == -1023 { // r is subnormal
		var frac float64
		frac, e = math.Frexp(math.Abs(r))
		size, e = math.Float64bits(frac), e-1
	}
	if size&mantissa >= rootOfTwo&mantissa { // the power of two above is nearer
		e++
	}
	return e, r < 0, true
}

var rootOfTwo = math.Float64bits(math.Sqrt2 / 2)

func place(list []int, i int) int {
	if list == nil {
		return i
	}
	return list[i]
}

// findExponents splits the exponents of all ratios into one exponent for each row and one for each column. A row's
// exponent is the most common exponent of its ratios. A column's exponent is the most common remainder. The split is
// unique up to a constant.
func (p *pair) findExponents(ctx context.Context, im *image) error {
	row, col := make([]int, p.rows), make([]int, p.cols)
	for n := range row {
		if err := ctx.Err(); err != nil {
			return err
		}
		row[n] = p.commonest(p.cols, func(k int) (int, bool) {
			e, _, ok := p.octaves(im, n, k)
			return e, ok
		})
	}
	for k := range col {
		if err := ctx.Err(); err != nil {
			return err
		}
		col[k] = p.commonest(p.rows, func(n int) (int, bool) {
			e, _, ok := p.octaves(im, n, k)
			return e - row[n], ok
		})
	}
	if nonzero(row) > 0 || nonzero(col) > 0 {
		im.rowExp, im.colExp = row, col
	}
	return nil
}

// commonest returns the most common of up to 256 sampled values; the smallest of equally common ones.
func (p *pair) commonest(n int, value func(i int) (int, bool)) int {
	const far = 1200 // beyond any sum of two exponents
	var count [2*far + 1]uint16
	least, greatest := far, -far
	evenly(n, 256, func(i int) {
		if v, ok := value(i); ok {
			count[far+v]++
			least, greatest = min(least, v), max(greatest, v)
		}
	})
	best, most := 0, uint16(0)
	for v := least; v <= greatest; v++ {
		if count[far+v] > most {
			best, most = v, count[far+v]
		}
	}
	return best
}

// findSigns splits the signs of all ratios into one sign for each row and one for each column. Columns first get the
// signs of the row with the most values. Then rows, and then columns, are decided by majority.
func (p *pair) findSigns(ctx context.Context, im *image) error {
	row, col := make([]bool, p.rows), make([]bool, p.cols)
	fullest, most := 0, -1
	evenly(p.rows, 64, func(n int) {
		c := 0
		for k := range col {
			if _, _, ok := p.octaves(im, n, k); ok {
				c++
			}
		}
		if c > most {
			fullest, most = n, c
		}
	})
	for k := range col {
		_, negative, _ := p.octaves(im, fullest, k)
		col[k] = negative
	}
	negativeAt := func(n, k int, known bool) (int, bool) {
		_, negative, ok := p.octaves(im, n, k)
		if negative != known {
			return 1, ok
		}
		return 0, ok
	}
	for n := range row {
		if err := ctx.Err(); err != nil {
			return err
		}
		row[n] = p.commonest(p.cols, func(k int) (int, bool) { return negativeAt(n, k, col[k]) }) == 1
	}
	for k := range col {
		if err := ctx.Err(); err != nil {
			return err
		}
		col[k] = p.commonest(p.rows, func(n int) (int, bool) { return negativeAt(n, k, row[n]) }) == 1
	}
	if countTrue(row)+countTrue(col) > p.rows/2+p.cols/2 { // inverting all rows and all columns has no effect
		invert(row)
		invert(col)
	}
	if countTrue(row) > 0 || countTrue(col) > 0 {
		im.rowFlip, im.colFlip = row, col
	}
	return nil
}

func countTrue(list []bool) int {
	n := 0
	for _, v := range list {
		if v {
			n++
		}
	}
	return n
}

func invert(list []bool) {
	for i := range list {
		list[i] = !list[i]
	}
}
