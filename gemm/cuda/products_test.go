package cuda

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
)

var _ forward.Products = (*Products)(nil)

// linearLayer is a product of small whole numbers, which float32 holds in whatever order they are
// added. y is columns of a wider matrix of NaNs.
type linearLayer struct {
	x, w, wide, y sgemm.Matrix
	transposed    bool
}

func newLinearLayer(m, n, k, gap int, transposed bool, seed uint64) linearLayer {
	rng := rand.New(rand.NewPCG(seed, 1))
	whole := func(rows, cols int) sgemm.Matrix {
		a := sgemm.Dense(rows, cols, nil)
		for i := range a.Data {
			a.Data[i] = float32(rng.IntN(17) - 8)
		}
		return a
	}
	l := linearLayer{x: whole(m, k), w: whole(n, k), wide: sgemm.Dense(m, gap+n+gap, nil), transposed: transposed}
	if transposed {
		l.w = whole(k, n)
	}
	for i := range l.wide.Data {
		l.wide.Data[i] = float32(math.NaN())
	}
	l.y = l.wide.Slice(0, m, gap, gap+n)
	return l
}

// wrong returns an error in y or in the memory around it, as text.
func (l linearLayer) wrong() string {
	want := sgemm.Dense(l.y.Rows, l.y.Cols, nil)
	if err := (forward.CPU{Workers: 1}).Mul(context.Background(), want, l.x, l.w, l.transposed); err != nil {
		return err.Error()
	}
	outside := 0
	for i := range want.Rows {
		if !slices.Equal(l.y.Row(i), want.Row(i)) {
			return "y is not x·w"
		}
	}
	for _, v := range l.wide.Data {
		if v != v {
			outside++
		}
	}
	if outside != len(l.wide.Data)-len(want.Data) {
		return "something beside y was written"
	}
	return ""
}

func newProducts(t *testing.T, d *Device) *Products {
	t.Helper()
	p := d.NewProducts()
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// Every shape, both ways to store weights, any stride of y, one product after the other in the same
// memory.
func TestProductsAreTheCPUs(t *testing.T) {
	p := newProducts(t, openFake(t, newCard(t)))
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 40)
		l := newLinearLayer(size.Draw(t, "M"), size.Draw(t, "N"), size.Draw(t, "K"), rapid.IntRange(0, 3).Draw(t, "gap"),
			rapid.Bool().Draw(t, "transposed"), rapid.Uint64().Draw(t, "seed"))
		if err := p.Mul(context.Background(), l.y, l.x, l.w, l.transposed); err != nil {
			t.Fatal(err)
		}
		if wrong := l.wrong(); wrong != "" {
			t.Error(wrong)
		}
	})
}

// Weights of more than a piece, and of more columns than are transposed at once.
func TestProductsOfManyPieces(t *testing.T) {
	p := newProducts(t, openFake(t, newCard(t)))
	n, k := 1700, 2900
	if 4*n*k <= stagingBytes {
		t.Fatal("the weights fit one piece")
	}
	for _, transposed := range []bool{false, true} {
		l := newLinearLayer(1, n, k, 0, transposed, 3)
		if err := p.Mul(t.Context(), l.y, l.x, l.w, transposed); err != nil {
			t.Fatal(err)
		}
		if wrong := l.wrong(); wrong != "" {
			t.Errorf("transposed %v: %s", transposed, wrong)
		}
	}
}

// The fake offers a kernel on tensor cores first: float32 must not take it, nor another compute type.
func TestProductsComputeInFloat32(t *testing.T) {
	c := newCard(t)
	p := newProducts(t, openFake(t, c))
	l := newLinearLayer(2, 3, 4, 0, false, 1)
	if err := p.Mul(t.Context(), l.y, l.x, l.w, false); err != nil {
		t.Fatal(err)
	}
	for _, m := range p.matmuls {
		if k := p.device.api.kernel(m.shape, m.mode.compute, &m.choice); k.TensorCores || k.Compute != compute32F {
			t.Errorf("%+v", k)
		}
	}
	if len(p.matmuls) != 1 {
		t.Errorf("%d products were prepared, one was asked for", len(p.matmuls))
	}
}

// Smaller products reuse the memory and descriptors of a product. A larger product without room fails, and smaller ones still
// work.
func TestProductsKeepTheirMemory(t *testing.T) {
	c := newCard(t)
	p := newProducts(t, openFake(t, c))
	mul := func(m, n, k int) error {
		l := newLinearLayer(m, n, k, 1, false, 1)
		err := p.Mul(t.Context(), l.y, l.x, l.w, false)
		if wrong := l.wrong(); err == nil && wrong != "" {
			t.Error(wrong)
		}
		return err
	}
	if err := mul(10, 20, 30); err != nil {
		t.Fatal(err)
	}
	c.fail["cuMemAlloc"] = 0
	if err := errors.Join(mul(10, 20, 30), mul(9, 20, 30), mul(1, 1, 1)); err != nil {
		t.Error(err)
	}
	c.fail["cublasLtMatmulDescCreate"] = 0
	if err := mul(9, 20, 30); err != nil {
		t.Errorf("a shape that was multiplied before: %v", err)
	}
	delete(c.fail, "cublasLtMatmulDescCreate")
	err := mul(10, 20, 31)
	if !errors.Is(err, ErrOutOfMemory) || !strings.Contains(err.Error(), "product 10x20x31 fp32") || !strings.Contains(err.Error(), "MiB are free") {
		t.Error(err)
	}
	delete(c.fail, "cuMemAlloc")
	if err := errors.Join(mul(10, 20, 30), mul(10, 20, 31)); err != nil {
		t.Error(err)
	}
}

func TestProductsCloseGivesBack(t *testing.T) {
	c := newCard(t)
	d := openFake(t, c)
	before := len(c.alive)
	l, larger := newLinearLayer(2, 3, 4, 0, true, 1), newLinearLayer(20, 30, 40, 0, true, 1)
	p := d.NewProducts()
	if err := errors.Join(p.Mul(t.Context(), l.y, l.x, l.w, true), p.Mul(t.Context(), larger.y, larger.x, larger.w, true), p.Close(), p.Close()); err != nil {
		t.Fatal(err)
	}
	if after := len(c.alive); after != before {
		t.Errorf("%d things on the card, %d before", after, before)
	}
	p = d.NewProducts()
	if err := errors.Join(p.Mul(t.Context(), l.y, l.x, l.w, true), d.Close(), p.Close()); err != nil {
		t.Errorf("the device was closed first: %v", err)
	}
	c.leaks()
	if err := p.Mul(t.Context(), l.y, l.x, l.w, true); !errors.Is(err, errClosed) {
		t.Errorf("on a closed device: %v", err)
	}
}

// Whichever call fails, at any time, the error names it, nothing leaks, and the next product is right.
func TestProductsAfterFailures(t *testing.T) {
	for _, call := range []string{"cuMemAlloc", "cublasLtMatmulDescCreate", "cublasLtLayoutCreate", "cuStreamSynchronize", "cublasLtMatmul"} {
		failed := 0
		for after := range 16 {
			c := newCard(t)
			d := openFake(t, c)
			p := newProducts(t, d)
			c.fail[call] = after
			mul := func(size int) error {
				l := newLinearLayer(size, size, size, 1, true, 1)
				err := p.Mul(t.Context(), l.y, l.x, l.w, true)
				if wrong := l.wrong(); err == nil && wrong != "" {
					t.Error(wrong)
				}
				return err
			}
			err := errors.Join(mul(2), mul(5))
			if err == nil {
				break
			}
			failed++
			if text := err.Error(); !strings.Contains(text, call) && !strings.Contains(text, "status ") {
				t.Errorf("%s: %v", call, err)
			}
			delete(c.fail, call)
			if err := errors.Join(mul(2), mul(5)); err != nil {
				t.Errorf("after %s had failed: %v", call, err)
			}
		}
		if failed == 0 {
			t.Errorf("%s failed and nobody noticed", call)
		}
	}
}

// When the context ends, a product ends after the current piece.
func TestProductsEndWithTheirContext(t *testing.T) {
	for _, transposed := range []bool{false, true} {
		for uploads := range 4 { // none, x, and two pieces of w
			d := openFake(t, newCard(t))
			p := newProducts(t, d)
			l := newLinearLayer(1, 1700, 2900, 0, transposed, 3)
			ctx, cancel := context.WithCancel(t.Context())
			if uploads == 0 {
				cancel()
			}
			done, copyIn := 0, d.api.cuMemcpyHtoD
			d.api.cuMemcpyHtoD = func(to uint64, from *byte, n uint64) result {
				if done++; done == uploads {
					cancel()
				}
				return copyIn(to, from, n)
			}
			if err := p.Mul(ctx, l.y, l.x, l.w, transposed); !errors.Is(err, context.Canceled) || done != uploads {
				t.Errorf("transposed %v: %d pieces were copied, the context ended with %d: %v", transposed, done, uploads, err)
			}
			cancel()
		}
	}
}

func TestProductsTakeTurns(t *testing.T) {
	p := newProducts(t, openFake(t, newCard(t)))
	var g sync.WaitGroup
	for i := range 8 {
		g.Go(func() {
			l := newLinearLayer(3+i, 9-i, 5, i%3, i%2 == 0, uint64(i))
			if err := p.Mul(context.Background(), l.y, l.x, l.w, l.transposed); err != nil {
				t.Error(err)
			}
			if wrong := l.wrong(); wrong != "" {
				t.Errorf("%d: %s", i, wrong)
			}
		})
	}
	g.Wait()
}

func TestProductsRefuseShapesThatDoNotFit(t *testing.T) {
	p := newProducts(t, openFake(t, newCard(t)))
	dense := func(rows, cols int) sgemm.Matrix { return sgemm.Dense(rows, cols, nil) }
	for name, shapes := range map[string][3]sgemm.Matrix{ // y, x, w
		"inputs":    {dense(2, 3), dense(2, 4), dense(3, 5)},
		"outputs":   {dense(2, 4), dense(2, 4), dense(3, 4)},
		"tokens":    {dense(1, 3), dense(2, 4), dense(3, 4)},
		"gaps in x": {dense(2, 3), dense(2, 5).Slice(0, 2, 0, 4), dense(3, 4)},
		"gaps in w": {dense(2, 3), dense(2, 4), dense(3, 5).Slice(0, 3, 0, 4)},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: multiplied", name)
				}
			}()
			p.Mul(t.Context(), shapes[0], shapes[1], shapes[2], false)
		}()
	}
	if err := p.Mul(t.Context(), dense(2, 3), dense(2, 0), dense(3, 0), false); err == nil || !strings.Contains(err.Error(), "every dimension must be at least 1") {
		t.Errorf("no inputs at all: %v", err)
	}
}

// A forward pass loses the same on the card as on the CPU, with weights stored either way.
func TestProductsInAForwardPass(t *testing.T) {
	p := newProducts(t, openFake(t, newCard(t)))
	for _, name := range []string{"llama-tiny", "gpt2-tiny"} {
		sameLosses(t, testmodel.Random(t, name, 1), someTokens, p)
	}
	if len(p.matmuls) < 4 {
		t.Errorf("the card multiplied but %d shapes", len(p.matmuls))
	}
}

// someTokens are of the small synthetic models' vocabularies.
var someTokens = [][]int32{{1, 2, 3, 5, 8, 13, 21, 34, 55, 89}, {95, 50, 25, 12, 6, 3}}

// sameLosses runs a model with products, and on the CPU alone.
func sameLosses(t *testing.T, m *weights.Model, tokens [][]int32, products forward.Products) {
	t.Helper()
	d, family := testmodel.Decoder(t, m), testmodel.LayoutOf(t, m).Family
	want, err := d.Run(t.Context(), forward.Stored(m), tokens, nil)
	if err != nil {
		t.Fatal(err)
	}
	d.Products = products
	have, err := d.Run(t.Context(), forward.Stored(m), tokens, nil)
	if err != nil {
		t.Fatal(err)
	}
	furthest := 0.0
	for i := range want.Nats {
		for j, v := range want.Nats[i] {
			furthest = max(furthest, math.Abs(have.Nats[i][j]-v))
		}
	}
	difference := have.Loss() - want.Loss()
	t.Logf("%s: the loss is %.7f and differs by %.1e, that of a token by %.1e at most", family, want.Loss(), difference, furthest)
	if math.Abs(difference) > 1e-5 {
		t.Errorf("%s: loss %v, the CPU's is %v", family, have.Loss(), want.Loss())
	}
}
