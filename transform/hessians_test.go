package transform_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/internal/testplan"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// TestHessiansAreThoseOfTheResult: for any order, signs and scales of the columns, a layer's Hessian is that of the
// inputs in the converted model's own forward pass.
func TestHessiansAreThoseOfTheResult(t *testing.T) {
	var models []*weights.Model
	var inputs []*testmodel.Hessians
	for _, c := range [][]byte{config(t, "llama-tiny", `{"attention_bias": true, "mlp_bias": true}`), config(t, "gpt2-tiny", "")} {
		m := open(t, folder(t, c, synth.Options{Seed: 5}))
		models, inputs = append(models, m), append(inputs, testmodel.HessiansOf(t, m))
	}
	rapid.Check(t, func(t *rapid.T) {
		i := rapid.IntRange(0, len(models)-1).Draw(t, "model")
		m, in, layout := models[i], inputs[i], layoutOf(t, models[i])
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		c := compilerOf(t, m, layout, stepsOf(layout, drawSymmetries(rng, layout, []string{"permute", "sign", "scale"})))
		result := testmodel.TensorsOf(m)
		for name, x := range result {
			x.Data = run(t, c, m, name, nil)
			result[name] = x
		}
		seen, _ := testmodel.Forward(t, m, result, 1)
		all := quant.Group(m, nil)
		testmodel.EachLinear(t, m, func(x weights.Tensor, _ int) {
			w, _ := all.Weight(x.Name)
			p, err := c.Program(context.Background(), w, nil)
			ok(t, err)
			l, err := p.Fitted(context.Background(), in, 1)
			ok(t, err)
			h, err := l.Hessian(context.Background())
			ok(t, err)
			near(t, x.Name, h, seen[x.Name])
		})
	})
}

// near compares Hessians, each element relative to its two inputs.
func near(t tb, name string, got, want sgemm.Matrix) {
	t.Helper()
	if got.Rows != want.Rows || got.Cols != want.Cols {
		t.Fatalf("%s: H is %d×%d, not %d×%d", name, got.Rows, got.Cols, want.Rows, want.Cols)
	}
	for i := range want.Rows {
		for j, v := range want.Row(i) {
			size := math.Sqrt(float64(want.Row(i)[i]) * float64(want.Row(j)[j]))
			if off := math.Abs(float64(got.Row(i)[j]) - float64(v)); off > 1e-3*size+1e-20 {
				t.Fatalf("%s: H[%d, %d] is %g, its inputs have %g", name, i, j, got.Row(i)[j], v)
			}
		}
	}
}

func TestHessiansThatDoNotFit(t *testing.T) {
	m := tiny(t, "gpt2-tiny", 0)
	in := testmodel.HessiansOf(t, m)
	const name = "transformer.h.1.mlp.c_proj.weight"
	p := testplan.Weighed(t, m, in, "round=3,compensate")
	in.Fitting[name] = in.Fitting["transformer.h.1.mlp.c_fc.weight"]
	apply := func() error {
		_, err := transform.Apply(t.Context(), m, p, filepath.Join(t.TempDir(), "out"), transform.ApplyOptions{Hessians: in})
		return err
	}
	wantError(t, apply(), name, "the layer has 160 inputs, and its Hessian is 40×40")
	delete(in.Fitting, name)
	wantError(t, apply(), name, "the layer's Hessian: the forward pass has no such layer")
}

func TestHessiansAreNeededAndOnlyTheirsAreTaken(t *testing.T) {
	m := tiny(t, "llama-tiny", 0)
	in := testmodel.HessiansOf(t, m)
	for _, passes := range []string{"compensate,round=3", "prune=0.2,compensate"} {
		_, err := transform.Plan(t.Context(), m, options(t, passes, 0))
		wantError(t, err, "needs the layers' inputs", "give tokens")
	}
	other := *in
	other.Name = "other tokens"
	for _, passes := range []string{"compensate,round=3", "trellis=0.01"} {
		with := testplan.Weighed(t, m, in, passes)
		if with.Request.Hessians != in.Name {
			t.Errorf("%s: the plan records Hessians %q", passes, with.Request.Hessians)
		}
		out := filepath.Join(t.TempDir(), "out")
		_, err := transform.Apply(t.Context(), m, with, out, transform.ApplyOptions{})
		wantError(t, err, "the plan was made with calibration tokens", "give the tokens that the plan was made with")
		_, err = transform.Apply(t.Context(), m, with, out, transform.ApplyOptions{Hessians: &other})
		wantError(t, err, "other calibration tokens", "give the tokens that the plan was made with")
		testplan.NothingAt(t, out)
	}
	// Plans whose passes do not use Hessians do not record them.
	if p := testplan.Weighed(t, m, in, "reorder,grid=8,round=3"); p.Request.Hessians != "" {
		t.Errorf("a plan of grid and round records Hessians %q", p.Request.Hessians)
	}
	// The same plan gives the same bytes: a plan without Hessians rejects them.
	without := makePlan(t, m, "trellis=0.01", 0)
	out := filepath.Join(t.TempDir(), "out")
	_, err := transform.Apply(t.Context(), m, without, out, transform.ApplyOptions{Hessians: in})
	wantError(t, err, "the plan was made without tokens")
	testplan.NothingAt(t, out)
	// A step that requires Hessians is an error in a plan without their key.
	p := planOf(t, m, &plan.Step{Pass: "compensate", Tensor: "lm_head.weight", Data: pass.Damping{Damp: 0.01}})
	_, err = transform.Apply(t.Context(), m, p, out, transform.ApplyOptions{})
	wantError(t, err, "lm_head.weight", "compensate needs the layer's inputs", "give the tokens that the plan was made with")
	if !errors.Is(err, plan.ErrInvalid) {
		t.Errorf("error %v is not of class ErrInvalid", err)
	}
	testplan.NothingAt(t, out)
}
