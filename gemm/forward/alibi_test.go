package forward

import (
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/decoder"
)

func TestCoarseBias(t *testing.T) {
	a := &decoder.ALiBi{Slopes: []float64{0x1.ffp-3, 0x1p-4}, Coarse: true} // the first has 9 bits and goes up to the even one
	if got := bias(a, 0, 3, 0.5); got != 0.375 {
		t.Errorf("bias %v, want 0.375", got)
	}
	if got := bias(a, 1, 257, 1); got != 16 {
		t.Errorf("bias of the slope 2^-4 at 257 is %v, want that of 256", got)
	}
}

func TestBiasesAreRelative(t *testing.T) {
	a := &decoder.ALiBi{Slopes: []float64{0x1p-4, 0x1p-8}}
	row := []float32{1, 1, 1}
	addBias(a, row, 0.5, 0)
	if row[2] != 0.5 || row[1] != 0.5-0x1p-4 || row[0] != 0.5-0x1p-3 {
		t.Errorf("scores %v", row)
	}
}
