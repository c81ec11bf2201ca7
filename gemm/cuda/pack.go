package cuda

import (
	"encoding/binary"

	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
)

// Units of packed codes; see kernels/dequantise.cu.
const (
	unitRows  = 16
	unitCols  = 64
	unitBytes = unitRows * unitCols / 2
	tileRows  = 128 // rows are padded to multiples of this number
)

// packing is the layout of packed weights.
type packing struct {
	strips, units        int
	perUnit, blocks      int // groups per unit, at least 1, and number of such sets of groups in a strip
	scaleBytes           int // bytes per scale
	scales, zeros, bytes int // offsets of scales and zero points, and total size
}

func packingOf(c *gemm.Codes, times int) packing {
	p := packing{
		strips: ceil(c.Rows*times, tileRows) * tileRows / unitRows, units: c.Cols / unitCols, perUnit: max(1, unitCols/c.Group),
		scaleBytes: c.ScaleType.Bits() / 8,
	}
	p.blocks = c.Cols / c.Group / p.perUnit
	align := func(bytes int) int { return ceil(bytes, 256) * 256 }
	groups := p.strips * p.blocks * p.perUnit * unitRows
	p.scales = align(p.strips * p.units * unitBytes)
	p.zeros = align(p.scales + groups*p.scaleBytes)
	p.bytes = p.zeros
	if c.Zeros != nil {
		p.bytes += groups
	}
	return p
}

// place returns the position of a row's group among the scales and zero points.
func (p packing) place(row, group int) int {
	strip, i := row/unitRows, row%unitRows
	return (((strip*p.blocks+group/p.perUnit)*8+i%8)*p.perUnit+group%p.perUnit)*2 + i/8
}

// pack returns codes, scales and zero points in the kernels' layout. times is the number of times that the rows are
// repeated. Padding has scales of zero.
func pack(c *gemm.Codes, times int) []byte {
	p := packingOf(c, times)
	out := make([]byte, p.bytes)
	groups := p.blocks * p.perUnit
	parallel.Do(p.strips, 0, func(strip int) {
		p.packCodes(out, c, times, strip)
		for row := strip * unitRows; row < min((strip+1)*unitRows, c.Rows*times); row++ {
			for g := range groups {
				from, to := row%c.Rows*groups+g, p.place(row, g)
				copy(out[p.scales+to*p.scaleBytes:][:p.scaleBytes], c.Scales[from*p.scaleBytes:])
				if c.Zeros != nil {
					out[p.zeros+to] = c.Zeros[from]
				}
			}
		}
	})
	return out
}

// packCodes packs the codes of a strip.
func (p packing) packCodes(out []byte, c *gemm.Codes, times, strip int) {
	var place [4][16]uint32 // position of a code in the lower half of a word, by register
	for i := range place {
		for q := range place[i] {
			place[i][q] = uint32(q) << (4 * i)
			if c.FP4 {
				place[i][q] = placeFP4(i, uint32(q))
			}
		}
	}
	for unit := range p.units {
		for lane := range 32 {
			to := out[((strip*p.units+unit)*32+lane)*16:]
			for step := range 4 {
				var word uint32
				for i := range 4 { // registers of the left operand of m16n8k16
					row := strip*unitRows + lane/4 + i%2*8
					if row >= c.Rows*times {
						continue
					}
					at := row%c.Rows*c.Cols + unit*unitCols + step*16 + lane%4*2 + i/2*8
					word |= place[i][c.Codes[at]] | place[i][c.Codes[at+1]]<<16
				}
				binary.LittleEndian.PutUint32(to[4*step:], word)
			}
		}
	}
}

// placeFP4 returns the bits of an E2M1 code at its position in a word. A shift then moves the sign to bit 15 and the
// other bits to bits 6 to 8. The code of the last register gets the remaining bits of the word.
func placeFP4(register int, code uint32) uint32 {
	sign, rest := code>>3, code&7
	if register < 3 {
		return sign<<(15-3*register) | rest<<(6-3*register)
	}
	return sign<<14 | rest&1<<13 | rest>>1<<10
}
