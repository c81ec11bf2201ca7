package forward

import (
	"math"
	"testing"
)

func TestSlopes(t *testing.T) {
	for heads, exponents := range map[int][]float64{
		1: {8}, 2: {4, 8}, 3: {4, 8, 2}, 6: {2, 4, 6, 8, 1, 3}, 8: {1, 2, 3, 4, 5, 6, 7, 8},
	} {
		a := newALiBi(heads, false)
		for i, e := range exponents {
			if want := math.Exp2(-e); len(a.slope) != heads || a.slope[i] != want {
				t.Errorf("%d heads: slopes %v, want 2^-%v", heads, a.slope, exponents)
			}
		}
	}
}

func TestCoarseBias(t *testing.T) {
	a := newALiBi(6, true)
	a.slope[0] = 0x1.ffp-3 // 9 bits: goes up to the even one
	if got := a.bias(0, 3, 0.5); got != 0.375 {
		t.Errorf("bias %v, want 0.375", got)
	}
	if got := a.bias(1, 257, 1); got != 16 {
		t.Errorf("bias of the slope 2^-4 at 257 is %v, want that of 256", got)
	}
}

func TestBiasesAreRelative(t *testing.T) {
	a := newALiBi(2, false)
	row := []float32{1, 1, 1}
	a.add(row, 0.5, 0)
	if row[2] != 0.5 || row[1] != 0.5-0x1p-4 || row[0] != 0.5-0x1p-3 {
		t.Errorf("scores %v", row)
	}
}
