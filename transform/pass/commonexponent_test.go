package pass_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/internal/testplan"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// withFields returns a model whose matrices have the exponent fields that field returns; 0 gives zeros.
func withFields(t *testing.T, name string, d weights.DType, field func(tensor string, n, k, was int) int) *weights.Model {
	t.Helper()
	dir := folder(t, config(t, name, ""), synth.Options{DType: d})
	edit(t, dir, func(info weights.Info, data []byte) {
		f, _ := info.DType.Format()
		_, cols := info.Matrix()
		for i := range info.Len() {
			if b := f.Elem(data, i); len(info.Shape) == 2 && b&f.ExpMask() != 0 {
				to := field(info.Name, i/cols, i%cols, int(b&f.ExpMask())>>f.MantBits)
				if b = b&^f.ExpMask() | uint32(to)<<f.MantBits; to == 0 {
					b &= f.SignMask()
				}
				f.SetElem(data, i, b)
			}
		}
	})
	return open(t, dir)
}

// fieldToggles counts, element by element, the toggles that the choice of exponents estimates from groups of
// elements.
func fieldToggles(t *testing.T, m *weights.Model, all testmodel.Tensors) (sum float64) {
	t.Helper()
	for _, info := range m.Infos() {
		if !layoutOf(t, m).IsLinear(info) {
			continue
		}
		x := all[info.Name]
		f, n := formatOf(x.DType), float64(x.Len())
		for bit := range 8 {
			ones := 0.0
			for i := range x.Len() {
				ones += float64(f.Elem(x.Data, i) >> (f.MantBits + bit) & 1)
			}
			sum += 2 * ones * (n - ones) / n
		}
	}
	return sum
}

// commonExponents returns the choice for a model whose labels have no exponents.
func commonExponents(t *testing.T, m *weights.Model) *pass.CommonExponents {
	t.Helper()
	p := modelOf(t, m, "scale")
	exps := map[string][]int{}
	for _, ix := range p.Layout.Indices {
		if ix.Scale && ix.Blocked == "" {
			exps[ix.Name] = make([]int, ix.Len)
		}
	}
	v, err := pass.NewCommonExponents(t.Context(), p, exps)
	ok(t, err)
	return v
}

// TestCommonPowersToggleLess: common powers of two lower the toggles of the exponent fields, for any scales of
// layers. No other power of a single index is better, and the scaled layers toggle as predicted.
func TestCommonPowersToggleLess(t *testing.T) {
	for i, c := range []struct {
		model string
		dtype weights.DType
	}{{"llama-tiny", weights.BF16}, {"llama-tiny", weights.F32}, {"gpt2-tiny", weights.BF16}, {"phi3-tiny", weights.BF16}, {"qwen3-tiny", weights.F32}} {
		rng := rand.New(rand.NewPCG(uint64(i), 2))
		level := map[string]int{}
		m := withFields(t, c.model, c.dtype, func(tensor string, n, k, was int) int {
			if (n+3*k)%7 == 0 {
				return 0
			}
			if _, drawn := level[tensor]; !drawn {
				level[tensor] = rng.IntN(13) - 8
			}
			return was + level[tensor]
		})
		v := commonExponents(t, m)
		near := func(what string, have, want float64) {
			if math.Abs(have-want) > 1e-9*want {
				t.Errorf("%s %s: %g toggles %s, estimated %g", c.model, c.dtype, want, what, have)
			}
		}
		before, _ := v.Cost()
		near("before", before, fieldToggles(t, m, testmodel.TensorsOf(m)))
		v.Descend()
		after, best := v.Cost()
		if !(after < before) {
			t.Errorf("%s %s: %g toggles before, %g after", c.model, c.dtype, before, after)
		}
		var steps []*plan.Step
		for i, ix := range v.Indices {
			power := v.Power[i]
			for v.Power[i] = -pass.MostOctaves; v.Power[i] <= pass.MostOctaves; v.Power[i]++ {
				if _, other := v.Cost(); other < best*(1-1e-12) {
					t.Errorf("%s %s: 2^%d on %s is better than 2^%d", c.model, c.dtype, v.Power[i], ix.Name, power)
				}
			}
			v.Power[i] = power
			if power != 0 {
				steps = append(steps, pass.Scale.IndexStep(ix.Name, slices.Repeat([]int{power}, ix.Len)))
			}
		}
		near("after", after, fieldToggles(t, m, testplan.Under(t, testmodel.TensorsOf(m), m, nil, steps)))
	}
}

// TestCommonPowersOfZeros: if no power changes the toggles, no index is scaled.
func TestCommonPowersOfZeros(t *testing.T) {
	v := commonExponents(t, withFields(t, "llama-tiny", weights.BF16, func(string, int, int, int) int { return 0 }))
	v.Descend()
	if before, _ := v.Cost(); before != 0 || slices.ContainsFunc(v.Power, func(p int) bool { return p != 0 }) {
		t.Errorf("%g toggles, powers %v", before, v.Power)
	}
}

// TestTiedPowers: among powers of the same cost, the smallest is chosen.
func TestTiedPowers(t *testing.T) {
	if have := pass.TiedPower(3); have != 0 {
		t.Errorf("power %d, want 0", have)
	}
}

// TestCommonPowerIsFound: layers whose exponents lie on both sides of a carry are scaled up over it, and their norm
// down. Layers with good exponents do not change, nor do layers whose change would cost more in another layer.
func TestCommonPowerIsFound(t *testing.T) {
	behindNorm := []string{"q_proj", "k_proj", "v_proj", "gate_proj", "up_proj"}
	m := withFields(t, "llama-tiny", weights.BF16, func(tensor string, n, k, _ int) int {
		if slices.ContainsFunc(behindNorm, func(kind string) bool { return strings.Contains(tensor, kind) }) {
			return 0x77 + (n+k)%2 // four bits differ
		}
		return 0x78 + (n+k)%2
	})
	for _, workers := range []int{1, 3} {
		o := options(t, "scale", 0)
		o.Workers = workers
		p, err := transform.Plan(t.Context(), m, o)
		ok(t, err)
		have, want := map[string][]int{}, map[string][]int{}
		for _, s := range p.Steps {
			have[s.Index] = s.Data.([]int)
		}
		for layer := range layoutOf(t, m).Dims["layers"] {
			for _, norm := range []string{"attn_norm", "mlp_norm"} {
				want[fmt.Sprintf("layers.%d.%s", layer, norm)] = slices.Repeat([]int{-1}, layoutOf(t, m).Dims["hidden"])
			}
		}
		if !maps.EqualFunc(have, want, slices.Equal) {
			t.Errorf("scaled indices: %v, want %v", have, want)
		}
	}
}

// TestCommonPowersAreForWideTypes: only types with 8-bit exponents get common powers, and only if requested.
func TestCommonPowersAreForWideTypes(t *testing.T) {
	for _, d := range []weights.DType{weights.F16, weights.F8E4M3, weights.BF16} {
		m := tiny(t, "llama-tiny", d)
		labels, all := makePlan(t, m, "scale=labels", 0), makePlan(t, m, "scale", 0)
		labels.Request = all.Request
		if same := string(testplan.Encoded(t, labels)) == string(testplan.Encoded(t, all)); same != (d != weights.BF16) {
			t.Errorf("%s: powers in common: %v", d, !same)
		}
	}
}

// TestCommonPowersAreForDecode: in prefill common powers save nothing measurable, so there are none.
func TestCommonPowersAreForDecode(t *testing.T) {
	m := tiny(t, "llama-tiny", weights.BF16)
	planFor := func(passes string, l cost.Workload) string {
		o := options(t, passes, 0)
		o.Workload = l
		p, err := transform.Plan(t.Context(), m, o)
		ok(t, err)
		p.Request = makePlan(t, m, "scale", 0).Request
		return string(testplan.Encoded(t, p))
	}
	for _, l := range []cost.Workload{{Prefill: 1}, {Decode: 1}, {Prefill: 0.9, Decode: 0.1}} {
		if same := planFor("scale", l) == planFor("scale=labels", l); same != (l.Decode == 0) {
			t.Errorf("%+v: powers in common: %v", l, !same)
		}
	}
}

// TestCommonPowersSpareMixedTypes: an index with a tensor of another type gets no common power.
func TestCommonPowersSpareMixedTypes(t *testing.T) {
	dir := folder(t, config(t, "llama-tiny", ""), synth.Options{})
	testmodel.Alter(t, dir, func(infos []weights.Info, _ map[string][]byte) []weights.Info {
		for i := range infos {
			if len(infos[i].Shape) == 1 {
				infos[i].DType = weights.F16 // norms
			}
		}
		return infos
	})
	m, own := open(t, dir), map[string][]int{}
	for _, s := range makePlan(t, m, "scale=labels", 0).Steps {
		own[s.Index] = s.Data.([]int)
	}
	for _, s := range makePlan(t, m, "scale", 0).Steps {
		if strings.Contains(s.Index, "norm") && !slices.Equal(s.Data.([]int), own[s.Index]) {
			t.Errorf("%s is scaled by %v, its labels alone by %v", s.Index, s.Data, own[s.Index])
		}
	}
}

// TestPredictionsKeepTheSourcesScale: predictions of a scaled layer, before and after, are relative to random weights
// of the source's scale. For other layers, they are relative to random weights of the layer's own scale.
func TestPredictionsKeepTheSourcesScale(t *testing.T) {
	for _, model := range []string{"llama-tiny", "gpt2-tiny"} {
		predictionsKeepTheSourcesScale(t, withFields(t, model, weights.BF16, func(_ string, n, k, _ int) int { return 0x77 + (n+k)%2 }))
	}
}

func predictionsKeepTheSourcesScale(t *testing.T, m *weights.Model) {
	var sources []float64
	for _, info := range m.Infos() {
		if layoutOf(t, m).IsLinear(info) {
			rms, err := cost.SampleOf(tensorOf(t, m, info.Name), layoutOf(t, m).Claims[info.Name].OutAxis).RMS(t.Context())
			ok(t, err)
			sources = append(sources, rms)
		}
	}
	for _, passes := range []string{"scale", "scale,round=4", "reorder,round=4"} {
		o, given := options(t, passes, 0), 0
		o.Workers = 1
		o.Cost = testmodel.CostFunc(func(ctx context.Context, w cost.Weights, role cost.Role, l cost.Workload) (cost.Estimate, error) {
			if w.Scale != 0 {
				given++
				if !slices.Contains(sources, w.Scale) {
					t.Errorf("%s: no layer of the source has a scale of %g", passes, w.Scale)
				}
			}
			return testmodel.TogglesCost{}.Energy(ctx, w, role, l)
		})
		p, err := transform.Plan(t.Context(), m, o)
		ok(t, err)
		layers := 0 // number of scaled layers
		c := testplan.Compiler(t, m, layoutOf(t, m), nil, p.Steps)
		for _, claim := range layoutOf(t, m).Claims {
			row, col := c.Symmetries().Matrix(claim)
			if exps := append(slices.Clone(row.Exp), col.Exp...); claim.Role == arch.Linear && slices.ContainsFunc(exps, func(e int) bool { return e != 0 }) {
				layers++
			}
		}
		if most := 2 * layers; given < layers || given > most || layers == 0 != !strings.Contains(passes, "scale") {
			t.Errorf("%s: %d predictions over the source's scale, %d layers are scaled", passes, given, layers)
		}
	}
}

// TestCommonPowersSuitTheBudget: common powers are chosen for the grid that a budget of output SNR allows, as for the
// same explicit grid.
func TestCommonPowersSuitTheBudget(t *testing.T) {
	m, _, _ := testmodel.Trained(t)
	for _, c := range []struct {
		budget, fixed string
		minSNR        float64
	}{{"scale,grid", "scale,grid=4", 20}, {"scale,grid", "scale,grid=16", 32}} {
		have, want := makePlan(t, m, c.budget, c.minSNR), makePlan(t, m, c.fixed, 0)
		have.Request, have.Predictions, want.Predictions = want.Request, nil, nil
		if string(testplan.Encoded(t, have)) != string(testplan.Encoded(t, want)) {
			t.Errorf("%s within %g dB differs from %s", c.budget, c.minSNR, c.fixed)
		}
	}
}
