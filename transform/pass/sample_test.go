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

// TestLargeLayersKeepASample: of layers from SampleFrom weights on, whose rows are outputs, only the rows of a sample are loaded, until
// they are freed.
func TestLargeLayersKeepASample(t *testing.T) {
	const rows, cols = 4000, 48
	v := make([]float32, rows*cols)
	for i := range v {
		v[i] = float32(i%251) - 125
	}
	for _, c := range []struct {
		outAxis, from int
		sampled       bool
	}{{0, 0, false}, {0, 1, true}, {0, rows * cols, true}, {0, rows*cols + 1, false}, {1, 1, false}} {
		l := alone(t, matrix(weights.BF16, cols, v), c.outAxis)
		l.SampleFrom = c.from
		free, err := l.KeepSample(t.Context())
		ok(t, err)
		fitted, err := l.Fitted(t.Context())
		ok(t, err)
		want := l.Outputs()
		if c.sampled {
			want = 0
			for _, r := range l.Bands() {
				want += r[1] - r[0]
			}
		}
		if (l.Bands() != nil) != c.sampled || fitted.Rows != want || want == 0 || c.sampled && want >= rows {
			t.Errorf("outputs on axis %d, from %d weights: bands %v, %d outputs are loaded", c.outAxis, c.from, l.Bands(), fitted.Rows)
		}
		if again, err := l.Fitted(t.Context()); again != fitted || err != nil {
			t.Error("the layer is loaded twice")
		}
		free()
		if again, err := l.Fitted(t.Context()); again == fitted || err != nil || l.Bands() != nil || again.Rows != l.Outputs() {
			t.Error("the layer stays loaded")
		}
	}
}
