package rounding

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Codes chooses among the values of a quantised layer: (v − zero)·scale, where v is a value of a code book. A scale
// belongs to some rows and to a group of columns. For each target t, Codes minimises exactly
//
//	Scale·D·(t − value)² + Lambda·price.
//
// Without prices or with Lambda = 0, it chooses the nearest value.
type Codes struct {
	Books  []*CodeBook
	Which  []uint16  // book of each scale; nil: Books[0] for all
	Scales []float32 // [⌈N/Rows⌉, Groups], finite and not zero
	Zeros  []uint8   // like Scales; nil: Zero for all
	Zero   float32
	Rows   int // number of rows that share a scale
	Groups int
	Group  []int32 // [K], group of each column
	Lambda float64 // as in Trellis
	Scale  float64 // as in Trellis
}

// CodeBook lists the allowed values of codes before zero point and scale are applied.
type CodeBook struct {
	values []float32 // ascending
	codes  []byte
	step   float32 // distance of evenly spaced values; else 0
	// price returns the energy of each value under a scale and zero point, relative to an ordinary weight; nil: no
	// energy term.
	price func(scale, zero float32) []float32

	bounds *bounds
}

// NewCodeBook returns the book of some codes. value[c] is the value of code c. NaN and infinity are left out. Of
// codes with equal values, the book has the smallest code. allowed reports whether a code may be chosen; nil: all
// codes may.
func NewCodeBook(value []float32, allowed func(code byte) bool) *CodeBook {
	b := &CodeBook{bounds: &bounds{}}
	for c, v := range value {
		if v-v == 0 && (allowed == nil || allowed(byte(c))) {
			b.codes = append(b.codes, byte(c))
		}
	}
	slices.SortStableFunc(b.codes, func(i, j byte) int { return cmp.Compare(value[i], value[j]) })
	b.codes = slices.CompactFunc(b.codes, func(i, j byte) bool { return value[i] == value[j] })
	for _, c := range b.codes {
		b.values = append(b.values, value[c]+0)
	}
	if n := len(b.values); n > 1 {
		b.step = b.values[1] - b.values[0]
		for i := 1; i < n; i++ {
			if b.values[i]-b.values[i-1] != b.step {
				b.step = 0
				break
			}
		}
	}
	return b
}

// Priced returns the book with prices. price returns the energy of a value under a scale and zero point, relative to
// an ordinary weight.
func (b *CodeBook) Priced(price func(value, scale, zero float32) float64, lambda float64) *CodeBook {
	p := *b
	p.price = func(scale, zero float32) []float32 {
		list := make([]float32, len(b.values))
		for i, v := range b.values {
			list[i] = float32(lambda * price(v, scale, zero))
		}
		return list
	}
	return &p
}

// Best returns the code of least weight·(x − v)² + price, and the code's value v. Ties go to the value nearer to x,
// then to the value nearer to zero. price is a result of [CodeBook.Prices].
func (b *CodeBook) Best(x, zero, weight float32, price []float32) (code byte, v float32) {
	i := b.best(x, zero, weight, price)
	return b.codes[i], b.values[i]
}

// Prices returns the energy of each value under a scale and zero point; nil without prices.
func (b *CodeBook) Prices(scale, zero float32) []float32 {
	if b.price == nil {
		return nil
	}
	return b.price(scale, zero)
}

// nearest returns the number of the value nearest to x. Ties go to the value nearer to zero.
func (b *CodeBook) nearest(x, zero float32) int {
	last := len(b.values) - 1
	lo := 0
	if b.step > 0 {
		f := (x - b.values[0]) / b.step
		switch {
		case !(f > 0):
			return 0
		case f >= float32(last):
			return last
		}
		lo = int(f)
	} else {
		hi := last
		if x <= b.values[0] {
			return 0
		}
		if x >= b.values[last] {
			return last
		}
		for hi-lo > 1 { // values[lo] <= x < values[hi]
			if mid := (lo + hi) / 2; b.values[mid] <= x {
				lo = mid
			} else {
				hi = mid
			}
		}
	}
	if lo >= last {
		return last
	}
	below, above := x-b.values[lo], b.values[lo+1]-x
	if above < below || above == below && abs32(b.values[lo+1]-zero) < abs32(b.values[lo]-zero) {
		return lo + 1
	}
	return lo
}

func abs32(v float32) float32 { return math.Float32frombits(math.Float32bits(v) &^ (1 << 31)) }

// best returns the number of Best's value. price may be nil.
func (b *CodeBook) best(x, zero, weight float32, price []float32) int {
	near := b.nearest(x, zero)
	if price == nil {
		return near
	}
	cost := func(i int) float32 {
		d := x - b.values[i]
		return float32(float32(d*d)*weight) + price[i]
	}
	best, least := near, cost(near)
	for i := near - 1; i >= 0; i-- {
		d := x - b.values[i]
		if float32(float32(d*d)*weight) > least {
			break
		}
		if c := cost(i); c < least {
			best, least = i, c
		}
	}
	for i := near + 1; i < len(b.values); i++ {
		d := x - b.values[i]
		if float32(float32(d*d)*weight) > least {
			break
		}
		if c := cost(i); c < least {
			best, least = i, c
		}
	}
	return best
}

// Begin implements [Chooser].
func (c *Codes) Begin(n, k int) (func(Column), error) {
	p, err := c.picker(n, k)
	if err != nil {
		return nil, err
	}
	return func(col Column) {
		g := int(c.Group[col.K])
		for i, t := range col.T {
			p.at((col.N0+i)/c.Rows*c.Groups + g)
			_, col.T[i] = p.pick(t, col.D)
		}
	}, nil
}

// Alone implements [Alone]. It returns false, because values depend on their scales.
func (c *Codes) Alone() bool { return false }

// Row returns a function that chooses the codes of row row for targets t[K] without feedback, with weight 1 for all
// targets. The function writes to codes and is for one goroutine.
func (c *Codes) Row(n, k int) (func(codes []byte, row int, t []float32), error) {
	p, err := c.picker(n, k)
	if err != nil {
		return nil, err
	}
	return func(codes []byte, row int, t []float32) {
		at, last := row/c.Rows*c.Groups, -1
		for i, v := range t {
			if g := int(c.Group[i]); g != last {
				p.at(at + g)
				last = g
			}
			codes[i], _ = p.pick(v, 1)
		}
	}, nil
}

// Code returns the code of a value that Round chose for row n and column k.
func (c *Codes) Code(n, k int, value float32) byte {
	at := n/c.Rows*c.Groups + int(c.Group[k])
	b, zero := c.Books[0], c.Zero
	if c.Which != nil {
		b = c.Books[c.Which[at]]
	}
	if c.Zeros != nil {
		zero = float32(c.Zeros[at])
	}
	return b.codes[b.nearest(value/c.Scales[at]+zero, zero)]
}

// picker chooses values under one scale at a time, for one goroutine.
type picker struct {
	*Codes
	book        *CodeBook
	scale, zero float32
	price       []float32
	prices      map[priceKey][]float32
	last        int
	near        Nearest // used without prices
}

type priceKey struct {
	book        *CodeBook
	scale, zero float32
}

func (c *Codes) picker(n, k int) (*picker, error) {
	want := (n + c.Rows - 1) / max(1, c.Rows) * c.Groups
	switch {
	case c.Rows < 1 || c.Groups < 1 || len(c.Scales) != want || len(c.Group) != k:
		return nil, fmt.Errorf("rounding: %d scales and group indices of %d columns do not fit a layer of %d×%d", len(c.Scales), len(c.Group), n, k)
	case c.Zeros != nil && len(c.Zeros) != want || c.Which != nil && len(c.Which) != want:
		return nil, fmt.Errorf("rounding: %d zero points and %d indices of books do not fit %d scales", len(c.Zeros), len(c.Which), want)
	case len(c.Books) == 0 || slices.ContainsFunc(c.Books, func(b *CodeBook) bool { return len(b.values) == 0 }):
		return nil, fmt.Errorf("rounding: a code book has no values")
	case !(c.Lambda >= 0) || !(c.Scale >= 0) || math.IsInf(c.Lambda, 1) || math.IsInf(c.Scale, 1):
		return nil, fmt.Errorf("rounding: lambda is %g and the scale is %g: give finite numbers that are not negative", c.Lambda, c.Scale)
	}
	return &picker{Codes: c, last: -1, prices: map[priceKey][]float32{}}, nil
}

// at switches to the scale with number i.
func (p *picker) at(i int) {
	if i == p.last {
		return
	}
	p.last = i
	p.scale, p.zero, p.book = p.Scales[i], p.Codes.Zero, p.Books[0]
	if p.Zeros != nil {
		p.zero = float32(p.Zeros[i])
	}
	if p.Which != nil {
		p.book = p.Books[p.Which[i]]
	}
	p.take(p.book, p.scale, p.zero)
}

// take sets the book, the scale and the zero point.
func (p *picker) take(b *CodeBook, scale, zero float32) {
	p.book, p.scale, p.zero, p.price = b, scale, zero, nil
	if b.price == nil || p.Lambda == 0 {
		p.near.Take(b, zero)
		return
	}
	key := priceKey{b, scale, zero}
	price, ok := p.prices[key]
	if !ok {
		const most = 1 << 12 // prices for scales of many mantissa bits are not cached
		if len(p.prices) >= most {
			clear(p.prices)
		}
		price = b.price(scale, zero)
		p.prices[key] = price
	}
	p.price = price
}

// pick returns the best code for a target, and the code's value. d is the weight of squared distances.
func (p *picker) pick(t float32, d float64) (byte, float32) {
	x, i := t/p.scale+p.zero, 0
	if p.price == nil {
		i = p.near.number(x)
	} else {
		i = p.book.best(x, p.zero, float32(min(p.Codes.Scale*max(d, 0)*float64(p.scale)*float64(p.scale), math.MaxFloat32)), p.price)
	}
	return p.book.codes[i], (p.book.values[i] - p.zero) * p.scale
}
