package predict_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/gemm/operand"
	"github.com/lowtoggle/lowtoggle/gemm/predict"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
)

// asked is a call of a predictor, with the whole operands.
type asked struct {
	cost.Product
	x, w []byte
}

// recorder is a predictor that records its calls, and predicts 1 for everything.
type recorder []asked

func (r *recorder) Predict(ctx context.Context, p cost.Product, x, w cost.Operand) (cost.Prediction, error) {
	a, errX := x(ctx, 0, p.M, 0, p.K)
	b, errW := w(ctx, 0, p.N, 0, p.K)
	*r = append(*r, asked{p, a, b})
	return cost.Prediction{Relative: 1, Interval: [2]float64{0.9, 1.1}, RelativeTime: 1, Scale: 3}, errors.Join(errX, errW)
}

// TestPredictsWhatIsMeasured: a predictor is asked about the very products that a card would multiply, by
// all sources, one after the other.
func TestPredictsWhatIsMeasured(t *testing.T) {
	m := testmodel.Random(t, "llama-tiny", 1)
	for name, c := range map[string]struct {
		sources []operand.Source
		o       predict.Options
	}{
		"patterns": {[]operand.Source{operand.MustParse("normal(0,0.02)"), operand.MustParse("zeros")}, predict.Options{Operands: operand.Options{N: 48, K: 16, Streaming: true}, Cold: true}},
		"a model":  {[]operand.Source{operand.Of(m), operand.MustParse("const(1) | flip(1%)")}, predict.Options{Operands: operand.Options{Type: arith.FP8}}},
	} {
		c.o.Operands.Tokens, c.o.Operands.Seed, c.o.Compare = 7, 5, true
		set := operand.NewSet(c.o.Operands)
		products, err := set.Products(t.Context(), c.sources...)
		if err != nil {
			t.Fatal(err)
		}
		var heard recorder
		events := 0
		c.o.Progress = func(e predict.Event) {
			if events++; e.Stage != "predict" || e.Done != int64(events) || e.Total != int64(len(products[0])*len(products)) {
				t.Errorf("%s: %+v", name, e)
			}
		}
		r, err := predict.Sources(t.Context(), &heard, c.sources, c.o)
		if err != nil {
			t.Fatal(err)
		}
		role := cost.Stationary
		if c.o.Operands.Streaming {
			role = cost.Streaming
		}
		i := 0
		for s, of := range products {
			if have := r.Predictions[s]; have.Count != len(of) || have.Name != c.sources[s].Text || have.Cold != c.o.Cold || have.X != "normal(0,1)" || (have.Over != nil) != (s > 0) {
				t.Errorf("%s: %+v", name, have)
			}
			for j, p := range of {
				if i == len(heard) {
					t.Fatalf("%s: %d products were predicted", name, i)
				}
				x, w, err := p.Whole(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				have, want := heard[i], cost.Product{Type: p.Problem.Type, M: p.Problem.M, N: p.Problem.N, K: p.Problem.K, Role: role, Cold: c.o.Cold}
				if have.Product != want || !bytes.Equal(have.x, x.Data) || !bytes.Equal(have.w, w.Data) {
					t.Errorf("%s: %s: %+v is not %+v", name, p.Layer, have.Product, want)
				}
				if l := r.Predictions[s].Layers[j]; l.Layer != p.Layer || l.Problem != p.Problem {
					t.Errorf("%s: layer %+v is %s", name, l, p.Layer)
				}
				i++
			}
		}
		if i != len(heard) || events != i {
			t.Errorf("%s: %d products, %d predicted, %d events", name, i, len(heard), events)
		}
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestModels: a copy of a model has the same predicted energy as the model.
func TestModels(t *testing.T) {
	h200, err := cost.FindCalibration("h200")
	if err != nil {
		t.Fatal(err)
	}
	r, err := predict.Models(t.Context(), h200, testmodel.Random(t, "llama-tiny", 1), testmodel.Random(t, "llama-tiny", 1), predict.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if over := r.Predictions[1].Over; len(r.Predictions) != 2 || over == nil || over.Relative != 1 || over.Interval != [2]float64{1, 1} {
		t.Errorf("%+v", over)
	}
}

// TestSameInterval: the ratio of two models has the interval of a conversion from one to the other, up to what is sampled, also
// where some layers change far less than others.
func TestSameInterval(t *testing.T) {
	h200, err := cost.FindCalibration("h200")
	testmodel.OK(t, err)
	m := testmodel.Random(t, "llama-tiny", 1)
	dir := t.TempDir()
	testmodel.OK(t, os.CopyFS(dir, os.DirFS(m.Dir)))
	testmodel.Alter(t, dir, func(infos []weights.Info, data map[string][]byte) []weights.Info {
		for name := range data {
			if strings.Contains(name, "mlp.up_proj") {
				data[name] = make([]byte, len(data[name]))
			}
		}
		return infos
	})
	after := testmodel.Open(t, dir)
	r, err := predict.Models(t.Context(), h200, m, after, predict.Options{Operands: operand.Options{Tokens: cost.PrefillTokens}})
	testmodel.OK(t, err)
	var changes []predict.Change
	for _, l := range r.Predictions[1].Layers {
		before, _ := m.Tensor(l.Layer)
		changed, ok := after.Tensor(l.Layer)
		if !ok {
			t.Fatalf("no layer %s", l.Layer)
		}
		changes = append(changes, predict.Change{Before: before, After: changed})
	}
	want, err := predict.Conversion(t.Context(), h200, changes, predict.ConversionOptions{Workload: cost.DefaultWorkload})
	testmodel.OK(t, err)
	have := r.Predictions[1].Over
	width := func(r *predict.Ratio) float64 { return r.Interval[1] - r.Interval[0] }
	if math.Abs(have.Relative-want.Relative) > 0.005 || math.Abs(width(have)/width(want)-1) > 0.1 || want.Relative > 0.99 {
		t.Errorf("%+v, and as a conversion %+v", have, want)
	}
}

// TestNotComparable: sources with other products have no ratio, and are predicted each by itself.
func TestNotComparable(t *testing.T) {
	dir := testmodel.Random(t, "llama-tiny", 1).Dir
	sources := []operand.Source{operand.MustParse(dir + ":"), operand.MustParse(dir + ":*up_proj.weight")}
	if _, err := predict.Sources(t.Context(), &recorder{}, sources, predict.Options{Compare: true}); !errors.Is(err, predict.ErrNotComparable) || !strings.Contains(err.Error(), "has 15 layers and "+dir+":*up_proj.weight has 2: ") {
		t.Error(err)
	}
	sources = []operand.Source{operand.MustParse(dir + ":lm_head.weight"), operand.MustParse(dir + ":model.layers.0.mlp.up_proj.weight")}
	if _, err := predict.Sources(t.Context(), &recorder{}, sources, predict.Options{Compare: true}); !errors.Is(err, predict.ErrNotComparable) {
		t.Error(err)
	}
	r, err := predict.Sources(t.Context(), &recorder{}, sources, predict.Options{Operands: operand.Options{Tokens: 4}})
	if err != nil || len(r.Predictions) != 2 || r.Predictions[1].Over != nil {
		t.Errorf("%+v (%v)", r, err)
	}
}

// interrupter is a predictor that is interrupted in the first product.
type interrupter context.CancelFunc

func (i interrupter) Predict(ctx context.Context, _ cost.Product, _, _ cost.Operand) (cost.Prediction, error) {
	i()
	return cost.Prediction{}, fmt.Errorf("in the middle: %w", ctx.Err())
}

// TestInterrupted: the error of an interrupt does not name the current layer.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	o := predict.Options{Operands: operand.Options{Tokens: 8, N: 8, K: 8}}
	if _, err := predict.Sources(ctx, interrupter(cancel), []operand.Source{operand.MustParse("zeros")}, o); err != context.Canceled {
		t.Error(err)
	}
}

// TestWarnings: each warning occurs once, and names its sources unless it applies to all.
func TestWarnings(t *testing.T) {
	r := predict.Report{Predictions: []predict.Prediction{
		{Name: "a", Prediction: cost.Prediction{Warnings: []string{"all", "some"}}},
		{Name: "b", Prediction: cost.Prediction{Warnings: []string{"all"}}},
		{Name: "c", Prediction: cost.Prediction{Warnings: []string{"some", "all"}}},
	}}
	if have := strings.Join(r.Warnings(), "; "); have != "all; a, c: some" {
		t.Error(have)
	}
}

// TestConversion: a layer that was not changed saves nothing, and doubled weights show no saving of their
// own scale.
func TestConversion(t *testing.T) {
	h200, err := cost.FindCalibration("h200")
	if err != nil {
		t.Fatal(err)
	}
	m := testmodel.Random(t, "llama-tiny", 1)
	w, _ := m.Tensor("lm_head.weight")
	var events []predict.Event
	o := predict.ConversionOptions{Workload: cost.DefaultWorkload, Progress: func(e predict.Event) { events = append(events, e) }}
	r, err := predict.Conversion(t.Context(), h200, []predict.Change{{Before: w, After: w}, {Before: w, After: w, Rescaled: true}}, o)
	if err != nil || r.Relative != 1 || len(events) != 2 || events[1] != (predict.Event{Stage: "energy", Done: 2 * w.Size(), Total: 2 * w.Size()}) {
		t.Errorf("%+v, events %+v (%v)", r, events, err)
	}
	zeros := w
	zeros.Data = make([]byte, len(w.Data))
	if r, err = predict.Conversion(t.Context(), h200, []predict.Change{{Before: w, After: zeros, Rescaled: true}}, o); err != nil || r.Relative > 0.95 {
		t.Errorf("zeros: %+v (%v)", r, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err = predict.Conversion(ended, h200, []predict.Change{{Before: w, After: w}}, o); r != nil || err != context.Canceled {
		t.Errorf("interrupted: %+v (%v)", r, err)
	}
	if r, err = predict.Conversion(t.Context(), h200, nil, o); r != nil || err != nil {
		t.Errorf("no layers: %+v (%v)", r, err)
	}
}

// TestUnusableModels: closed models, empty models and no sources are errors.
func TestUnusableModels(t *testing.T) {
	h200, err := cost.FindCalibration("h200")
	testmodel.OK(t, err)
	open := testmodel.Random(t, "llama-tiny", 1)
	closed := testmodel.Open(t, open.Dir)
	testmodel.OK(t, closed.Close())
	for _, bad := range []struct {
		m    *weights.Model
		want string
	}{{closed, "the model is closed"}, {&weights.Model{}, "the model has no files"}, {nil, "no model was given"}} {
		_, err := predict.Models(t.Context(), h200, open, bad.m, predict.Options{})
		testmodel.WantError(t, err, bad.want)
		_, err = predict.Models(t.Context(), h200, bad.m, open, predict.Options{})
		testmodel.WantError(t, err, bad.want)
	}
	_, err = predict.Sources(t.Context(), h200, []operand.Source{operand.Of(closed)}, predict.Options{})
	testmodel.WantError(t, err, "the model is closed")
	_, err = predict.Sources(t.Context(), h200, nil, predict.Options{})
	testmodel.WantError(t, err, "a prediction needs sources")
}
