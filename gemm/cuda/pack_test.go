package cuda

import (
	"encoding/binary"
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/weights"
)

// randomCodes are codes with scales of both signs where the type has them, and zero points if asked.
func randomCodes(rows, cols, group int, fp4, zeros bool, scales weights.DType) *gemm.Codes {
	rng := rand.New(rand.NewPCG(uint64(rows), uint64(cols)))
	c := &gemm.Codes{Rows: rows, Cols: cols, FP4: fp4, Codes: make([]byte, rows*cols), Group: group, ScaleType: scales}
	for i := range c.Codes {
		c.Codes[i] = byte(rng.IntN(16))
	}
	for range rows * cols / group {
		switch scales {
		case weights.BF16:
			c.Scales = binary.LittleEndian.AppendUint16(c.Scales, uint16(math.Float32bits(float32(0.01+0.02*rng.Float64()))>>16))
		case weights.F8E4M3:
			c.Scales = append(c.Scales, byte(1+rng.IntN(0x7d)))
		default:
			c.Scales = append(c.Scales, byte(115+rng.IntN(8)))
		}
		if zeros {
			c.Zeros = append(c.Zeros, byte(rng.IntN(17)))
		}
	}
	return c
}

// lane computes what kernels/dequantise.cu computes in a lane for 16 inputs, with its steps: the four registers of the left
// operand.
func lane(p packing, f format, data []byte, strip, unit, of, step int) (a [4]uint32) {
	word := binary.LittleEndian.Uint32(data[((strip*p.units+unit)*32+of)*16+4*step:])
	group := 0
	if f.group > 0 {
		group = (unit*unitCols + step*16) / f.group
	}
	pair := ((strip*p.groups+group)*8 + of/4) * 2
	var scales, zeros [2]uint32
	for i := range 2 {
		at := data[p.scales+(pair+i)*p.scaleBytes:]
		switch f.scales {
		case weights.BF16:
			scales[i] = both(uint32(binary.LittleEndian.Uint16(at)))
		case weights.F8E4M3:
			scales[i] = product2(both(uint32(at[0]&0x7f)<<4), 0x7b807b80)
		default:
			scales[i] = both(max(uint32(at[0])<<7, 0x40))
		}
		zeros[i] = 0xc308c308
		if f.zeros {
			zeros[i] = 0xc300c300 | both(uint32(data[p.zeros+pair+i]))
		}
	}
	if f.fp4 {
		const sign, rest = 0x80008000, 0x01c001c0
		a = [4]uint32{word<<12&sign | word<<6&rest, word<<8&sign | word<<2&rest, word<<4&sign | word>>2&rest, word&sign | word>>6&rest}
		for i := range a {
			a[i] = product2(product2(a[i], 0x7e807e80), scales[i&1])
		}
		return a
	}
	for i := range a {
		biased := word>>(4*i)&0x000f000f | 0x43004300
		a[i] = product2(fma2(biased, 0x3f803f80, zeros[i&1]), scales[i&1])
	}
	return a
}

func both(v uint32) uint32 { return v | v<<16 }

// fma2 is fma.rn.bf16x2.
func fma2(a, b, c uint32) (d uint32) {
	f, _ := weights.BF16.Format()
	value := func(v uint32) float64 { return float64(math.Float32frombits(v << 16)) }
	for h := 0; h < 32; h += 16 {
		sum := math.FMA(value(a>>h), value(b>>h), value(c>>h))
		d |= uint32(f.FromValue(float32(sum))) << h
	}
	return d
}

func product2(a, b uint32) uint32 { return fma2(a, b, 0x80008000) }

// The registers that the kernel computes from packed codes hold [gemm.Codes.Matrix], in the layout of the left operand of
// mma.m16n8k16.
func TestPackedCodesAreTheMatrix(t *testing.T) {
	for name, c := range map[string]*gemm.Codes{
		"INT4":               randomCodes(40, 256, 128, false, false, weights.BF16),
		"INT4, zero points":  randomCodes(128, 128, 32, false, true, weights.BF16),
		"INT4, one a row":    randomCodes(24, 192, 192, false, true, weights.BF16),
		"INT4, groups of 64": randomCodes(16, 128, 64, false, false, weights.BF16),
		"NVFP4":              randomCodes(40, 128, 16, true, false, weights.F8E4M3),
		"MXFP4":              randomCodes(40, 128, 32, true, false, weights.F8E8M0),
	} {
		m, err := c.Matrix()
		if err != nil {
			t.Fatal(err)
		}
		const times = 3
		p, data := packingOf(c, times), pack(c, times)
		seen := 0
		for strip := range p.strips {
			for unit := range p.units {
				for step := range 4 {
					for of := range 32 {
						for i, r := range lane(p, formatOf(c), data, strip, unit, of, step) {
							row := strip*unitRows + of/4 + i%2*8
							col := unit*unitCols + step*16 + of%4*2 + i/2*8
							if row >= times*c.Rows {
								continue
							}
							at := 2 * (row%c.Rows*c.Cols + col)
							if want := binary.LittleEndian.Uint32(m.Data[at:]); r != want {
								t.Fatalf("%s: row %d, columns %d and %d: %08x, want %08x", name, row, col, col+1, r, want)
							}
							seen += 2
						}
					}
				}
			}
		}
		if seen != times*c.Rows*c.Cols {
			t.Errorf("%s: %d elements", name, seen)
		}
		if bits.OnesCount(uint(p.scales)&255)+bits.OnesCount(uint(p.zeros)&255) > 0 {
			t.Errorf("%s: scales at %d, zero points at %d", name, p.scales, p.zeros)
		}
	}
}
