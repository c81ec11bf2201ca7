package cost

import (
	"math/bits"

	"github.com/lowtoggle/lowtoggle/weights"
)

// chunk of a row that is looked at in memory order, in bytes.
const chunk = 512

// bus gathers what memory's wires see of a matrix.
type bus struct {
	f                     weights.Format
	near, burst, far, set rate
	ones                  [32]float64 // of each bit of an element
	elements              float64
}

// add takes in consecutive bytes.
func (b *bus) add(data []byte) {
	for lag, r := range map[int]*rate{2: &b.near, 32: &b.burst, 64: &b.far} {
		sum := 0
		for i := lag; i < len(data); i++ {
			sum += bits.OnesCount8(data[i] ^ data[i-lag])
		}
		r.addAll(sum, max(0, len(data)-lag))
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

// any is how many bits differ between two elements taken anywhere: what streams that many cores
// ask for make of a matrix by the time they share a wire.
func (b *bus) any() (sum float64) {
	for _, ones := range b.ones[:b.f.Bits] {
		p := ones / b.elements
		sum += 2 * p * (1 - p)
	}
	return sum
}

// buses writes the signals of both operands' memory.
func (s *Signals) buses(w, x *bus) {
	s[weightBus2], s[weightBus32] = w.near.sum/w.near.n, w.burst.sum/w.burst.n
	s[weightOnes], s[weightAny] = w.set.sum/w.set.n, w.any()
	s[bus2] = s[weightBus2] + x.near.sum/x.near.n
	s[bus32] = s[weightBus32] + x.burst.sum/x.burst.n
	s[bus64] = w.far.sum/w.far.n + x.far.sum/x.far.n
	s[busOnes] = s[weightOnes] + x.set.sum/x.set.n
	s[busAny] = s[weightAny] + x.any()
}
