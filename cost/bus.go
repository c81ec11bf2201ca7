package cost

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"github.com/lowtoggle/lowtoggle/weights"
)

// chunk is the size in bytes of the parts of a row that are read in memory order.
const chunk = 512

// bus counts the toggles of a matrix on the memory's wires.
type bus struct {
	f                                   weights.Format
	lags                                MemoryLags
	element, sector, line, set, nonzero rate
	ones                                [32]float64 // of each bit of an element
	elements                            float64
}

// add adds consecutive bytes.
func (b *bus) add(data []byte) {
	for _, at := range []struct {
		lag int
		r   *rate
	}{{b.lags.Element, &b.element}, {b.lags.Sector, &b.sector}, {b.lags.Line, &b.line}} {
		n := max(0, len(data)-at.lag)
		at.r.addAll(differing(data[len(data)-n:], data[:n]), n)
	}
	b.set.addAll(differing(data, nil), len(data))
	b.nonzero.addAll(len(data)-bytes.Count(data, []byte{0}), len(data))
	b.count(data)
	b.elements += float64(len(data) * 8 / b.f.Bits)
}

// differing returns the number of bits that differ between two rows of bytes. An empty row stands for zeros.
func differing(x, y []byte) (sum int) {
	for len(x) >= 8 {
		v := binary.LittleEndian.Uint64(x)
		if x = x[8:]; y != nil {
			v ^= binary.LittleEndian.Uint64(y)
			y = y[8:]
		}
		sum += bits.OnesCount64(v)
	}
	for i, v := range x {
		if y != nil {
			v ^= y[i]
		}
		sum += bits.OnesCount8(v)
	}
	return sum
}

// count adds the number of ones of each bit of an element.
func (b *bus) count(data []byte) {
	width := b.f.Bits
	if width%8 == 0 {
		const words = 255                    // largest count of the narrowest field
		first := ^uint64(0) / (1<<width - 1) // the lowest bit of each element in a word
		for len(data) >= 8 {
			part := data[:min(len(data)/8, words)*8]
			for bit := range width {
				var fields uint64
				for at := 0; at < len(part); at += 8 {
					fields += binary.LittleEndian.Uint64(part[at:]) >> bit & first
				}
				for ; fields != 0; fields >>= width {
					b.ones[bit] += float64(fields & (1<<width - 1))
				}
			}
			data = data[len(part):]
		}
	}
	for i := range len(data) * 8 / width {
		for v := b.f.Elem(data, i); v != 0; v &= v - 1 {
			b.ones[bits.TrailingZeros32(v)]++
		}
	}
}

// any returns the mean number of bits that differ between two random elements of the matrix. Wires toggle at this
// rate if the requests of many multiprocessors are interleaved.
func (b *bus) any() (sum float64) {
	for _, ones := range b.ones[:b.f.Bits] {
		p := ones / b.elements
		sum += float64(2 * p * (1 - p))
	}
	return sum
}

// buses writes the features of both operands' memory.
func (s *Features) buses(w, x *bus) {
	s[weightElement], s[weightSector] = w.element.sum/w.element.n, w.sector.sum/w.sector.n
	s[weightOnes], s[weightAny] = w.set.sum/w.set.n, w.any()
	s[weightNonzero] = w.nonzero.sum / w.nonzero.n
	s[busElement] = s[weightElement] + x.element.sum/x.element.n
	s[busSector] = s[weightSector] + x.sector.sum/x.sector.n
	s[busLine] = w.line.sum/w.line.n + x.line.sum/x.line.n
	s[busOnes] = s[weightOnes] + x.set.sum/x.set.n
	s[busAny] = s[weightAny] + x.any()
}
