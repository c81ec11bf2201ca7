package cost

import (
	"math/bits"

	"github.com/lowtoggle/lowtoggle/weights"
)

// chunk is the part of a row that is looked at in memory order, in bytes.
const chunk = 512

// bus gathers what memory's wires see of a matrix.
type bus struct {
	f                          weights.Format
	lags                       MemoryLags
	element, sector, line, set rate
	ones                       [32]float64 // of each bit of an element
	elements                   float64
}

// add takes in consecutive bytes.
func (b *bus) add(data []byte) {
	for _, at := range []struct {
		lag int
		r   *rate
	}{{b.lags.Element, &b.element}, {b.lags.Sector, &b.sector}, {b.lags.Line, &b.line}} {
		sum := 0
		for i := at.lag; i < len(data); i++ {
			sum += bits.OnesCount8(data[i] ^ data[i-at.lag])
		}
		at.r.addAll(sum, max(0, len(data)-at.lag))
	}
	sum := 0
	for _, v := range data {
		sum += bits.OnesCount8(v)
	}
	b.set.addAll(sum, len(data))
	n := len(data) * 8 / b.f.Bits
	for i := range n {
		for v := b.f.Elem(data, i); v != 0; v &= v - 1 {
			b.ones[bits.TrailingZeros32(v)]++
		}
	}
	b.elements += float64(n)
}

// any is how many bits differ between two elements taken anywhere, which is what a wire sees when the
// requests of many multiprocessors are mixed on it.
func (b *bus) any() (sum float64) {
	for _, ones := range b.ones[:b.f.Bits] {
		p := ones / b.elements
		sum += 2 * p * (1 - p)
	}
	return sum
}

// buses writes the features of both operands' memory.
func (s *Features) buses(w, x *bus) {
	s[weightElement], s[weightSector] = w.element.sum/w.element.n, w.sector.sum/w.sector.n
	s[weightOnes], s[weightAny] = w.set.sum/w.set.n, w.any()
	s[busElement] = s[weightElement] + x.element.sum/x.element.n
	s[busSector] = s[weightSector] + x.sector.sum/x.sector.n
	s[busLine] = w.line.sum/w.line.n + x.line.sum/x.line.n
	s[busOnes] = s[weightOnes] + x.set.sum/x.set.n
	s[busAny] = s[weightAny] + x.any()
}
