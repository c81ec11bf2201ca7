package program_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/internal/testplan"
	"github.com/lowtoggle/lowtoggle/transform/order"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// TestStepsInAnyOrder: the steps of a weight make the same values in any order of the plan.
func TestStepsInAnyOrder(t *testing.T) {
	m := testmodel.Tiny(t, "llama-tiny", weights.BF16)
	layout := testmodel.LayoutOf(t, m)
	steps := testplan.Make(t, m, "scale,reorder,signs,sparsify=0.2,grid=8,round=2", 0).Steps
	several := 0
	for name, own := range testplan.ByTensor(steps) {
		if len(own) < 2 {
			continue
		}
		several++
		x := testmodel.TensorOf(t, m, name)
		var want []byte
		for range 2 {
			p, err := testplan.Compiler(t, m, layout, nil, steps).Program(t.Context(), testplan.Weight(x), own)
			testmodel.OK(t, err)
			got := make([]byte, len(x.Data))
			p.Run(got, 0, p.Rows)
			if want == nil {
				want = got
			} else if !bytes.Equal(got, want) {
				t.Errorf("%s: %d steps in the opposite order make other values", name, len(own))
			}
			own = slices.Clone(own)
			slices.Reverse(own)
		}
	}
	if several == 0 {
		t.Error("no weight has several steps")
	}
}

// TestOrderThatSplitsAScale: an order that separates inputs under one scale is refused. An order within them is not.
func TestOrderThatSplitsAScale(t *testing.T) {
	i := slices.IndexFunc(testmodel.Quantisations, func(q testmodel.Quantisation) bool { return q.Name == "fp8 block" })
	m := testmodel.Open(t, testmodel.Quantised(t, testmodel.Quantisations[i], testmodel.With{}))
	layout := testmodel.LayoutOf(t, m)
	description, err := quant.Describe(m)
	testmodel.OK(t, err)
	set := quant.Group(m, description)
	w, _ := set.Weight("model.layers.0.mlp.down_proj.weight")
	for second, want := range map[int]bool{1: true, 200: false} { // 128 inputs share a scale
		labels := order.Identity(layout.Index("layers.0.ffn").Len)
		labels[0], labels[second] = second, 0
		steps := []*plan.Step{{Pass: "reorder", Index: "layers.0.ffn", Data: labels}}
		c, err := program.NewCompiler(program.CompilerOptions{Weights: set, Layout: layout, Rules: testplan.Rules()}, steps)
		testmodel.OK(t, err)
		p, err := c.Program(t.Context(), w, nil)
		if (err == nil) != want || want && !p.Moves() || !want && !errors.Is(err, plan.ErrInvalid) {
			t.Errorf("labels 0 and %d exchanged: %v", second, err)
		}
	}
}

// TestOrderOfOutputs: an order of a quantised weight's outputs moves rows of codes, and nothing else.
func TestOrderOfOutputs(t *testing.T) {
	i := slices.IndexFunc(testmodel.Quantisations, func(q testmodel.Quantisation) bool { return q.Name == "compressed fp8 channel" })
	m := testmodel.Open(t, testmodel.Quantised(t, testmodel.Quantisations[i], testmodel.With{}))
	layout := testmodel.LayoutOf(t, m)
	description, err := quant.Describe(m)
	testmodel.OK(t, err)
	set := quant.Group(m, description)
	w, _ := set.Weight("model.layers.0.mlp.up_proj.weight")
	labels := order.Identity(layout.Index("layers.0.ffn").Len)
	slices.Reverse(labels)
	steps := []*plan.Step{{Pass: "reorder", Index: "layers.0.ffn", Data: labels}}
	c, err := program.NewCompiler(program.CompilerOptions{Weights: set, Layout: layout, Rules: testplan.Rules()}, steps)
	testmodel.OK(t, err)
	p, err := c.Program(t.Context(), w, nil)
	testmodel.OK(t, err)
	got, err := p.Recoded(t.Context(), 0, true, 1)
	testmodel.OK(t, err)
	want, err := w.Quantised.Read(0)
	testmodel.OK(t, err)
	a, b := make([]float32, want.K), make([]float32, want.K)
	for n := range want.N {
		got.Row(a, n)
		want.Row(b, want.N-1-n)
		if !slices.Equal(a, b) {
			t.Fatalf("output %d is not the source's output %d", n, want.N-1-n)
		}
	}
}
