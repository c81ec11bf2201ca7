package rounder_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/cuda/rounder"
	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform/rounding"
	"github.com/lowtoggle/lowtoggle/weights"
)

// The tests of this file run on a real card and skip where there is none. Without Go there: build the test binary
// with CGO_ENABLED=0 go test -c, and run it with -test.v -test.run GPU.

func openGPU(t testing.TB) *rounder.Rounder {
	t.Helper()
	d, err := cuda.Open(0)
	if errors.Is(err, cuda.ErrNoGPU) {
		t.Skip(err)
	}
	testmodel.OK(t, err)
	t.Cleanup(func() { testmodel.OK(t, d.Close()) })
	r, err := rounder.New(t.Context(), d)
	testmodel.OK(t, err)
	t.Cleanup(func() { testmodel.OK(t, r.Close()) })
	return r
}

// layer draws weights of a format, some of them not finite, and a Hessian of correlated inputs.
func layer(seed uint64, n, k, tokens int, f weights.Format) (w, h sgemm.Matrix) {
	rng := rand.New(rand.NewPCG(seed, 1))
	w = sgemm.Dense(n, k, nil)
	for i := range w.Data {
		v := float32(rng.NormFloat64())
		switch {
		case !f.IsFloat():
			v *= 40
		case rng.IntN(50) == 0: // subnormal numbers and the largest ones
			v *= float32(math.Ldexp(1, []int{2 - f.Bias, min(f.Bias-1, 60)}[rng.IntN(2)]))
		}
		w.Data[i] = f.Value(f.FromValue(v))
	}
	if f.IsFloat() && n > 2 {
		w.Data[k+k/2], w.Data[2*k+1] = f.Value(f.MaxFinite+1), f.Value(f.MaxFinite+1) // infinite, or NaN
	}
	x := sgemm.Dense(tokens, k, nil)
	size := make([]float64, k)
	for i := range size {
		size[i] = math.Exp(0.7 * rng.NormFloat64())
	}
	for i := range tokens {
		last := 0.0
		for j := range k {
			last = 0.8*last + 0.6*rng.NormFloat64()
			x.Data[i*k+j] = float32(size[j] * last / math.Sqrt(float64(tokens)))
		}
	}
	h = sgemm.Dense(k, k, nil)
	if err := sgemm.Mul(context.Background(), h, x, x, sgemm.Op{TransA: true}); err != nil {
		panic(err)
	}
	for i := range k {
		for j := range i {
			h.Data[i*k+j] = h.Data[j*k+i]
		}
	}
	return w, h
}

func onCard(r *rounder.Rounder, key string, h sgemm.Matrix) rounding.DeviceHessian {
	return r.Hessian(key, func(context.Context) (*rounding.Triangle, error) { return rounding.NewTriangle(h), nil })
}

// stored are values as a format stores them.
func stored(f weights.Format, m sgemm.Matrix) rounding.Values {
	v := rounding.Values{Rows: m.Rows, Cols: m.Cols, Format: f, Data: make([]byte, m.Rows*m.Cols*f.Bits/8)}
	f.Encode(v.Data, m.Data)
	for i, x := range m.Data {
		if x-x != 0 {
			f.SetElem(v.Data, i, f.MaxFinite+1)
		}
	}
	return v
}

// choosers returns some of each kind for a format and n outputs.
func choosers(f weights.Format, n int, scale float64) (groups [][]rounding.Tabulated) {
	rates := rounding.Rates{Significant: []float64{0.1}}
	for b := 1; b <= f.MantBits+1; b++ {
		rates.Significant = append(rates.Significant, 0.3+0.7*float64(b-1)/float64(max(f.MantBits, 1)))
	}
	var prices []rounding.Tabulated
	for _, lambda := range []float64{1e-4, 1e-2, 1} {
		prices = append(prices, rounding.Trellis{Format: f, Rates: rates, Lambda: lambda, Scale: scale})
	}
	steps := make([]int, n)
	for i := range steps {
		steps[i] = i%7 - 5
	}
	return [][]rounding.Tabulated{prices, {rounding.Bits{Format: f, Zeroed: f.Zeroable() / 2}}, {rounding.Stored{Format: f}},
		{rounding.Grid{Format: f, Exponents: steps}}}
}

// The card rounds with the bits of the CPU, and so do powers.
func TestGPURound(t *testing.T) {
	r := openGPU(t)
	for _, c := range []struct {
		dtype        weights.DType
		n, k, tokens int
		zero         int
		damp         float64
	}{
		{weights.BF16, 1, 1, 3, 0, 0.1}, {weights.BF16, 5, 17, 40, 3, 1e-3}, {weights.BF16, 40, 128, 200, 0, 1e-2},
		{weights.BF16, 300, 129, 100, 0, 1e-3}, {weights.BF16, 33, 400, 600, 20, 1e-1}, {weights.F16, 70, 200, 150, 0, 1e-2},
		{weights.F32, 20, 130, 150, 0, 1e-2}, {weights.F8E4M3, 37, 150, 300, 0, 1e-2}, {weights.I8, 64, 65, 100, 5, 1e-2},
	} {
		t.Run(fmt.Sprintf("%s %dx%d", c.dtype, c.n, c.k), func(t *testing.T) {
			f, _ := c.dtype.Format()
			w, h := layer(uint64(c.k), c.n, c.k, c.tokens, f)
			on := onCard(r, t.Name(), h)
			signal, err := rounding.Power(t.Context(), w, sgemm.Matrix{}, h, 0)
			testmodel.OK(t, err)
			got, err := on.Powers(t.Context(), stored(f, w))
			testmodel.OK(t, err)
			if got[0] != signal {
				t.Errorf("power %v, want %v", got[0], signal)
			}
			var first []int
			for i := range c.zero {
				first = append(first, (7*i+3)%c.k)
			}
			options := rounding.FactorOptions{Damp: c.damp, First: slices.Compact(first)}
			factor, err := rounding.NewFactor(t.Context(), h, options)
			testmodel.OK(t, err)
			for _, group := range choosers(f, c.n, rounding.Loss{Signal: signal}.Scale(c.n*c.k)) {
				same(t, on, f, w, h, factor, options, group, rounding.Options{Zero: c.zero})
			}
		})
	}
}

// same rounds on both and compares bits.
func same(t *testing.T, on rounding.DeviceHessian, format weights.Format, w, h sgemm.Matrix, f *rounding.Factor, fo rounding.FactorOptions, group []rounding.Tabulated, o rounding.Options) {
	t.Helper()
	var tables []rounding.Table
	var want []sgemm.Matrix
	for _, c := range group {
		table, ok := c.Table(w.Rows, w.Cols)
		if !ok {
			t.Fatalf("%T has no table", c)
		}
		tables = append(tables, table)
		q, err := rounding.Round(t.Context(), w, f, c, o)
		testmodel.OK(t, err)
		want = append(want, q)
	}
	source := stored(format, w)
	got, err := on.Round(t.Context(), source, fo, tables, o)
	testmodel.OK(t, err)
	for i, data := range got {
		q, wrong := sgemm.Dense(w.Rows, w.Cols, nil), 0
		rounding.Values{Rows: w.Rows, Cols: w.Cols, Format: format, Data: data}.Decode(q, 0)
		for at, v := range q.Data {
			if a, b := math.Float32bits(v), math.Float32bits(want[i].Data[at]); a != b && !(v != v && want[i].Data[at] != want[i].Data[at]) {
				if wrong++; wrong == 1 {
					t.Errorf("%T %d: element %d, %d of %v is %v (%08x), the CPU's %v (%08x)", group[i], i, at/w.Cols, at%w.Cols, w.Data[at], v, a, want[i].Data[at], b)
				}
			}
		}
		if wrong > 0 {
			t.Errorf("%T %d: %d of %d values differ", group[i], i, wrong, len(q.Data))
		}
	}
	powers, err := on.Powers(t.Context(), source, append([][]byte{nil}, got...)...)
	testmodel.OK(t, err)
	own, err := on.Powers(t.Context(), source)
	testmodel.OK(t, err)
	if powers[0] != own[0] {
		t.Errorf("power %v beside error powers, and %v alone", powers[0], own[0])
	}
	powers = powers[1:]
	for i, q := range want {
		p, err := rounding.Power(t.Context(), w, q, h, 0)
		testmodel.OK(t, err)
		if powers[i] != p {
			t.Errorf("%T %d: error power %v, the CPU's %v", group[i], i, powers[i], p)
		}
	}
}

// Hessians that do not fit beside others are read again. Release frees the card's memory.
func TestGPUHessiansMakeRoom(t *testing.T) {
	d, err := cuda.Open(0)
	if errors.Is(err, cuda.ErrNoGPU) {
		t.Skip(err)
	}
	testmodel.OK(t, err)
	defer func() { testmodel.OK(t, d.Close()) }()
	r, err := rounder.New(t.Context(), d)
	testmodel.OK(t, err)
	before, err := d.FreeMemory()
	testmodel.OK(t, err)
	const k = 300
	r.SetRoom(2 * 2 * k * (k + 1)) // for two
	f, _ := weights.BF16.Format()
	loads := 0
	var on [3]rounding.DeviceHessian
	var want [3][]float32
	for i := range on {
		_, h := layer(uint64(i), 1, k, 100, f)
		want[i] = rounding.NewTriangle(h).Diagonal()
		on[i] = r.Hessian(fmt.Sprint(i), func(context.Context) (*rounding.Triangle, error) { loads++; return rounding.NewTriangle(h), nil })
	}
	for _, i := range []int{0, 1, 0, 2, 0, 2, 1} { // 0 and 1 are read, then 2 in place of 1, then 1 in place of 0
		got, err := on[i].Diagonal(t.Context())
		testmodel.OK(t, err)
		if !slices.Equal(got, want[i]) {
			t.Errorf("Hessian %d has another one's diagonal", i)
		}
	}
	if loads != 4 {
		t.Errorf("%d Hessians were read, not 4", loads)
	}
	testmodel.OK(t, r.Close())
	after, err := d.FreeMemory()
	testmodel.OK(t, err)
	if before-after > 1<<20 {
		t.Errorf("%d bytes of the card's memory are lost", before-after)
	}
}

// An invalid Hessian and an all-zero Hessian are errors. A context that ends is an error within a second.
func TestGPURefuses(t *testing.T) {
	r := openGPU(t)
	f, _ := weights.BF16.Format()
	w, h := layer(1, 8, 96, 200, f)
	tables := []rounding.Table{{Kind: rounding.BitsKind, Format: f}}
	h.Data[5*96+5] = -1e-3
	if _, err := onCard(r, "negative", h).Diagonal(t.Context()); err == nil {
		t.Error("a negative mean square passes")
	}
	_, h = layer(1, 8, 96, 200, f)
	h.Data[3*96+90], h.Data[90*96+3] = 1e4, 1e4
	_, err := onCard(r, "indefinite", h).Round(t.Context(), stored(f, w), rounding.FactorOptions{}, tables, rounding.Options{})
	if _, want := rounding.NewFactor(t.Context(), h, rounding.FactorOptions{}); err == nil || want == nil || err.Error() != want.Error() {
		t.Errorf("error %v, the CPU's %v", err, want)
	}
	if _, err := onCard(r, "zero", sgemm.Dense(96, 96, nil)).Round(t.Context(), stored(f, w), rounding.FactorOptions{}, tables, rounding.Options{}); !errors.Is(err, rounding.ErrNoFeedback) {
		t.Errorf("error %v of a zero Hessian", err)
	}
	_, h = layer(1, 8, 96, 200, f)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := onCard(r, "ended", h).Round(ctx, stored(f, w), rounding.FactorOptions{}, tables, rounding.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v of an ended context", err)
	}
}

// BenchmarkGPU rounds layers of a model of 8 B weights. With one output nearly all of the time is the factor's.
func BenchmarkGPU(b *testing.B) {
	r := openGPU(b)
	f, _ := weights.BF16.Format()
	for _, c := range []struct{ n, k, choosers int }{{1, 4096, 1}, {1, 14336, 1}, {4096, 4096, 1}, {14336, 4096, 1}, {4096, 14336, 1}, {192, 4096, 21}, {144, 14336, 21}} {
		w, _ := layer(3, c.n, c.k, 1, f)
		h := &rounding.Triangle{Width: c.k, Data: make([]float32, c.k*(c.k+1)/2)}
		rng := rand.New(rand.NewPCG(1, 2))
		at := 0
		for i := range c.k {
			for j := i; j < c.k; j++ {
				if h.Data[at] = float32(0.3 * math.Exp2(float64(i-j)/8) * rng.Float64()); i == j {
					h.Data[at] = 1
				}
				at++
			}
		}
		v := stored(f, w)
		on := r.Hessian(fmt.Sprint(c), func(context.Context) (*rounding.Triangle, error) { return h, nil })
		var tables []rounding.Table
		for i := range c.choosers {
			t, _ := rounding.Trellis{Format: f, Rates: rounding.Rates{Significant: []float64{.9, .9, .92, .94, .96, .97, .98, .99, 1}}, Lambda: math.Ldexp(1, -i), Scale: 1}.Table(c.n, c.k)
			tables = append(tables, t)
		}
		var q [][]byte
		_, err := on.Powers(b.Context(), v) // loads the Hessian
		testmodel.OK(b, err)
		b.Run(fmt.Sprintf("round/%dx%dx%d", c.choosers, c.n, c.k), func(b *testing.B) {
			for b.Loop() {
				var err error
				q, err = on.Round(b.Context(), v, rounding.FactorOptions{Damp: 0.01}, tables, rounding.Options{})
				testmodel.OK(b, err)
			}
		})
		b.Run(fmt.Sprintf("power/%dx%dx%d", c.choosers, c.n, c.k), func(b *testing.B) {
			for b.Loop() {
				_, err := on.Powers(b.Context(), v, q...)
				testmodel.OK(b, err)
			}
		})
	}
}
