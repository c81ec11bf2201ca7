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
	"github.com/lowtoggle/lowtoggle/weights/arch"
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

// ordered is a quantised weight along an index.
type ordered struct {
	layout *arch.Layout
	set    *quant.Set
	weight *quant.Weight
}

// ordering returns a weight of a small quantised model.
func ordering(t *testing.T, model, weight string) (o ordered) {
	t.Helper()
	i := slices.IndexFunc(testmodel.Quantisations, func(q testmodel.Quantisation) bool { return q.Name == model })
	m := testmodel.Open(t, testmodel.Quantised(t, testmodel.Quantisations[i], testmodel.With{}))
	description, err := quant.Describe(m)
	testmodel.OK(t, err)
	o.layout, o.set = testmodel.LayoutOf(t, m), quant.Group(m, description)
	o.weight, _ = o.set.Weight(weight)
	return o
}

const orderedIndex = "layers.0.ffn"

// labels returns the unchanged order of the index.
func (o ordered) labels() []int { return order.Identity(o.layout.Index(orderedIndex).Len) }

// program compiles an order of the index for the weight.
func (o ordered) program(t *testing.T, labels []int) (*program.Program, error) {
	t.Helper()
	steps := []*plan.Step{{Pass: "reorder", Index: orderedIndex, Data: labels}}
	c, err := program.NewCompiler(program.CompilerOptions{Weights: o.set, Layout: o.layout, Rules: testplan.Rules()}, steps)
	testmodel.OK(t, err)
	return c.Program(t.Context(), o.weight, nil)
}

// TestOrderThatSplitsAScale: an order that separates inputs under one scale is refused. An order within them is not.
func TestOrderThatSplitsAScale(t *testing.T) {
	o := ordering(t, "fp8 block", "model.layers.0.mlp.down_proj.weight")
	for second, want := range map[int]bool{1: true, 200: false} { // 128 inputs share a scale
		labels := o.labels()
		labels[0], labels[second] = second, 0
		p, err := o.program(t, labels)
		if (err == nil) != want || want && !p.Moves() || !want && !errors.Is(err, plan.ErrInvalid) {
			t.Errorf("labels 0 and %d exchanged: %v", second, err)
		}
	}
}

// TestOrderOfOutputs: an order of a quantised weight's outputs moves rows of codes, and nothing else.
func TestOrderOfOutputs(t *testing.T) {
	o := ordering(t, "compressed fp8 channel", "model.layers.0.mlp.up_proj.weight")
	labels := o.labels()
	slices.Reverse(labels)
	p, err := o.program(t, labels)
	testmodel.OK(t, err)
	got, err := p.Recoded(t.Context(), 0, true, 1)
	testmodel.OK(t, err)
	want, err := o.weight.Quantised.Read(0)
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

// TestOperandsInOrder: the values and packed codes that kernels read are those of the source's outputs in their new order.
func TestOperandsInOrder(t *testing.T) {
	for _, model := range []string{"compressed fp8 channel", "pack-quantized", "compressed int8"} {
		o := ordering(t, model, "model.layers.0.mlp.up_proj.weight")
		labels := o.labels()
		slices.Reverse(labels)
		p, err := o.program(t, labels)
		testmodel.OK(t, err)
		source, size := p.Untouched(), p.OperandRowBytes()
		if !p.Moves() || source.Moves() {
			t.Fatalf("%s: codes move %v, and of the source %v", model, p.Moves(), source.Moves())
		}
		want := make([]byte, p.Rows*size)
		source.RunOperand(want, 0, p.Rows)
		for _, span := range [][2]int{{0, p.Rows}, {0, 3}, {5, 9}, {p.Rows - 1, p.Rows}} {
			n := span[1] - span[0]
			got := make([]byte, n*size)
			p.RunOperand(got, span[0], n)
			var packed []byte
			if p.Dequantised() {
				packed = p.PackedRows(span[0], n)
			}
			for i := range n {
				from := p.Rows - 1 - span[0] - i
				if !bytes.Equal(got[i*size:(i+1)*size], want[from*size:(from+1)*size]) {
					t.Fatalf("%s: row %d is not the source's row %d", model, span[0]+i, from)
				}
				if row := p.Cols / 2; packed != nil && !bytes.Equal(packed[i*row:(i+1)*row], source.PackedRows(from, 1)) {
					t.Fatalf("%s: packed row %d is not the source's row %d", model, span[0]+i, from)
				}
			}
		}
	}
}
