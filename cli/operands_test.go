package cli

import (
	"bytes"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/weights"
)

func testOperands(seed uint64) operands {
	return operands{seed: seed, x: usual("normal(0,1)"), models: map[string]*weights.Model{}, drawn: map[shape]gemm.Matrix{}}
}

// TestDraws: drawn layers look like those they stand for, and differ from each other, from the
// activations and from those of another seed, but not from those of the same seed.
func TestDraws(t *testing.T) {
	like := []layer{
		{"a", "k", gemm.NewMatrix(weights.BF16, 3, 8)},
		{"b", "k", gemm.NewMatrix(weights.BF16, 3, 8)},
		{"c", "k", gemm.NewMatrix(weights.F16, 5, 8)},
	}
	draw := func(seed uint64) (list [][]byte) {
		o := testOperands(seed)
		all, err := o.layers(t.Context(), usual("normal(0,1)"), like)
		if err != nil {
			t.Fatal(err)
		}
		for i, l := range all {
			if have, want := l.w, like[i].w; l.name != like[i].name || l.kind != "k" || have.DType != want.DType || have.Rows != want.Rows || have.Cols != want.Cols {
				t.Errorf("%s became %s, %d×%d %v", like[i].name, l.name, have.Rows, have.Cols, have.DType)
			}
			list = append(list, l.w.Data)
		}
		x, err := o.activations(t.Context(), all[0], 3, gemm.BF16)
		if err != nil {
			t.Fatal(err)
		}
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

// TestCandidate: layers that read as many inputs share their activations, and types come from
// the weights or are asked for.
func TestCandidate(t *testing.T) {
	layers := []layer{
		{"a", "k", gemm.NewMatrix(weights.BF16, 3, 8)}, {"b", "k", gemm.NewMatrix(weights.BF16, 5, 8)}, {"c", "k", gemm.NewMatrix(weights.BF16, 3, 16)},
	}
	o := testOperands(0)
	c, err := o.candidate(t.Context(), "c", layers, layers, 3, true)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range c.Products {
		want := gemm.Problem{M: 3, N: layers[i].w.Rows, K: layers[i].w.Cols, Type: gemm.BF16, Streaming: true}
		if p.Problem != want || p.Name != layers[i].name || p.Validate() != nil {
			t.Errorf("%s is %v (%v), want %v", p.Name, p.Problem, p.Validate(), want)
		}
		if &p.W.Data[0] != &layers[i].w.Data[0] {
			t.Errorf("%s was copied", p.Name)
		}
	}
	x := func(i int) *byte { return &c.Products[i].X.Data[0] }
	if x(0) != x(1) || x(0) == x(2) {
		t.Error("activations are shared by the wrong layers")
	}
	o.dtype = gemm.FP8
	if c, err = o.candidate(t.Context(), "rounded", layers[1:2], layers[1:2], 3, false); err != nil {
		t.Fatal(err)
	}
	if p := c.Products[0]; p.Problem.Type != gemm.FP8 || p.Problem.Streaming || p.Validate() != nil {
		t.Errorf("%v: %v", p.Problem, p.Validate())
	}
}
