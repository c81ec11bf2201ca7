package search

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// distances is an evaluator: every layer diverges by a tenth of its relative squared error.
type distances struct {
	t      *testing.T
	model  *weights.Model
	layers int // number of single layers that were measured
}

func (d *distances) each(ctx context.Context, changed Values, fn func(layer string, nats float64) error) (err error) {
	testmodel.EachLinear(d.t, d.model, func(x weights.Tensor, _ int) {
		v, failed := changed.Tensor(ctx, x.Name)
		if err = errors.Join(err, failed); err != nil || v == nil {
			return
		}
		var lost, all float64
		for i, w := range testmodel.Values(x) {
			lost, all = lost+math.Pow(w-float64(v[i]), 2), all+w*w
		}
		err = fn(x.Name, lost/all/10)
	})
	return err
}

func (d *distances) PerLayer(ctx context.Context, _, changed Values, done func(string, float64) error) error {
	return d.each(ctx, changed, func(layer string, nats float64) error {
		d.layers++
		return done(layer, nats)
	})
}

func (d *distances) WholeModel(ctx context.Context, changed Values) (sum, _ float64, interval [2]float64, err error) {
	err = d.each(ctx, changed, func(_ string, nats float64) error {
		sum += nats
		return nil
	})
	return sum, sum, [2]float64{math.NaN(), math.NaN()}, err
}

// TestLeastSensitivity: a layer that does not affect the outputs gets a ten-thousandth of the mean sensitivity.
func TestLeastSensitivity(t *testing.T) {
	m := testmodel.Open(t, testmodel.Folder(t, testmodel.Config(t, "llama-tiny", `{"num_hidden_layers": 1}`), synth.Options{Seed: 3}))
	model := modelOf(t, m, testmodel.HessiansOf(t, m), pass.Choice{Pass: pass.Round})
	s := &search{m: model, opt: Options{Evaluator: &distances{t: t, model: m}, Record: Folder{t.TempDir(), "key"}}, index: map[string]int{}}
	var all []int
	mean := 0.0
	for i, c := range model.Linears() {
		w, _ := model.Weights.Weight(c.Name)
		l, err := pass.NewLayer(t.Context(), model.Context, model.Compiler, w, nil)
		testmodel.OK(t, err)
		s.layers, all, s.index[c.Name] = append(s.layers, l), append(all, i), i
		s.curves = append(s.curves, curve{{Error: probe}})
		recorded := float64(i) // the first layer has no effect
		mean += recorded / float64(len(model.Linears()))
		testmodel.OK(t, s.opt.Record.Save(sensitivityName(c.Name), recorded))
	}
	testmodel.OK(t, s.sensitivities(t.Context(), all))
	for i, have := range s.sensitivity {
		want := float64(i)
		if i == 0 {
			want = mean / 10_000
		}
		if math.Abs(have-want) > 1e-12*want {
			t.Errorf("layer %d: sensitivity %g, want %g", i, have, want)
		}
	}
}

// TestMeasureInParts: after the parts of a search have measured all layers, in any order, the search measures nothing again and
// decides as a search alone. Until then it says how many layers are missing.
func TestMeasureInParts(t *testing.T) {
	m := testmodel.Open(t, testmodel.Folder(t, testmodel.Config(t, "llama-tiny", `{"num_hidden_layers": 1}`), synth.Options{Seed: 3}))
	lossy := []pass.Choice{{Pass: pass.Trellis}, {Pass: pass.Compensate, Args: []string{"0.01"}}}
	model := modelOf(t, m, testmodel.HessiansOf(t, m), lossy...)
	most := 0.01
	model.Budget.MaxLoss = &most
	layers := func() (list []*pass.Layer) {
		for _, c := range model.Linears() {
			w, _ := model.Weights.Weight(c.Name)
			l, err := pass.NewLayer(t.Context(), model.Context, model.Compiler, w, nil)
			testmodel.OK(t, err)
			list = append(list, l)
		}
		return list
	}
	all := len(layers())
	alone := &distances{t: t, model: m}
	steps, found, err := Spend(t.Context(), model, layers(), lossy, Options{Evaluator: alone})
	testmodel.OK(t, err)
	if alone.layers != all || found.Best() == nil || len(found.Frontier) == 0 {
		t.Fatalf("%d of %d layers were measured, and the search found %+v", alone.layers, all, found)
	}
	o := Options{Record: Folder{t.TempDir(), "key"}}
	spend := func(e *distances) ([][]*plan.Step, *plan.Search, error) {
		spent := o
		spent.Evaluator, spent.Measured = e, true
		return Spend(t.Context(), model, layers(), lossy, spent)
	}
	parts := [][]int{nil, nil, nil}
	for i := range all {
		n := (i + 2) % len(parts)
		parts[n] = append(parts[n], i)
	}
	measured := 0
	for _, places := range parts {
		_, _, err := spend(&distances{t: t, model: m})
		if !errors.Is(err, ErrUnmeasured) || !strings.Contains(err.Error(), unmeasured(all-measured, all).Error()) {
			t.Fatalf("with %d of %d layers measured: %v", measured, all, err)
		}
		for _, want := range []int{len(places), 0} { // the second time, there is nothing left to measure
			e := &distances{t: t, model: m}
			o.Evaluator = e
			testmodel.OK(t, Measure(t.Context(), model, layers(), lossy, o, places))
			if e.layers != want {
				t.Fatalf("a part measured %d layers, want %d", e.layers, want)
			}
		}
		measured += len(places)
	}
	e := &distances{t: t, model: m}
	again, same, err := spend(e)
	testmodel.OK(t, err)
	want, err := json.Marshal(steps)
	testmodel.OK(t, err)
	if got, err := json.Marshal(again); err != nil || string(got) != string(want) || e.layers != 0 {
		t.Errorf("%d layers were measured again, and the steps are\n%s\nnot\n%s (%v)", e.layers, got, want, err)
	}
	if diff := cmp.Diff(found, same); diff != "" {
		t.Errorf("(-alone +in parts)\n%s", diff)
	}
	o.Record = nil
	if err := Measure(t.Context(), model, layers(), lossy, o, []int{0}); err == nil {
		t.Error("measurements are lost without a record")
	}
}
