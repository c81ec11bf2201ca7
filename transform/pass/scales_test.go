package pass_test

import (
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// TestTunedScales: at each lambda, the chosen number of bits, or no step, has the least error + lambda·energy of all.
func TestTunedScales(t *testing.T) {
	for _, c := range []struct {
		model   string
		from, n int // numbers of bits; n = 0: scales cannot change
	}{{"fbgemm", 1, 5}, {"pack-quantized", 0, 3}, {"compressed mxfp4", 0, 0}} {
		i := slices.IndexFunc(testmodel.Quantisations, func(q testmodel.Quantisation) bool { return q.Name == c.model })
		m := open(t, testmodel.Quantised(t, testmodel.Quantisations[i], testmodel.With{}))
		model := modelOf(t, m, "scales")
		d, err := quant.Describe(m)
		ok(t, err)
		model.Weights = quant.Group(m, d)
		model.Compiler, err = program.NewCompiler(program.CompilerOptions{Weights: model.Weights, Layout: model.Layout, Rules: map[string]program.Rule{"scales": {Compile: pass.Scales.Compile}}}, nil)
		ok(t, err)
		w, _ := model.Weights.Weight("model.layers.0.mlp.up_proj.weight")
		l, err := pass.NewLayer(t.Context(), model.Context, model.Compiler, w, nil)
		ok(t, err)
		type option struct{ error, energy float64 }
		measured := func(data any) (o option) {
			p := l.Base()
			if data != nil {
				p, err = l.Program(t.Context(), pass.Scales.TensorStep(w.Name, data))
				ok(t, err)
			}
			s := l.Sample(p)
			e, err := s.Energy(t.Context(), p)
			ok(t, err)
			loss, err := s.Loss(t.Context(), p)
			ok(t, err)
			return option{loss.Noise / loss.Signal, e.Relative}
		}
		all := map[any]option{nil: measured(nil)}
		for bits := range c.n {
			all[pass.ScaleBits{Bits: c.from + bits}] = measured(pass.ScaleBits{Bits: c.from + bits})
		}
		at, err := pass.Scales.Tuned(t.Context(), l, 0)
		ok(t, err)
		seen := map[any]bool{}
		for _, lambda := range append([]float64{1e-9}, pass.Lambdas()...) {
			data := at(lambda)
			seen[data] = true
			got, known := all[data]
			for other, o := range all {
				if !known || got.error+lambda*got.energy > (o.error+lambda*o.energy)*(1+1e-12) {
					t.Errorf("%s: a lambda of %g takes %+v, and not %+v", c.model, lambda, data, other)
				}
			}
		}
		if c.n > 0 && len(seen) < 2 {
			t.Errorf("%s: all lambdas take %v", c.model, seen)
		}
	}
}
