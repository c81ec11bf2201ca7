package search

import (
	"math"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// tall returns a layer with many more outputs than a sample, with its passes.
func tall(t *testing.T, passes ...pass.Choice) *pass.Layer {
	t.Helper()
	dir := testmodel.Folder(t, testmodel.Config(t, "llama-tiny", `{"intermediate_size": 2048, "num_hidden_layers": 1}`), synth.Options{Seed: 3})
	m := testmodel.Open(t, dir)
	model := modelOf(t, m, testmodel.HessiansOf(t, m), passes...)
	w, _ := model.Weights.Weight("model.layers.0.mlp.gate_proj.weight")
	l, err := pass.NewLayer(t.Context(), model.Context, model.Compiler, w, nil)
	testmodel.OK(t, err)
	return l
}

// TestSampledCurve: some rows of a large layer give about the curve of all rows.
func TestSampledCurve(t *testing.T) {
	passes := []pass.Choice{{Pass: pass.Trellis}, {Pass: pass.Compensate}}
	l := tall(t, passes...)
	all, err := pointsOf(t.Context(), l, passes, pass.Lambdas())
	testmodel.OK(t, err)
	for _, from := range []int{l.Rows()*l.Cols() + 1, l.Rows() * l.Cols()} {
		l.SampleFrom = from
		some, err := pointsOf(t.Context(), l, passes, pass.Lambdas())
		testmodel.OK(t, err)
		if len(some) != len(all) || len(all) != 3*len(pass.Lambdas()) {
			t.Fatalf("%d points of some rows, %d of all", len(some), len(all))
		}
		differ := false
		for i, p := range some {
			want := all[i]
			differ = differ || p.Error != want.Error
			if p.Lambda != want.Lambda || math.Abs(p.Error-want.Error) > 0.1*want.Error || math.Abs(p.Energy-want.Energy) > 0.003 {
				t.Errorf("from %d weights on, lambda %g: error %g and energy %g; with all rows %g and %g",
					from, p.Lambda, p.Error, p.Energy, want.Error, want.Energy)
			}
		}
		if sampled := from == l.Rows()*l.Cols(); differ != sampled {
			t.Errorf("from %d weights on, errors differ from the errors with all rows: %v", from, differ)
		}
	}
	// Afterwards the layer has all rows again.
	p, err := l.Program(t.Context(), all[0].Steps...)
	testmodel.OK(t, err)
	testmodel.OK(t, p.Prepare(t.Context(), 2))
	loss, err := heldLoss(t.Context(), l, p)
	testmodel.OK(t, err)
	if got := relative(loss); math.Abs(got-all[0].Error) > 1e-6*got {
		t.Errorf("the whole layer's error is %g, was %g", got, all[0].Error)
	}
}

// TestSampledRowsAreThoseOfTheLayer: a sample's rows get the same values as in the whole layer, if values of a row do
// not depend on other rows. This includes grids of single outputs, masks and zeroed outputs.
func TestSampledRowsAreThoseOfTheLayer(t *testing.T) {
	for name, passes := range map[string][]pass.Choice{
		"round":    {{Pass: pass.Round, Args: []string{"3"}}, {Pass: pass.Compensate, Args: []string{"0.01"}}},
		"grid":     {{Pass: pass.Grid, Args: []string{"4"}}, {Pass: pass.Compensate, Args: []string{"0.01"}}},
		"sparsify": {{Pass: pass.Sparsify, Args: []string{"0.3"}}, {Pass: pass.Compensate, Args: []string{"0.01"}}},
	} {
		l := tall(t, passes...)
		combinations, err := combine(t.Context(), l, passes)
		testmodel.OK(t, err)
		steps := combinations[len(combinations)-1]
		if len(steps) < 2 {
			t.Fatalf("%s: steps %v", name, steps)
		}
		bands := program.Bands(cost.SampleRows(l.Rows(), l.Cols(), 1))
		if len(bands) < 2 {
			t.Fatalf("%s: one band", name)
		}
		var data [2][]byte
		for i := range data {
			p, err := l.Program(t.Context(), steps...)
			testmodel.OK(t, err)
			if !p.HoldsResult() {
				t.Fatalf("%s: values are not chosen together", name)
			}
			if i == 1 {
				some, err := l.Base().FittedOf(t.Context(), bands, l.Hessians, 2)
				testmodel.OK(t, err)
				p.Use(some)
			}
			testmodel.OK(t, p.Prepare(t.Context(), 2))
			for _, r := range bands {
				rows := make([]byte, (r[1]-r[0])*p.RowBytes())
				p.Run(rows, r[0], r[1]-r[0])
				data[i] = append(data[i], rows...)
			}
		}
		if string(data[0]) != string(data[1]) {
			t.Errorf("%s: rows of the sample have other values than in the whole layer", name)
		}
	}
}
