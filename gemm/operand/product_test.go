package operand_test

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/cost/pattern"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/operand"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
)

// writeTensors puts a model with the given tensors, of normal deviates, into a file.
func writeTensors(t *testing.T, infos ...weights.Info) string {
	t.Helper()
	head, placed, err := weights.EncodeHeader(infos, nil)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "m.safetensors")
	f, err := weights.Create(path, head, placed[len(placed)-1].End)
	if err != nil {
		t.Fatal(err)
	}
	for i, info := range placed {
		rows, cols := info.Matrix()
		data, err := pattern.MustParse("normal(0,0.02)").Generate(t.Context(), pattern.Spec{DType: info.DType, Rows: rows, Cols: cols, Seed: uint64(i)}, 1)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// products of sources, all matrices whole.
func products(t *testing.T, o operand.Options, sources ...string) (all [][]operand.Product, set *operand.Set) {
	t.Helper()
	set = operand.NewSet(o)
	t.Cleanup(func() {
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	})
	var list []operand.Source
	for _, text := range sources {
		list = append(list, operand.MustParse(text))
	}
	all, err := set.Products(t.Context(), list...)
	if err != nil {
		t.Fatalf("%q: %v", sources, err)
	}
	return all, set
}

func whole(t *testing.T, p operand.Product) (x, w gemm.Matrix) {
	t.Helper()
	x, w, err := p.Whole(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return x, w
}

// TestBlocksAreOfTheWhole: for all sources, the blocks of a prediction are parts of the matrix that a card multiplies, and fit
// its problem.
func TestBlocksAreOfTheWhole(t *testing.T) {
	path := writeTensors(t, weights.Info{Name: "a", DType: weights.BF16, Shape: []int{24, 16}},
		weights.Info{Name: "b", DType: weights.BF16, Shape: []int{40, 16}}, weights.Info{Name: "acts", DType: weights.F32, Shape: []int{9, 16}})
	gpt := testmodel.Random(t, "gpt2-tiny", 0).Dir // whose layers are stored transposed
	for _, c := range []struct {
		x       string
		sources []string
		o       operand.Options
		layers  int
	}{
		{sources: []string{"normal(0,0.02)", "zeros", "normal(0,0.02) | sort(50%)"}, o: operand.Options{N: 48, K: 16}, layers: 1},
		{x: "normal(0,1) | sort", sources: []string{"normal(0,1)", "const(1) | flip(1%)"}, o: operand.Options{N: 48, K: 16, Type: arith.FP8, Streaming: true}, layers: 1},
		{x: path + ":acts", sources: []string{path + ":a", "tensor(" + path + ":a) | round(4)", "zeros"}, layers: 1},
		{sources: []string{path + ":[ab]", path + ":", "normal(0,0.02) | transpose | sparse(50%)"}, o: operand.Options{Type: arith.FP8}, layers: 2},
		{sources: []string{path + ":[ab]", "normal(0,0.02) | sort(by=columns)"}, o: operand.Options{Type: arith.INT8}, layers: 2},
		{sources: []string{path + ":b", "uniform(-1,1)"}, o: operand.Options{Type: arith.FP16CUDA}, layers: 1},
		{sources: []string{"tensor(" + path + ":a) | transpose", "zeros"}, layers: 1},
		{sources: []string{gpt + ":*mlp*", gpt + ":", "zeros"}, o: operand.Options{Type: arith.FP8}, layers: 4},
	} {
		c.o.Seed, c.o.Tokens = 5, 7
		if c.x != "" {
			c.o.X = operand.MustParse(c.x)
		}
		all, _ := products(t, c.o, c.sources...)
		if len(all) != len(c.sources) {
			t.Fatalf("%q: products of %d", c.sources, len(all))
		}
		for i, of := range all {
			if len(of) != c.layers {
				t.Errorf("%s: %d layers", c.sources[i], len(of))
			}
			for _, p := range of {
				x, w := whole(t, p)
				if err := p.Problem.Fits(x, w); err != nil || p.Problem.Streaming != c.o.Streaming || p.Problem.M != 7 {
					t.Errorf("%s: %s is %v (%v)", c.sources[i], p.Layer, p.Problem, err)
				}
				for _, m := range []struct {
					*operand.Matrix
					want gemm.Matrix
				}{{p.X, x}, {p.W, w}} {
					if data, err := m.Block(t.Context(), 0, m.Rows, 0, m.Cols); err != nil || !bytes.Equal(data, m.want.Data) {
						t.Errorf("%s: %s: %d×%d reads otherwise in blocks (%v)", c.sources[i], p.Layer, m.Rows, m.Cols, err)
					}
				}
			}
		}
	}
}

// TestDraws: drawn layers have the types and shapes of the layers that they replace. They differ from each other, from the
// activations and from another seed's layers, and equal the same seed's layers.
func TestDraws(t *testing.T) {
	path := writeTensors(t, weights.Info{Name: "a", DType: weights.BF16, Shape: []int{3, 8}},
		weights.Info{Name: "b", DType: weights.BF16, Shape: []int{3, 8}}, weights.Info{Name: "c", DType: weights.F16, Shape: []int{5, 8}})
	draw := func(seed uint64) (list [][]byte) {
		all, _ := products(t, operand.Options{Seed: seed, X: operand.MustParse("normal(0,1)"), Tokens: 3}, path+":", "normal(0,1)")
		for i, p := range all[1] {
			like := all[0][i]
			if p.Layer != like.Layer || p.Problem != like.Problem {
				t.Errorf("%s, %v became %s, %v", like.Layer, like.Problem, p.Layer, p.Problem)
			}
			_, w := whole(t, p)
			list = append(list, w.Data)
		}
		x, _ := whole(t, all[1][0])
		return append(list, x.Data)
	}
	first, again, other := draw(7), draw(7), draw(70)
	for i := range first {
		if !bytes.Equal(first[i], again[i]) || bytes.Equal(first[i], other[i]) {
			t.Errorf("operand %d does not follow the seed", i)
		}
		for j := range i {
			if bytes.Equal(first[i], first[j]) {
				t.Errorf("operands %d and %d are the same draws", i, j)
			}
		}
	}
}

// TestShared: layers with the same number of inputs share activations. Weights in the file's type share its memory. Types come
// from the weights or from the options.
func TestShared(t *testing.T) {
	path := writeTensors(t, weights.Info{Name: "a", DType: weights.BF16, Shape: []int{3, 8}},
		weights.Info{Name: "b", DType: weights.BF16, Shape: []int{5, 8}}, weights.Info{Name: "c", DType: weights.BF16, Shape: []int{3, 16}})
	all, _ := products(t, operand.Options{Tokens: 3, Streaming: true}, path+":")
	var xs []*byte
	for i, p := range all[0] {
		want := gemm.Problem{M: 3, N: []int{3, 5, 3}[i], K: []int{8, 8, 16}[i], Type: arith.BF16, Streaming: true}
		if p.Problem != want || p.Layer != []string{"a", "b", "c"}[i] {
			t.Errorf("%s is %v, want %v", p.Layer, p.Problem, want)
		}
		x, w := whole(t, p)
		_, again := whole(t, p)
		if &w.Data[0] != &again.Data[0] {
			t.Errorf("%s was copied", p.Layer)
		}
		xs = append(xs, &x.Data[0])
	}
	if xs[0] != xs[1] || xs[0] == xs[2] {
		t.Error("activations are shared by the wrong layers")
	}
	all, _ = products(t, operand.Options{Tokens: 3, Type: arith.FP8}, path+":b")
	if p := all[0][0]; p.Problem.Type != arith.FP8 || p.Problem.Streaming || p.W.DType != weights.F8E4M3 {
		t.Errorf("%v of %v", p.Problem, p.W.DType)
	}
}

// TestOneScale: two models that are compared in 8 bits have the same scale.
func TestOneScale(t *testing.T) {
	path := writeTensors(t, weights.Info{Name: "a", DType: weights.BF16, Shape: []int{8, 8}})
	all, _ := products(t, operand.Options{Tokens: 1, Type: arith.INT8}, path+":a", "tensor("+path+":a) | scale(0.5)")
	_, w := whole(t, all[0][0])
	_, half := whole(t, all[1][0])
	for i := range w.Data {
		if a, b := int8(w.Data[i]), int8(half.Data[i]); b > a/2+1 || b < a/2-1 {
			t.Fatalf("element %d is %d, and %d of half the weights", i, a, b)
		}
	}
}

// TestErrors: errors have their types, and name the source or tensor.
func TestErrors(t *testing.T) {
	path := writeTensors(t, weights.Info{Name: "a", DType: weights.BF16, Shape: []int{8, 8}}, weights.Info{Name: "b", DType: weights.F8E5M2, Shape: []int{8, 8}},
		weights.Info{Name: "embed", DType: weights.BF16, Shape: []int{8, 8}})
	type (
		notFound = *operand.NotFoundError
		shape    = *operand.ShapeError
		typ      = *operand.TypeError
		problem  = *operand.ProblemError
	)
	is := func(err error, want any) bool {
		switch want.(type) {
		case notFound:
			var e notFound
			return errors.As(err, &e) && e.Path == path
		case shape:
			var e shape
			return errors.As(err, &e)
		case typ:
			var e typ
			return errors.As(err, &e) && e.Layer == "b"
		case problem:
			var e problem
			return errors.As(err, &e)
		}
		return false
	}
	for _, c := range []struct {
		source, text string
		o            operand.Options
		want         any
	}{
		{path + ":c", path + `:c: no tensor or linear layer matches "c"`, operand.Options{}, notFound(nil)},
		{path + ":embed*", path + `:embed*: no tensor or linear layer matches "embed*"`, operand.Options{}, notFound(nil)},
		{"tensor(" + path + ":c)", path + ` has no tensor "c"`, operand.Options{}, notFound(nil)},
		{path + ":a", path + ":a has 1 layer with N=8, K=8: give M only", operand.Options{N: 8, K: 7}, shape(nil)},
		{path + ":", path + ": has 2 layers, the first with N=8, K=8: give M only", operand.Options{N: 8, K: 8}, shape(nil)},
		{path + ":b", "b: lowtoggle does not multiply F8_E5M2 directly", operand.Options{}, typ(nil)},
		{"zeros", "product 1x8x131072 int8 stationary: sums of more than 131071 int8 products can overflow int32", operand.Options{Tokens: 1, N: 8, K: 131072, Type: arith.INT8}, problem(nil)},
	} {
		set := operand.NewSet(c.o)
		_, err := set.Products(t.Context(), operand.MustParse(c.source))
		if err == nil || err.Error() != c.text || !is(err, c.want) {
			t.Errorf("%s: %T %v, want %T %s", c.source, err, err, c.want, c.text)
		}
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := operand.NewSet(operand.Options{}).Products(t.Context(), operand.Source{Path: "nowhere"}); !errors.Is(err, operand.ErrNoFile) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := operand.NewSet(operand.Options{}).Products(ctx, operand.MustParse("zeros")); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
