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
			c.Scales = append(c.Scales, byte(8+rng.IntN(0x77)))
		default:
			c.Scales = append(c.Scales, byte(115+rng.IntN(8)))
		}
		if zeros {
			c.Zeros = append(c.Zeros, byte(rng.IntN(17)))
		}
	}
	return c
}

// subnormal gives a group a scale that is a subnormal number.
func subnormal(c *gemm.Codes) *gemm.Codes {
	c.Scales[5] = 3
	return c
}

// laneGroups returns the scales, as BF16 for integers, and zero points of a lane for 16 inputs: of the rows i and i+8, in both
// halves of a word.
func laneGroups(p packing, f format, data []byte, strip, unit, of, step int) (scales, zeros [2]uint32) {
	block := unit
	if f.group == 0 {
		block = 0
	} else if f.group >= 64 {
		block = unit * unitCols / f.group
	}
	pair := ((strip*p.blocks+block)*8+of/4)*2*p.perUnit + step*p.perUnit/4*2
	for i := range 2 {
		at := data[p.scales+(pair+i)*p.scaleBytes:]
		switch f.scales {
		case bf16Scales:
			scales[i] = both(uint32(binary.LittleEndian.Uint16(at)))
		case e4m3Scales:
			scales[i] = product2(product2(both(uint32(at[0]&0x7f)<<4), 0x7b807b80), 0x7a807a80)
		case e8m0Scales:
			scales[i] = both(uint32(at[0])<<7) + 0x3b003b00
		case normalScales:
			scales[i] = both(uint32(at[0])<<4) + 0x77007700
		}
		zeros[i] = both(8)
		if f.zeros {
			zeros[i] = both(uint32(data[p.zeros+pair+i]))
		}
	}
	return scales, zeros
}

// lane computes what kernels/dequantise.cu computes in a lane for 16 inputs, with its steps: the four registers of the left
// operand.
func lane(p packing, f format, data []byte, strip, unit, of, step int) (a [4]uint32) {
	word := binary.LittleEndian.Uint32(data[((strip*p.units+unit)*32+of)*16+4*step:])
	scales, zeros := laneGroups(p, f, data, strip, unit, of, step)
	if f.fp4 {
		const all = 0x81c081c0
		a = [4]uint32{word & all, word << 3 & all, word << 6 & all, word<<1&0x80008000 | word>>3&0x01800180 | word>>7&0x00400040}
		for i := range a {
			a[i] = product2(a[i], scales[i&1])
		}
		return a
	}
	for i := range a {
		biased := word>>(4*i)&0x000f000f | 0x43004300
		a[i] = product2(fma2(biased, 0x3f803f80, zeros[i&1]|0xc300c300), scales[i&1])
	}
	return a
}

// fewLane is lane for integers in kernels/dequantisefew.cu, which are smaller by 2^16.
func fewLane(p packing, f format, data []byte, strip, unit, of, step int) (a [4]uint32) {
	word := binary.LittleEndian.Uint32(data[((strip*p.units+unit)*32+of)*16+4*step:])
	scales, zeros := laneGroups(p, f, data, strip, unit, of, step)
	for i := range a {
		row := i & 1
		code, by := word>>(i/2*8)&(0x000f000f<<(4*row)), product2(scales[row], both(0x7a00-0x200*uint32(row)))
		if f.zeros {
			a[i] = product2(fma2(code, 0x3f803f80, zeros[row]<<(4*row)|0x80008000), by)
		} else {
			a[i] = fma2(code, by, product2(scales[row], 0xb900b900))
		}
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
		"NVFP4, subnormal":   subnormal(randomCodes(40, 128, 16, true, false, weights.F8E4M3)),
		"MXFP4":              randomCodes(40, 128, 32, true, false, weights.F8E8M0),
	} {
		m, err := c.Matrix()
		if err != nil {
			t.Fatal(err)
		}
		const times = 3
		p, f, data := packingOf(c, times), formatOf(c), pack(c, times)
		seen := 0
		for strip := range p.strips {
			for unit := range p.units {
				for step := range 4 {
					for of := range 32 {
						for i, r := range lane(p, f, data, strip, unit, of, step) {
							row := strip*unitRows + of/4 + i%2*8
							col := unit*unitCols + step*16 + of%4*2 + i/2*8
							if row >= times*c.Rows {
								continue
							}
							seen += 2
							at := 2 * (row%c.Rows*c.Cols + col)
							want := binary.LittleEndian.Uint32(m.Data[at:])
							if c.FP4 {
								want = product2(want, 0x3b803b80) // 2^-8
							}
							if r != want {
								t.Fatalf("%s: row %d, columns %d and %d: %08x, want %08x", name, row, col, col+1, r, want)
							}
							if c.FP4 {
								continue
							}
							if r, want := fewLane(p, f, data, strip, unit, of, step)[i], product2(want, 0x37803780); r != want {
								t.Fatalf("%s: row %d, columns %d and %d: %08x, want %08x for few tokens", name, row, col, col+1, r, want)
							}
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
