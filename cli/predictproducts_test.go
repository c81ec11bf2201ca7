package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/pattern"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/weights"
)

// asked is what a model was asked to predict, with the whole operands.
type asked struct {
	cost.Product
	x, w []byte
}

// recorder is a model that takes down what it is asked, and predicts 1 for everything.
type recorder []asked

func (r *recorder) Predict(ctx context.Context, p cost.Product, x, w cost.Operand) (cost.Prediction, error) {
	a, errX := x(ctx, 0, p.M, 0, p.K)
	b, errW := w(ctx, 0, p.N, 0, p.K)
	*r = append(*r, asked{p, a, b})
	return cost.Prediction{Relative: 1, Interval: [2]float64{0.9, 1.1}, RelativeTime: 1}, errors.Join(errX, errW)
}

func quiet(transform.Event) {}

// writeTensors puts a model with the given tensors, of normal deviates, into a file.
func writeTensors(t *testing.T, infos ...weights.Info) string {
	t.Helper()
	head, placed, err := weights.EncodeHeader(infos, nil)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "m.safetensors")
	f, err := weights.Create(path, head, placed[len(placed)-1].End)
	if err != nil {
		t.Fatal(err)
	}
	for i, info := range placed {
		rows, cols := info.Matrix()
		data, err := pattern.MustParse("normal(0,0.02)").Generate(t.Context(), pattern.Spec{DType: info.DType, Rows: rows, Cols: cols, Seed: uint64(i)}, 1)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestPredictsWhatIsMeasured: a model is asked about the very products that measure puts on a card.
func TestPredictsWhatIsMeasured(t *testing.T) {
	path := writeTensors(t, weights.Info{Name: "a", DType: weights.BF16, Shape: []int{24, 16}},
		weights.Info{Name: "b", DType: weights.BF16, Shape: []int{40, 16}}, weights.Info{Name: "acts", DType: weights.F32, Shape: []int{9, 16}})
	for _, c := range []struct {
		w, x    string
		against []string
		dtype   gemm.Type
		role    cost.Role
	}{
		{w: "normal(0,0.02)", against: []string{"zeros", "normal(0,0.02) | sort(50%)"}},
		{w: "normal(0,1)", x: "normal(0,1) | sort", against: []string{"const(1) | flip(1%)"}, dtype: gemm.FP8, role: cost.Streaming},
		{w: path + ":a", x: path + ":acts", against: []string{"tensor(" + path + ":a) | round(4)", "zeros"}},
		{w: path + ":[ab]", against: []string{path + ":", "normal(0,0.02) | transpose | sparse(50%)"}, dtype: gemm.FP8},
		{w: path + ":[ab]", against: []string{"normal(0,0.02) | sort(by=columns)"}, dtype: gemm.INT8},
		{w: path + ":b", against: []string{"uniform(-1,1)"}, dtype: gemm.FP16CUDA},
	} {
		o := operands{seed: 5, dtype: c.dtype, models: map[string]*weights.Model{}, drawn: map[shape]gemm.Matrix{}}
		o.role = c.role
		if c.x != "" {
			o.x = parsed(t, c.x)
		}
		q := request{operands: o, w: parsed(t, c.w), m: 7}
		var model recorder
		f := forecast{operands: o, model: &model, sources: []source{q.w}, compared: true, m: 7, cold: true}
		for _, text := range c.against {
			q.against = append(q.against, parsed(t, text))
		}
		f.sources = append(f.sources, q.against...)
		if q.w.path == "" {
			q.shape = &gemm.Problem{M: 7, N: 48, K: 16, Type: c.dtype}
			if c.dtype == 0 {
				q.shape.Type = gemm.BF16
			}
			f.shape = q.shape
		}
		machine, err := openMachine("simulated", 0)
		if err != nil {
			t.Fatal(err)
		}
		baseline, variants, err := q.candidates(t.Context(), machine)
		if err != nil {
			t.Fatal(err)
		}
		r, err := f.predict(t.Context(), quiet)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Predictions) != 1+len(c.against) {
			t.Errorf("%s: %d predictions", c.w, len(r.Predictions))
		}
		i := 0
		for _, candidate := range append([]measure.Candidate{baseline}, variants...) {
			for _, p := range candidate.Products {
				if i == len(model) {
					t.Fatalf("%s: %d products were predicted", c.w, i)
				}
				have := model[i]
				want := cost.Product{Type: p.Problem.Type.String(), M: p.Problem.M, N: p.Problem.N, K: p.Problem.K, Role: c.role, Cold: true}
				if have.Product != want || !bytes.Equal(have.x, p.X.Data) || !bytes.Equal(have.w, p.W.Data) {
					t.Errorf("%s: %s: %+v is not %+v", candidate.Name, p.Name, have.Product, want)
				}
				i++
			}
		}
		if i != len(model) {
			t.Errorf("%s: %d products were measured, and %d predicted", c.w, i, len(model))
		}
		if err := errors.Join(o.Close(), machine.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// interrupter is a model that is interrupted in the first product.
type interrupter context.CancelFunc

func (i interrupter) Predict(ctx context.Context, _ cost.Product, _, _ cost.Operand) (cost.Prediction, error) {
	i()
	return cost.Prediction{}, fmt.Errorf("in the middle: %w", ctx.Err())
}

// TestPredictInterrupted: an interrupt is not the fault of the layer that it came in.
func TestPredictInterrupted(t *testing.T) {
	for name, predict := range map[string]func(context.Context, *forecast) error{
		"predict": func(ctx context.Context, f *forecast) error {
			_, err := f.predict(ctx, quiet)
			return err
		},
		"sweep": func(ctx context.Context, f *forecast) error {
			_, err := f.works(&cli.Context{Context: ctx}, nil, quiet)
			return err
		},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		f := forecast{model: interrupter(cancel), sources: []source{parsed(t, "zeros")}, m: 8, shape: &gemm.Problem{M: 8, N: 8, K: 8, Type: gemm.BF16}}
		if err := predict(ctx, &f); err != context.Canceled {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func parsed(t *testing.T, text string) source {
	t.Helper()
	s, err := parseSource(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
