package cuda

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/weights"
)

// Like those of gpu_test.go, these tests skip where there is no card.

// fp8Scales are random scales of blocks of w[N,K].
func fp8Scales(p gemm.Problem, rows, cols int) *gemm.Scales {
	rng := rand.New(rand.NewPCG(3, 4))
	s := &gemm.Scales{Rows: rows, Cols: cols}
	for range ceil(p.N, rows) * ceil(p.K, cols) {
		s.Values = append(s.Values, float32(0.5+rng.Float64()))
	}
	return s
}

// codedProduct returns a product with four-bit codes.
func codedProduct(t *testing.T, tokens int, c *gemm.Codes) Product {
	t.Helper()
	w, err := c.Matrix()
	if err != nil {
		t.Fatal(err)
	}
	p := gemm.Problem{M: tokens, N: c.Rows, K: c.Cols, Type: arith.BF16}
	x, _ := operands(gemm.Problem{M: tokens, N: 1, K: c.Cols, Type: arith.BF16}, 7)
	return Product{Name: "w", Problem: p, X: x, W: w}
}

// checked compares a product's result with the reference.
func checked(t *testing.T, d *Device, p Product, o Options) (gemm.Deviation, error) {
	t.Helper()
	b, err := d.NewBatch(t.Context(), "products", []Product{p}, o)
	if err != nil {
		return gemm.Deviation{}, err
	}
	found, err := b.Check(t.Context())
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if err != nil {
		return gemm.Deviation{}, err
	}
	return found[0], nil
}

func TestGPUScales(t *testing.T) {
	d := openGPU(t)
	offered := map[string]int{}
	for _, s := range []struct {
		name       string
		rows, cols int
	}{{"tensor", 1 << 20, 1 << 20}, {"channel", 1, 1 << 20}, {"block", 128, 128}} {
		for _, streaming := range []bool{false, true} {
			for _, size := range [][3]int{{16, 1024, 512}, {33, 640, 384}, {300, 1000, 640}, {4096, 1024, 1024}} {
				p := gemm.Problem{M: size[0], N: size[1], K: size[2], Type: arith.FP8, Streaming: streaming}
				x, w := operands(p, 11)
				w.Scales = fp8Scales(p, s.rows, s.cols)
				deviation, err := checked(t, d, Product{"w", p, x, w}, Options{Repeat: 1})
				t.Logf("%-8s %-32v relative %8.2e, worst %5.2f of its tolerance: %v", s.name, p, deviation.Relative, deviation.Worst, err)
				if err == nil {
					offered[s.name]++
				} else if !strings.Contains(err.Error(), "on "+d.Info().Name+" with cuBLASLt") { // the library refuses
					t.Errorf("%s %v: %v", s.name, p, err)
				}
			}
		}
	}
	t.Logf("%s: products that cuBLASLt %s multiplies: %v of 8 each", d.Info().Name, d.Info().CublasLt, offered)
	if offered["tensor"] != 8 {
		t.Error("a scale for each tensor is as old as FP8")
	}
}

func TestGPUDequantise(t *testing.T) {
	d := openGPU(t)
	for name, f := range map[string]struct {
		group      int
		fp4, zeros bool
		scales     weights.DType
	}{
		"INT4":              {group: 128, scales: weights.BF16},
		"INT4, zero points": {group: 128, scales: weights.BF16, zeros: true},
		"INT4, groups 256":  {group: 256, scales: weights.BF16, zeros: true},
		"INT4, groups 64":   {group: 64, scales: weights.BF16},
		"INT4, groups 32":   {group: 32, scales: weights.BF16, zeros: true},
		"INT4, one a row":   {scales: weights.BF16},
		"NVFP4":             {group: 16, scales: weights.F8E4M3, fp4: true},
		"NVFP4, subnormal":  {group: 16, scales: weights.F8E4M3, fp4: true},
		"MXFP4":             {group: 32, scales: weights.F8E8M0, fp4: true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, s := range [][3]int{{1, 1000, 512}, {16, 512, 1024}, {9, 128, 7168}, {16, 2048, 1280}, {17, 1000, 512}, {300, 392, 256}, {512, 256, 1024}} {
				if testing.Short() && (f.group == 256 || f.group == 64 || s[1] == 1000 || s[1] == 128) {
					continue
				}
				group := f.group
				if group == 0 {
					group = s[2]
				}
				p := codedProduct(t, s[0], randomCodes(s[1], s[2], group, f.fp4, f.zeros, f.scales))
				if name == "NVFP4, subnormal" {
					p = codedProduct(t, s[0], subnormal(p.W.Codes))
				}
				if f.scales == weights.F8E4M3 {
					p.W.Scales = &gemm.Scales{Values: []float32{0.03}, Rows: s[1], Cols: s[2]}
				}
				for _, p.Problem.Streaming = range []bool{false, true} {
					if p.Problem.Streaming && s[0] <= fewTokens {
						continue
					}
					deviation, err := checked(t, d, p, Options{Repeat: 1})
					t.Logf("%-32v relative %8.2e, worst %5.2f of its tolerance: %v", p.Problem, deviation.Relative, deviation.Worst, err)
					if err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
}

// Rates of quantised products of a layer of 14336×4096, beside BF16's. The dequantising kernel has at least 0.7 of BF16's rate,
// and of memory's.
func TestGPUQuantisedRates(t *testing.T) {
	d := openGPU(t)
	const n, k = 14336, 4096
	took := func(t *testing.T, name string, p Product, o Options) time.Duration {
		b, err := d.NewBatch(t.Context(), "products", []Product{p}, o)
		if err != nil {
			t.Logf("%-28s %v", name, err)
			return 0
		}
		replays := max(1, int(300*time.Millisecond/b.replay))
		if err := errors.Join(b.Start(replays), b.Wait(t.Context())); err != nil {
			t.Fatal(err)
		}
		all, err := b.Elapsed()
		if err != nil {
			t.Fatal(err)
		}
		if found, err := b.Check(t.Context()); err != nil {
			t.Errorf("%s: %v, %+v", name, err, found)
		}
		each := all / time.Duration(replays*b.Passes())
		bytes := float64(b.WeightBytes()) / float64(b.Copies())
		t.Logf("%-28s M=%-5d %9v each, %6.1f Tflop/s, %5.2f TB/s of weights; %v", name, p.Problem.M, each,
			b.Ops()/float64(b.Passes())/each.Seconds()/1e12, bytes/each.Seconds()/1e12, b.Kernels()[0])
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		return each
	}
	for _, tokens := range []int{4096, 16} {
		t.Run(fmt.Sprintf("%d tokens", tokens), func(t *testing.T) {
			o := Options{Cold: tokens == 16}
			if o.Cold {
				o.Stack = 2
			}
			bf16 := gemm.Problem{M: tokens, N: n, K: k, Type: arith.BF16}
			x, w := operands(bf16, 5)
			reference := took(t, "BF16", Product{"w", bf16, x, w}, o)
			for _, f := range []struct {
				name string
				of   *gemm.Codes
			}{
				{"INT4", randomCodes(n, k, 128, false, false, weights.BF16)},
				{"INT4, zero points", randomCodes(n, k, 128, false, true, weights.BF16)},
				{"NVFP4", randomCodes(n, k, 16, true, false, weights.F8E4M3)},
				{"MXFP4", randomCodes(n, k, 32, true, false, weights.F8E8M0)},
			} {
				p := codedProduct(t, tokens, f.of)
				for _, p.Problem.Streaming = range []bool{false, true} {
					if p.Problem.Streaming && tokens <= fewTokens {
						continue
					}
					each := took(t, f.name, p, o)
					t.Logf("%-28s %.2f of BF16's rate", f.name, reference.Seconds()/each.Seconds())
				}
			}
			if testing.Short() {
				return
			}
			fp8 := gemm.Problem{M: tokens, N: n, K: k, Type: arith.FP8}
			x, w = operands(fp8, 5)
			for _, s := range [][2]int{{n, k}, {1, k}, {128, 128}} {
				for _, streaming := range []bool{false, true} {
					p := fp8
					p.Streaming = streaming
					w.Scales = fp8Scales(p, s[0], s[1])
					took(t, fmt.Sprintf("FP8, scales of %d×%d, %v", s[0], s[1], streaming), Product{"w", p, x, w}, o)
				}
			}
		})
	}
}
