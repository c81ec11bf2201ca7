package pattern

import (
	"fmt"
	"math"
	"math/bits"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
)

// TestFlipChance: every bit flips with the given probability, and bits of an element flip independently.
func TestFlipChance(t *testing.T) {
	if testing.Short() {
		t.Skip("slow, and without shared data for the race detector")
	}
	const n = 512
	for _, p := range []float64{0, 0.001, 0.1, 0.5, 0.7, 1} {
		for _, d := range []weights.DType{weights.F32, weights.BF16, weights.I8} {
			s := Spec{d, n, n, 9}
			// In types with NaN, the exponent of zeros gets at most one bit: two flips are needed for more.
			data, f := generate(t, fmt.Sprintf("zeros | flip(%v)", p), s)
			counts, pairs, elements := make([]int, f.Bits), 0, 0
			for i := range n * n {
				b := f.Elem(data, i)
				if f.IsFloat() && bits.OnesCount32(b&f.ExpMask()) >= f.ExpBits-1 {
					continue // the lowest exponent bit may have been cleared
				}
				elements++
				for k := range counts {
					counts[k] += int(b >> k & 1)
				}
				pairs += int(b & (b >> 1) & 1)
			}
			for k, c := range counts {
				if f.IsFloat() && f.ExpMask()>>k&1 == 1 {
					continue // the elements left out above bias these bits
				}
				if expected := p * float64(elements); math.Abs(float64(c)-expected) > 6*math.Sqrt(expected*(1-p))+1e-9 {
					t.Errorf("%s flip(%v): bit %d flipped in %d of %d elements, want about %.0f", d, p, k, c, elements, expected)
				}
			}
			if expected := p * p * float64(elements); math.Abs(float64(pairs)-expected) > 6*math.Sqrt(expected*(1-p*p))+1e-9 {
				t.Errorf("%s flip(%v): the lowest two bits flipped in %d elements, want about %.0f", d, p, pairs, expected)
			}
		}
	}
}

// TestChanceBits compares the share of set bits, in all words of a few dice, with the chance.
func TestChanceBits(t *testing.T) {
	for _, p := range []float64{0x1p-53, 1e-5, 0.3, 1 - 0x1p-53} {
		const n = 1 << 18
		c, set := newChance(p), 0
		dice := newDice(1, 2).row(3)
		for i := range n {
			set += bits.OnesCount32(c.bits(32, dice.at(i)))
		}
		if expected := p * 32 * n; math.Abs(float64(set)-expected) > 6*math.Sqrt(expected*(1-p))+1 {
			t.Errorf("chance %g: %d bits of %d, want about %.0f", p, set, 32*n, expected)
		}
	}
}

// TestRandomBits: only the named bits change; each is set in half of the elements.
func TestRandomBits(t *testing.T) {
	const n = 256
	for _, d := range types {
		for low, high := range map[int]int{0: 1, 3: 0, 2: 3, 8: 8} {
			data, f := generate(t, fmt.Sprintf("zeros | random(low=%d,high=%d)", low, high), Spec{d, n, n, 9})
			mask := uint32(1)<<low - 1 | uint32(1<<high-1)<<(f.Bits-high)
			counts := make([]int, f.Bits)
			for i := range n * n {
				b := f.Elem(data, i)
				if b&^mask != 0 {
					t.Fatalf("%s low=%d high=%d: %#x", d, low, high, b)
				}
				for k := range counts {
					counts[k] += int(b >> k & 1)
				}
			}
			for k, c := range counts {
				lowest := uint32(1) << f.MantBits // cleared in values that would not be finite
				if d == weights.F8E4M3 {
					lowest = 1
				}
				if mask>>k&1 == 1 && lowest>>k != 1 && math.Abs(float64(c)-n*n/2) > 6*n/2 {
					t.Errorf("%s low=%d high=%d: bit %d is set in %d of %d elements", d, low, high, k, c, n*n)
				}
			}
		}
	}
}

func TestFiniteClearsOneBit(t *testing.T) {
	for _, d := range types[1:] {
		f, _ := d.Format()
		for b := range uint32(1) << f.Bits {
			got := finite(f, b)
			if f.Finite(b) && got != b || !f.Finite(got) || bits.OnesCount32(got^b) > 1 {
				t.Fatalf("%s: %#x became %#x", d, b, got)
			}
		}
	}
}
