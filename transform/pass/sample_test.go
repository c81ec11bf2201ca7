package pass_test

import (
	"testing"

	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/weights"
)

// TestSampleHoldsWholeBlocks: a sample consists of whole blocks.
func TestSampleHoldsWholeBlocks(t *testing.T) {
	const rows, cols = 1024, 256
	x := matrix(weights.F32, cols, make([]float32, rows*cols))
	for _, tile := range [][2]int{{64, 64}, {16, 1}} {
		l := alone(t, x, 0)
		p, err := l.Program(t.Context(), pass.Sparsify.TensorStep("w", pass.Zeros{Block: &tile, Threshold: 1}))
		ok(t, err)
		ranges := l.Sample(l.Base(), p).Ranges()
		if len(ranges) == 0 {
			t.Errorf("%d×%d blocks: the sample is empty", tile[0], tile[1])
		}
		for _, r := range ranges {
			if r[0]%tile[0] != 0 || (r[1]-r[0])%tile[0] != 0 || r[1] > rows {
				t.Errorf("a range of rows %v cuts %d×%d blocks", r, tile[0], tile[1])
			}
		}
	}
}
