package rounding

import (
	"math"
	"sync"
)

// Nearest finds the nearest values in a code book, for one zero point at a time. Call Take first. The code has no
// branches that depend on the numbers, because nearly random numbers make such branches slow. It is for one
// goroutine.
type Nearest struct {
	book   *CodeBook
	zero   float32
	start  *[starts]uint8 // nil: search the book
	bounds [256]float32   // by value: the smallest number for which the next value is nearer
	values [256]float32
}

// Numbers with equal first startBits bits have the same sign, exponent and first 3 bits of the mantissa.
const (
	startBits = 12
	starts    = 1 << startBits
)

// bounds are the numbers at which the nearest value of a book changes. Numbers with equal first bits are so close
// together that at most one bound lies among them.
type bounds struct {
	once  sync.Once
	start *[starts]uint8 // first value that can be nearest, by first bits; nil: several bounds may have equal first bits
	// up and down are, for each value but the last, the smallest number to which the next value is nearest. In up,
	// ties go to the next value; in down, they do not.
	up, down []float32
}

// Take sets the book and the zero point. Ties go to the value nearer to the zero point.
func (s *Nearest) Take(b *CodeBook, zero float32) {
	if s.book == b && s.zero == zero {
		return
	}
	known := b.bounds
	known.once.Do(func() { known.find(b.values) })
	s.book, s.zero, s.start = b, zero, known.start
	if s.start == nil {
		return
	}
	copy(s.values[:], b.values)
	last := len(b.values) - 1
	for i, v := range b.values[:last] {
		if s.bounds[i] = known.down[i]; abs32(b.values[i+1]-zero) < abs32(v-zero) {
			s.bounds[i] = known.up[i]
		}
	}
	s.bounds[last] = float32(math.NaN())
}

// number returns the number of the nearest value, like [CodeBook.nearest].
func (s *Nearest) number(x float32) int {
	if s.start == nil {
		return s.book.nearest(x, s.zero)
	}
	i := uint32(s.start[math.Float32bits(x)>>(32-startBits)])
	if x >= s.bounds[uint8(i)] {
		i++
	}
	return int(i)
}

// Sample is a target with the weight of its squared error.
type Sample struct {
	X      float32
	Weight float64
}

// Squares returns the sum of the samples' squared errors. Each target is multiplied by ratio, and the zero point is
// added. If the sum is at least most, Squares returns most.
func (s *Nearest) Squares(samples []Sample, ratio float32, most float64) (sum float64) {
	const each = 32 // number of samples between comparisons with most
	for len(samples) > 0 {
		some := samples[:min(each, len(samples))]
		samples = samples[len(some):]
		if s.start == nil {
			for _, p := range some {
				x := float32(p.X*ratio) + s.zero
				d := x - s.book.values[s.book.nearest(x, s.zero)]
				sum += float64(float64(float32(d*d)) * p.Weight)
			}
		} else {
			start := s.start
			for _, p := range some {
				x := float32(p.X*ratio) + s.zero
				i := uint32(start[math.Float32bits(x)>>(32-startBits)])
				if x >= s.bounds[uint8(i)] {
					i++
				}
				d := x - s.values[uint8(i)]
				sum += float64(float64(float32(d*d)) * p.Weight)
			}
		}
		if sum >= most {
			return most
		}
	}
	return sum
}

// find computes the bounds of values.
func (b *bounds) find(values []float32) {
	gaps := len(values) - 1
	if gaps > 255 {
		return
	}
	b.up, b.down = make([]float32, gaps), make([]float32, gaps)
	for i := range gaps {
		lo, hi := values[i], values[i+1]
		b.up[i] = least(lo, hi, func(x float32) bool { return hi-x <= x-lo })
		b.down[i] = least(lo, hi, func(x float32) bool { return hi-x < x-lo })
	}
	var start [starts]uint8
	at := 0                                                              // number of bounds below
	for key := uint32(starts/2 + infinite - 1); key >= starts/2; key-- { // negative numbers, ascending
		if at = b.pass(at, fromKey(key+1, -1)); b.several(at, fromKey(key, 0)) {
			return
		}
		start[key] = uint8(at)
	}
	for key := range uint32(infinite) {
		if at = b.pass(at, fromKey(key, 0)); b.several(at, fromKey(key+1, -1)) {
			return
		}
		start[key] = uint8(at)
	}
	start[infinite] = uint8(gaps) // NaN from arithmetic has another key
	b.start = &start
}

// infinite is the first startBits bits of infinity.
const infinite = 0x7F800000 >> (32 - startBits)

func fromKey(key uint32, more int32) float32 {
	return math.Float32frombits(key<<(32-startBits) + uint32(more))
}

// pass returns the number of bounds that are at most x. At least at bounds are known to be.
func (b *bounds) pass(at int, x float32) int {
	for at < len(b.down) && b.down[at] <= x {
		at++
	}
	return at
}

// several reports whether two bounds from number at on are at most x.
func (b *bounds) several(at int, x float32) bool { return at+1 < len(b.up) && b.up[at+1] <= x }

// least returns the smallest number from lo to hi for which above is true. The bound lies near the middle of lo and
// hi.
func least(lo, hi float32, above func(x float32) bool) float32 {
	x := lo + float32((hi-lo)/2)
	if !above(x) {
		lo, x = x, math.Nextafter32(x, hi)
	} else {
		hi, x = x, math.Nextafter32(x, lo)
	}
	for { // above(hi), and not above(lo)
		if above(x) {
			hi = x
		} else {
			lo = x
		}
		a, b := ordered(lo), ordered(hi)
		if b-a <= 1 {
			return hi
		}
		x = fromOrdered(a + (b-a)/2)
	}
}

// ordered maps finite numbers to integers in the same order. Both zeros map to 0.
func ordered(x float32) int64 {
	b := int64(math.Float32bits(x))
	if b >= 1<<31 {
		return 1<<31 - b
	}
	return b
}

func fromOrdered(i int64) float32 {
	if i < 0 {
		return -math.Float32frombits(uint32(-i))
	}
	return math.Float32frombits(uint32(i))
}
