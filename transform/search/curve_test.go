package search

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// TestFindIsNeverCoarser: in a finer curve, find returns the same point or one with less error.
func TestFindIsNeverCoarser(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCurve(t).hull()
		i := rapid.IntRange(0, len(c)-1).Draw(t, "i")
		if c.find(c[i]) != i {
			t.Fatalf("point %d of %v is found at %d", i, c, c.find(c[i]))
		}
		other := point{Error: rapid.Float64Range(0, 10).Draw(t, "error")}
		if k := c.find(other); k > 0 && c[k].Error > other.Error || k+1 < len(c) && c[k+1].Error <= other.Error {
			t.Fatalf("an error of %g is found at %d of %v", other.Error, k, c)
		}
	})
}

// modelOf returns a checkpoint as a model with the given passes.
func modelOf(t *testing.T, m *weights.Model, h program.Hessians, choices ...pass.Choice) *pass.Model {
	t.Helper()
	model := &pass.Model{Dir: m.Dir, Weights: quant.Group(m, nil), Layout: testmodel.LayoutOf(t, m),
		Context: &pass.Context{Workload: cost.Workload{Prefill: 0.5, Decode: 0.5}, Cost: testmodel.TogglesCost{}, Hessians: h, Choices: choices, Workers: 2}}
	rules := map[string]program.Rule{}
	for i, c := range choices {
		rules[c.Pass.Name] = program.Rule{Rank: i, Compile: c.Pass.Compile, Check: c.Pass.Check}
	}
	var err error
	model.Compiler, err = program.NewCompiler(program.CompilerOptions{Weights: model.Weights, Layout: model.Layout, Hessians: h, Rules: rules}, nil)
	testmodel.OK(t, err)
	return model
}

// TestFreedNeedsALinearLayer: an input frees weights only in linear layers of a known model.
func TestFreedNeedsALinearLayer(t *testing.T) {
	m := testmodel.Tiny(t, "llama-tiny", 0)
	model := modelOf(t, m, testmodel.HessiansOf(t, m), pass.Choice{Pass: pass.Prune})
	for name, want := range map[string]bool{"no.such.weight": false, "model.norm.weight": false, "model.layers.0.mlp.down_proj.weight": true} {
		if freed := model.Freed(name); (freed > 0) != want {
			t.Errorf("%s frees %v", name, freed)
		}
	}
}

// TestCurvesAreWhatStepsComeTo: a layer's curve begins with the unchanged layer, and its points are the results of
// their steps.
func TestCurvesAreWhatStepsComeTo(t *testing.T) {
	for _, name := range []string{"llama-tiny", "gpt2-tiny"} {
		m := testmodel.Tiny(t, name, 0)
		h := testmodel.HessiansOf(t, m)
		passes := []pass.Choice{{Pass: pass.Prune}, {Pass: pass.Trellis}, {Pass: pass.Compensate, Args: []string{"0.01"}}}
		model := modelOf(t, m, h, passes...)
		testmodel.EachLinear(t, m, func(x weights.Tensor, outAxis int) {
			w, _ := model.Weights.Weight(x.Name)
			l, err := pass.NewLayer(t.Context(), model.Context, model.Compiler, w, nil)
			testmodel.OK(t, err)
			l.Freed = model.Freed(x.Name)
			c, err := curveOf(t.Context(), l, passes, pass.Lambdas())
			testmodel.OK(t, err)
			if len(c) < 5 || c[0].Steps != nil || c[0].Error != 0 {
				t.Fatalf("%s: %d points, the first is %+v", x.Name, len(c), c[0])
			}
			for i, point := range c[1:] {
				p, err := model.Compiler.Program(t.Context(), w, point.Steps)
				testmodel.OK(t, err)
				testmodel.OK(t, p.Prepare(t.Context(), 2))
				after := x
				after.Data = make([]byte, len(x.Data))
				p.Run(after.Data, 0, p.Rows)
				// The Hessians are in float32, which limits the precision of small errors.
				if share := testmodel.Lost(x, after, outAxis, h.HeldOut[x.Name]); math.Abs(share-point.Error) > 1e-5*share+1e-7 {
					t.Errorf("%s: point %d loses %g, not %g", x.Name, i+1, share, point.Error)
				}
			}
		})
	}
}

func TestLambdasRise(t *testing.T) {
	list := pass.Lambdas()
	for i, l := range list {
		if !(l > 0 && l <= 1000) || i > 0 && l <= list[i-1] {
			t.Errorf("lambda %d is %g", i, l)
		}
	}
}
