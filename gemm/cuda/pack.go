package cuda

import (
	"encoding/binary"

	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
)

// Units of packed codes: see kernels/dequantise.cu.
const (
	unitRows  = 16
	unitCols  = 64
	unitBytes = unitRows * unitCols / 2
	tileRows  = 128 // rows are padded to it
)

// packing is the layout of packed weights.
type packing struct {
	strips, units, groups int
	scaleBytes            int // of one scale
	scales, zeros, bytes  int // offsets, and the size of all
}

func packingOf(c *gemm.Codes, times int) packing {
	p := packing{
		strips: ceil(c.Rows*times, tileRows) * tileRows / unitRows, units: c.Cols / unitCols, groups: c.Cols / c.Group,
		scaleBytes: c.ScaleType.Bits() / 8,
	}
	align := func(bytes int) int { return ceil(bytes, 256) * 256 }
	p.scales = align(p.strips * p.units * unitBytes)
	p.zeros = align(p.scales + p.strips*p.groups*unitRows*p.scaleBytes)
	p.bytes = p.zeros
	if c.Zeros != nil {
		p.bytes += p.strips * p.groups * unitRows
	}
	return p
}

// pack lays out codes, scales and zero points for the kernels. It repeats the rows the given number of times. Padding
// has scales of zero.
func pack(c *gemm.Codes, times int) []byte {
	p := packingOf(c, times)
	out := make([]byte, p.bytes)
	parallel.Do(p.strips, 0, func(strip int) {
		p.packCodes(out, c, times, strip)
		for g := range p.groups {
			for i := range unitRows {
				row := strip*unitRows + i
				if row >= c.Rows*times {
					break
				}
				from := row%c.Rows*p.groups + g
				to := (strip*p.groups+g)*unitRows + i%8*2 + i/8
				copy(out[p.scales+to*p.scaleBytes:][:p.scaleBytes], c.Scales[from*p.scaleBytes:])
				if c.Zeros != nil {
					out[p.zeros+to] = c.Zeros[from]
				}
			}
		}
	})
	return out
}

// packCodes packs a strip.
func (p packing) packCodes(out []byte, c *gemm.Codes, times, strip int) {
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
					word |= uint32(c.Codes[at])<<(4*i) | uint32(c.Codes[at+1])<<(16+4*i)
				}
				binary.LittleEndian.PutUint32(to[4*step:], word)
			}
		}
	}
}
