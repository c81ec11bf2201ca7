package program_test

import (
	"context"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/internal/testplan"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/weights"
)

// near compares two losses.
func near(a, b program.Loss) bool {
	close := func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Max(a, b) }
	return close(a.Signal, b.Signal) && close(a.Noise, b.Noise) && a.NonFinite == b.NonFinite
}

// TestLossIsThatOfTheValues: a loss is the sum of the squares of the values and of their changes, without NaN and
// infinity. It is the sum of the losses of parts.
func TestLossIsThatOfTheValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, cols := 4*rapid.IntRange(1, 6).Draw(t, "rows"), rapid.IntRange(1, 9).Draw(t, "columns")
		d := rapid.SampledFrom(testmodel.DTypes).Draw(t, "type")
		f := testmodel.FormatOf(d)
		x := testmodel.Memory(d, []int{rows, cols}, testmodel.DrawBytes(t, rows*cols*f.Bits/8, "data"))
		l := testplan.Alone(t, x, rapid.IntRange(0, 1).Draw(t, "output axis"))
		steps := rapid.SampledFrom([][]*plan.Step{
			nil,
			{pass.Round.TensorStep("w", pass.Bits{Zeroed: 2})},
			{pass.Sparsify.TensorStep("w", pass.Zeros{Pattern: "2:4"})},
			{pass.Sparsify.TensorStep("w", pass.Zeros{Block: &[2]int{4, 2}, Threshold: 1}), pass.Round.TensorStep("w", pass.Bits{Zeroed: 1, Truncate: true})},
		}).Draw(t, "steps")
		p, err := l.Program(context.Background(), steps...)
		testmodel.OK(t, err)
		got, err := p.Loss(context.Background(), 0, rows)
		testmodel.OK(t, err)
		var want program.Loss
		after := testmodel.Values(testplan.Result(t, l, steps...))
		for i, v := range testmodel.Values(x) {
			if v-v != 0 {
				want.NonFinite++
				continue
			}
			want.Signal += v * v
			want.Noise += (after[i] - v) * (after[i] - v)
		}
		if !near(got, want) {
			t.Fatalf("the loss is %+v, want %+v", got, want)
		}
		cut := 4 * rapid.IntRange(0, rows/4).Draw(t, "cut")
		first, err := p.Loss(context.Background(), 0, cut)
		testmodel.OK(t, err)
		rest, err := p.Loss(context.Background(), cut, rows)
		testmodel.OK(t, err)
		if sum := first.Plus(rest); !near(sum, got) {
			t.Fatalf("the losses before and from row %d on sum to %+v, and the total is %+v", cut, sum, got)
		}
		if db := got.Decibels(); want.Noise == 0 != math.IsInf(db, 1) {
			t.Fatalf("%+v are %g dB", got, db)
		}
	})
}

// TestLossOfAShift: a shift has no loss. Neither the constant nor the folded norm counts as noise, only rounding.
func TestLossOfAShift(t *testing.T) {
	m := testmodel.Tiny(t, "gpt2-tiny", weights.F32)
	layout, shifted := testmodel.LayoutOf(t, m), 0
	steps := testplan.Make(t, m, "shift=4,round=12", 0).Steps
	c := testplan.Compiler(t, m, layout, nil, steps)
	testmodel.EachLinear(t, m, func(x weights.Tensor, outAxis int) {
		norm := layout.Claims[x.Name].Norm
		if norm == nil {
			return
		}
		shifted++
		p, err := c.Program(t.Context(), testplan.Weight(x), testplan.ByTensor(steps)[x.Name])
		testmodel.OK(t, err)
		got, err := p.Loss(t.Context(), 0, p.Rows)
		testmodel.OK(t, err)
		add := 0.0
		for _, s := range testplan.ByTensor(steps)[x.Name] {
			if s.Pass == pass.Shift.Name {
				d, err := plan.Data[pass.Shifted](s)
				testmodel.OK(t, err)
				add = float64(float32(d.Add))
			}
		}
		result := x
		result.Data = make([]byte, len(x.Data))
		p.Run(result.Data, 0, p.Rows)
		var want program.Loss
		gamma, after := testmodel.Values(testmodel.TensorOf(t, m, norm.Weight)), testmodel.Outputs(result, outAxis)
		for n, row := range testmodel.Outputs(x, outAxis) {
			for k, v := range row {
				v *= gamma[k]
				want.Signal += v * v
				want.Noise += (after[n][k] - add - v) * (after[n][k] - add - v)
			}
		}
		if add == 0 || want.Noise == 0 || !near(got, want) {
			t.Errorf("%s, shifted by %g: the loss is %+v, want %+v", x.Name, add, got, want)
		}
	})
	if shifted == 0 {
		t.Error("no layer is shifted")
	}
}

// TestLossOfAJointChoice: the loss of a joint choice with a Hessian is that of the layer's outputs on held-out
// inputs, for any rows.
func TestLossOfAJointChoice(t *testing.T) {
	for _, name := range []string{"llama-tiny", "gpt2-tiny"} {
		m := testmodel.Tiny(t, name, weights.BF16)
		h := testmodel.HessiansOf(t, m)
		steps := testplan.Weighed(t, m, h, "round=4,compensate").Steps
		c := testplan.Compiler(t, m, testmodel.LayoutOf(t, m), h, steps)
		after := testplan.Under(t, testmodel.TensorsOf(m), m, h, steps)
		testmodel.EachLinear(t, m, func(x weights.Tensor, outAxis int) {
			p, err := c.Program(t.Context(), testplan.Weight(x), testplan.ByTensor(steps)[x.Name])
			testmodel.OK(t, err)
			testmodel.OK(t, p.Prepare(t.Context(), 1))
			defer p.Release()
			got, err := p.Loss(t.Context(), 0, 1)
			testmodel.OK(t, err)
			want := testmodel.Lost(x, after[x.Name], outAxis, h.HeldOut[x.Name])
			if share := got.Noise / got.Signal; !p.LossOfWhole() || math.Abs(share-want) > 1e-3*want {
				t.Errorf("%s: %g of the power is lost, want %g", x.Name, share, want)
			}
		})
	}
}
