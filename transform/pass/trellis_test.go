package pass_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/internal/testplan"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/transform/rounding"
	"github.com/lowtoggle/lowtoggle/weights"
)

// TestTrellisOfTinyLambdaKeepsTheSource: a tiny lambda changes no values. Values are compared, because a chosen zero
// has no sign.
func TestTrellisOfTinyLambdaKeepsTheSource(t *testing.T) {
	for _, d := range testmodel.DTypes {
		for _, name := range []string{"llama-tiny", "gpt2-tiny"} {
			m := tiny(t, name, d)
			var in program.Hessians
			if name == "gpt2-tiny" {
				in = testmodel.HessiansOf(t, m)
			}
			for x, result := range testplan.Planned(t, m, in, "trellis=1e-30") {
				if !slices.Equal(values(result), values(tensorOf(t, m, x))) {
					t.Errorf("%s %s %s: values changed", d, name, x)
				}
			}
		}
	}
}

// TestTrellisOfNoLambdaKeepsEveryPattern: at a lambda of 0, every bit pattern is kept.
func TestTrellisOfNoLambdaKeepsEveryPattern(t *testing.T) {
	for _, d := range testmodel.DTypes {
		f := formatOf(d)
		n := 1 << min(f.Bits, 16)
		x := memory(d, []int{n / 16, 16}, make([]byte, n*f.Bits/8))
		for i := range n {
			f.SetElem(x.Data, i, uint32(i)<<(f.Bits-min(f.Bits, 16)))
		}
		step := pass.Trellis.TensorStep("w", pass.Price{Rates: rounding.Rates{Significant: make([]float64, f.MantBits+2)}})
		if !bytes.Equal(result(t, alone(t, x, 0), step).Data, x.Data) {
			t.Errorf("%s: patterns changed", d)
		}
	}
}

// significant returns the number of significant bits of a stored value.
func significant(f weights.Format, v float64) int {
	if v == 0 {
		return 0
	}
	frac, _ := math.Frexp(math.Abs(v))
	whole := uint64(math.Ldexp(frac, f.MantBits+1))
	return bits.Len64(whole) - bits.TrailingZeros64(whole)
}

// TestTrellisTradesErrorForEnergy: a larger lambda never lowers the error and never raises the energy.
func TestTrellisTradesErrorForEnergy(t *testing.T) {
	for _, d := range testmodel.DTypes {
		m := tiny(t, "gpt2-tiny", d)
		in := testmodel.HessiansOf(t, m)
		p := testplan.Weighed(t, m, in, "trellis=1")
		steps := lossy(t, p)
		const name = "transformer.h.1.mlp.c_fc.weight"
		x, h := tensorOf(t, m, name), in.Fitting[name]
		for i := range h.Rows { // without compensation, errors are weighted input by input
			for j := range h.Rows {
				if i != j {
					h.Row(i)[j] = 0
				}
			}
		}
		step := testplan.ByTensor(steps)[name][0]
		price := step.Data.(pass.Price)
		lastError, lastPrice := -1.0, math.Inf(1)
		for price.Lambda = 1e-5; price.Lambda < 100; price.Lambda *= 8 {
			step.Data = price
			result := testplan.Under(t, testmodel.Tensors{name: x}, m, in, steps)[name]
			energy := 0.0
			for _, v := range values(result) {
				energy += price.Rates.Significant[significant(formatOf(d), v)] / float64(x.Len())
			}
			share := testmodel.Lost(x, result, 1, h)
			if share < lastError*(1-1e-5) || energy > lastPrice*(1+1e-5) {
				t.Errorf("%s: lambda %g: an error of %g at a price of %g; before, %g at %g", d, price.Lambda, share, energy, lastError, lastPrice)
			}
			lastError, lastPrice = share, energy
		}
		if lowest := slices.Min(price.Rates.Significant); lastPrice > lowest+0.1 || lastError < 0.01 {
			t.Errorf("%s: at the highest lambda %g is lost, at a price of %g, the lowest is %g", d, lastError, lastPrice, lowest)
		}
	}
}

// TestTrellisWeighsErrorsByInputs: errors at an input that is always zero cost nothing.
func TestTrellisWeighsErrorsByInputs(t *testing.T) {
	m := tiny(t, "llama-tiny", 0)
	in := testmodel.HessiansOf(t, m)
	const name, dead = "model.layers.0.mlp.gate_proj.weight", 7
	h := in.Fitting[name]
	for i := range h.Rows {
		h.Row(i)[dead], h.Row(dead)[i] = 0, 0
	}
	steps := lossy(t, testplan.Weighed(t, m, in, "trellis=0.001"))
	for n, row := range testmodel.Outputs(testplan.Under(t, testmodel.TensorsOf(m), m, in, steps)[name], 0) {
		for k, v := range row {
			if (v == 0) != (k == dead) {
				t.Fatalf("output %d, input %d is %g", n, k, v)
			}
		}
	}
}

// streamCost counts the bits that differ between neighbouring rows, as for streaming weights.
func streamCost(_ context.Context, w cost.Weights, _ cost.Role, _ cost.Workload) (cost.Estimate, error) {
	toggles, all := 0, 0
	for _, b := range w.Bands {
		size := w.Cols * w.DType.Bits() / 8
		for i := size; i < len(b.Data); i++ {
			toggles += bits.OnesCount8(b.Data[i] ^ b.Data[i-size])
			all += 8
		}
	}
	return cost.Estimate{Relative: 2 * float64(toggles) / float64(max(1, all))}, nil
}

// TestTrellisOfWeightsThatStream: if steps from row to row cost energy, the trellis makes neighbouring rows more
// similar.
func TestTrellisOfWeightsThatStream(t *testing.T) {
	for name, layer := range map[string]string{"llama-tiny": "model.layers.0.mlp.up_proj.weight", "gpt2-tiny": "transformer.h.0.mlp.c_fc.weight"} {
		m := tiny(t, name, 0)
		o := options(t, "trellis=1", 0)
		o.Cost, o.Role = testmodel.CostFunc(streamCost), cost.Streaming
		p, err := transform.Plan(t.Context(), m, o)
		ok(t, err)
		energy := func(steps []*plan.Step) float64 {
			x := testplan.Under(t, testmodel.Tensors{layer: tensorOf(t, m, layer)}, m, nil, steps)[layer]
			rows, cols := x.Matrix()
			e, err := streamCost(t.Context(), cost.Weights{DType: x.DType, Rows: rows, Cols: cols, Bands: []cost.Band{{Data: x.Data}}}, 0, cost.Workload{})
			ok(t, err)
			return e.Relative
		}
		rates := testplan.ByTensor(p.Steps)[layer][0].Data.(pass.Price).Rates
		if name == "gpt2-tiny" { // rows are inputs there
			if rates.Differ != 0 || rates.Sign != 0 {
				t.Errorf("%s: rates %+v", name, rates)
			}
			continue
		}
		if !(rates.Differ > 0.1) || rates.Run != 4 {
			t.Errorf("%s: rates %+v", name, rates)
		}
		coupled := energy(p.Steps)
		if alone := energy(lossy(t, p)); !(coupled < 0.9*alone) {
			t.Errorf("%s: the energy is %g, and %g where rows are not coupled", name, coupled, alone)
		}
	}
}

// TestRatesOfAnyCost: any cost model gives valid rates, or returns its own error.
func TestRatesOfAnyCost(t *testing.T) {
	for name, energy := range map[string]func(share float64) float64{
		"nothing is worth anything": func(float64) float64 { return 1 },
		"zeros are worth all":       func(share float64) float64 { return max(0, 1-8*share) },
		"zeros cost":                func(share float64) float64 { return 1 + share },
		"no energy":                 func(float64) float64 { return 0 },
		"linear":                    func(share float64) float64 { return 1 - share },
	} {
		for _, d := range testmodel.DTypes {
			v := make([]float32, 64*48)
			for i := range v {
				v[i] = float32(1+i*i%13) * float32(1-2*(i%2))
			}
			target := alone(t, matrix(d, 48, v), 0)
			target.Cost = testmodel.CostFunc(func(_ context.Context, w cost.Weights, _ cost.Role, _ cost.Workload) (cost.Estimate, error) {
				zero, all := 0, 0
				f := formatOf(w.DType)
				for _, b := range w.Bands {
					for i := range len(b.Data) * 8 / f.Bits {
						if all++; f.Elem(b.Data, i) == 0 {
							zero++
						}
					}
				}
				return cost.Estimate{Relative: energy(float64(zero) / float64(all))}, nil
			})
			r, err := target.Rates(t.Context())
			ok(t, err)
			if err := r.Validate(target.Format); err != nil || r.Line > r.Significant[1] {
				t.Errorf("%s, %s: error %v: %+v", name, d, err, r)
			}
		}
	}
	unknown := errors.New("not calibrated")
	target := alone(t, matrix(weights.BF16, 4, make([]float32, 16)), 0)
	for fails := range 12 {
		target.Cost = testmodel.CostFunc(func(context.Context, cost.Weights, cost.Role, cost.Workload) (cost.Estimate, error) {
			if fails--; fails < 0 {
				return cost.Estimate{}, unknown
			}
			return cost.Estimate{Relative: float64(fails)}, nil
		})
		if _, err := target.Rates(t.Context()); fails < 0 && !errors.Is(err, unknown) {
			t.Errorf("error %v", err)
		}
	}
}

func TestDamagedTrellisIsRefused(t *testing.T) {
	m := tiny(t, "llama-tiny", weights.F8E5M2)
	good := func() *pass.Price {
		return &pass.Price{Lambda: 0.1, Rates: rounding.Rates{Significant: []float64{0.1, 0.2, 0.5, 1}}}
	}
	list := []damaged{{&plan.Step{}, "has no data"}}
	for _, c := range []struct {
		damage func(s *pass.Price)
		want   string
	}{
		{func(s *pass.Price) { s.Lambda = -1e-9 }, "lambda is -1e-09, not from 0 to 1000"},
		{func(s *pass.Price) { s.Lambda = 1001 }, "lambda is 1001, not"},
		{func(s *pass.Price) { s.Lambda = math.NaN() }, "lambda is NaN, not"},
		{func(s *pass.Price) { s.Lambda = math.Inf(1) }, "lambda is +Inf, not"},
		{func(s *pass.Price) { s.Rates = rounding.Rates{} }, "0 costs of significant bits"},
		{func(s *pass.Price) { s.Rates.Significant = s.Rates.Significant[:3] }, "3 costs of significant bits"},
		{func(s *pass.Price) { s.Rates.Significant = append(s.Rates.Significant, 2) }, "5 costs of significant bits"},
		{func(s *pass.Price) { s.Rates.Significant[0] = -1 }, "the cost of 0 significant bits is -1"},
		{func(s *pass.Price) { s.Rates.Significant[2] = 0.1 }, "the cost of 2 significant bits is 0.1"},
		{func(s *pass.Price) { s.Rates.Significant[3] = math.Inf(1) }, "the cost of 3 significant bits is +Inf"},
		{func(s *pass.Price) { s.Rates.Line = -1 }, "a cost is -1"},
		{func(s *pass.Price) { s.Rates.Differ = math.NaN() }, "a cost is NaN"},
		{func(s *pass.Price) { s.Rates.Differ, s.Rates.Run = 0.1, 3 }, "a run has 3 rows"},
		{func(s *pass.Price) { s.Rates.Sign, s.Rates.Run = 0.1, 1<<40 }, "a run has 1099511627776 rows"},
	} {
		s := good()
		c.damage(s)
		list = append(list, damaged{&plan.Step{Data: *s}, c.want})
	}
	for _, d := range list {
		d.step.Pass = "trellis"
	}
	wantRefused(t, m, nil, "lm_head.weight", list)
	testplan.Under(t, testmodel.TensorsOf(m), m, nil, []*plan.Step{{Pass: "trellis", Tensor: "lm_head.weight", Data: *good()}})
}

func TestPlanOfWholeLayersRoundTrip(t *testing.T) {
	for _, name := range []string{"llama-tiny", "gpt2-tiny"} {
		m := tiny(t, name, 0)
		in := testmodel.HessiansOf(t, m)
		p := testplan.Weighed(t, m, in, "scale,reorder,signs,prune=0.2,sparsify=0.1/element,trellis=0.01,compensate=0.02")
		js := testplan.Encoded(t, p)
		again, err := plan.Decode(js)
		ok(t, err)
		if !bytes.Equal(testplan.Encoded(t, again), js) {
			t.Errorf("%s: another plan after reading:\n%s\n%s", name, js, testplan.Encoded(t, again))
		}
		want := testplan.Under(t, testmodel.TensorsOf(m), m, in, p.Steps)
		for x, result := range testplan.Under(t, testmodel.TensorsOf(m), m, in, again.Steps) {
			if !bytes.Equal(result.Data, want[x].Data) {
				t.Errorf("%s: %s is another after reading", name, x)
			}
		}
	}
}

// TestTrellisWithoutTokens: a layer whose values are chosen row by row equals the transposed layer, whose values are
// chosen together. This also holds with values that are not finite, with zeros that stay, and with runs.
func TestTrellisWithoutTokens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SampledFrom(testmodel.DTypes).Draw(t, "type")
		f := formatOf(d)
		rows, cols := rapid.IntRange(1, 70).Draw(t, "rows"), rapid.IntRange(1, 90).Draw(t, "columns")
		x := memory(d, []int{rows, cols}, make([]byte, rows*cols*f.Bits/8))
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "values"), 0))
		any := rapid.Bool().Draw(t, "any bits")
		for i := range rows * cols {
			b := f.FromValue(float32(rng.NormFloat64()))
			if any && rng.IntN(50) == 0 {
				b = rng.Uint32() >> (32 - f.Bits)
			}
			f.SetElem(x.Data, i, b)
		}
		significant := make([]float64, f.MantBits+2)
		for b := range significant {
			significant[b] = float64(b+1) / float64(len(significant))
		}
		price := pass.Price{Lambda: rapid.SampledFrom([]float64{0, 1e-3, 0.1, 10}).Draw(t, "lambda"), Rates: rounding.Rates{Significant: significant}}
		if rapid.Bool().Draw(t, "coupled") {
			price.Rates.Differ, price.Rates.Run = 0.1, 4
		}
		steps := []*plan.Step{pass.Trellis.TensorStep("w", price)}
		if rapid.Bool().Draw(t, "sparse") {
			steps = append(steps, pass.Sparsify.TensorStep("w", pass.Zeros{Block: &[2]int{1, 1}, Threshold: 0.5}))
		}
		if rapid.Bool().Draw(t, "pruned") {
			outputs := []int{rapid.IntRange(0, rows-1).Draw(t, "pruned output")}
			steps = append(steps, pass.Prune.TensorStep("w", pass.Pruned{Outputs: outputs}))
		}
		got, want := result(t, alone(t, x, 0), steps...), flipped(result(t, alone(t, flipped(x), 1), steps...))
		if !bytes.Equal(got.Data, want.Data) {
			t.Fatalf("%s %d×%d: the values differ", d, rows, cols)
		}
	})
}

// flipped returns the transpose of a matrix.
func flipped(x weights.Tensor) weights.Tensor {
	f := formatOf(x.DType)
	rows, cols := x.Matrix()
	y := memory(x.DType, []int{cols, rows}, make([]byte, len(x.Data)))
	for i := range rows * cols {
		f.SetElem(y.Data, i%cols*rows+i/cols, f.Elem(x.Data, i))
	}
	return y
}

// TestTrellisWithoutTokensHoldsNoResult: a result as large as the weight is stored only if values depend on one
// another.
func TestTrellisWithoutTokensHoldsNoResult(t *testing.T) {
	x := matrix(weights.BF16, 2, []float32{1, 2, 3, 4})
	for _, c := range []struct {
		differ float64
		axis   int
		holds  bool
	}{{0, 0, false}, {1, 0, true}, {0, 1, true}} {
		rates := rounding.Rates{Significant: make([]float64, 9), Differ: c.differ, Run: 4}
		p, err := alone(t, x, c.axis).Program(t.Context(), pass.Trellis.TensorStep("w", pass.Price{Lambda: 1, Rates: rates}))
		ok(t, err)
		if p.HoldsResult() != c.holds {
			t.Errorf("%+v: holds a result: %v", c, p.HoldsResult())
		}
	}
}
