package cuda

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
)

// Like those of gpu_test.go, these tests skip where there is no card.

// Products of whole numbers are exact in any order of additions. Products of random numbers have the precision of float32; TF32,
// with 13 bits less, would fail.
func TestGPULinearLayers(t *testing.T) {
	p := newProducts(t, openGPU(t))
	rng := rand.New(rand.NewPCG(5, 5))
	for _, s := range [][3]int{{1, 1, 1}, {1, 384, 256}, {16, 1000, 333}, {33, 65, 129}, {2048, 768, 768}, {255, 3072, 1024}, {7, 4097, 4096}} {
		for _, transposed := range []bool{false, true} {
			for _, gap := range []int{0, 5} {
				l := newLinearLayer(s[0], s[1], s[2], gap, transposed, 11)
				if err := p.Mul(t.Context(), l.y, l.x, l.w, transposed); err != nil {
					t.Fatal(err)
				}
				if wrong := l.wrong(); wrong != "" {
					t.Errorf("%v, transposed %v, gap %d: %s", s, transposed, gap, wrong)
				}
				for _, m := range []sgemm.Matrix{l.x, l.w} {
					for i := range m.Data {
						m.Data[i] = float32(rng.NormFloat64())
					}
				}
				if err := p.Mul(t.Context(), l.y, l.x, l.w, transposed); err != nil {
					t.Fatal(err)
				}
				l.float32Like(t)
			}
		}
	}
	for _, m := range p.matmuls {
		if k := p.device.api.kernel(m.shape, m.mode.compute, &m.choice); k.TensorCores || k.Compute != compute32F {
			t.Errorf("%v", k)
		}
	}
}

// float32Like fails if y deviates from the product's reference by more than float32 arithmetic does.
func (l linearLayer) float32Like(t *testing.T) {
	t.Helper()
	y := l.y
	want := sgemm.Dense(y.Rows, y.Cols, nil)
	if err := (forward.CPU{}).Mul(t.Context(), want, l.x, l.w, l.transposed); err != nil {
		t.Fatal(err)
	}
	var off, size float64
	for i := range y.Rows {
		for j, v := range want.Row(i) {
			e := float64(y.Row(i)[j]) - float64(v)
			off, size = off+e*e, size+float64(v)*float64(v)
		}
	}
	p := gemm.Problem{M: y.Rows, N: y.Cols, K: l.x.Cols, Type: arith.FP32}
	if relative := math.Sqrt(off / size); !(relative <= p.Tolerance().Relative) {
		t.Errorf("%v: wrong by %.2g of its norm, float32 by %.2g at most", p, relative, p.Tolerance().Relative)
	}
}

// The demo model, trained, loses the same on the card as on the CPU.
func TestGPULoss(t *testing.T) {
	p := newProducts(t, openGPU(t))
	m, _, evaluation := testmodel.Trained(t)
	sameLosses(t, m, evaluation.Sequences[:16], p)
	sameLosses(t, testmodel.Random(t, "gpt2-tiny", 1), someTokens, p)
}
