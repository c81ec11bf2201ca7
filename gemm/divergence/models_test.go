package divergence_test

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/divergence"
	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
)

// model is a decoder with its weights and tokens.
type model struct {
	*forward.Decoder
	stored forward.Weights
	tokens [][]int32
}

// trained returns the demo model with the first of its calibration's sequences, each cut short.
func trained(t testing.TB, sequences, length int) model {
	t.Helper()
	m, calibration, _ := testmodel.Trained(t)
	few := slices.Clone(calibration.Sequences[:sequences])
	for i := range few {
		few[i] = few[i][:min(length, len(few[i]))]
	}
	return modelOf(t, m, few)
}

// tied returns a small random GPT-2, whose head is its embedding.
func tied(t testing.TB) model {
	t.Helper()
	return modelOf(t, testmodel.Random(t, "gpt2-tiny", 1), [][]int32{{1, 2, 3, 4, 5, 6, 7}, {9, 8, 7, 6}})
}

func modelOf(t testing.TB, m *weights.Model, tokens [][]int32) model {
	return model{testmodel.Decoder(t, m), forward.Stored(m), tokens}
}

func (m model) evaluator(t testing.TB) *divergence.Evaluator {
	t.Helper()
	e, err := divergence.New(context.Background(), m.Decoder, m.stored, m.tokens, divergence.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func (m model) names() []string {
	var names []string
	for _, l := range m.Layers() {
		names = append(names, l.Tensor)
	}
	return names
}

// source is Weights as a function.
type source func(ctx context.Context, name string) ([]float32, error)

func (s source) Tensor(ctx context.Context, name string) ([]float32, error) { return s(ctx, name) }

// grid rounds all tensors to multiples of a step.
func grid(w divergence.Weights, step float64) source {
	return func(ctx context.Context, name string) ([]float32, error) {
		values, err := w.Tensor(ctx, name)
		for i, v := range values {
			values[i] = float32(math.Round(float64(v)/step) * step)
		}
		return values, err
	}
}

// only leaves out all tensors but these.
func only(w divergence.Weights, names ...string) source {
	return func(ctx context.Context, name string) ([]float32, error) {
		if !slices.Contains(names, name) {
			return nil, nil
		}
		return w.Tensor(ctx, name)
	}
}

// first takes a tensor from the first that does not leave it out.
func first(all ...divergence.Weights) source {
	return func(ctx context.Context, name string) ([]float32, error) {
		for _, w := range all {
			if values, err := w.Tensor(ctx, name); values != nil || err != nil {
				return values, err
			}
		}
		return nil, nil
	}
}

// result holds the values that PerLayer reports for a layer.
type result struct {
	Layer string
	Nats  float64
}

func perLayer(t testing.TB, e *divergence.Evaluator, base, changed divergence.Weights) []result {
	t.Helper()
	var all []result
	err := e.PerLayer(context.Background(), base, changed, func(layer string, nats float64) error {
		all = append(all, result{layer, nats})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// wholeModel returns only the divergence.
func wholeModel(t testing.TB, e *divergence.Evaluator, changed divergence.Weights) float64 {
	t.Helper()
	divergence, _, _, err := e.WholeModel(context.Background(), changed)
	if err != nil {
		t.Fatal(err)
	}
	return divergence
}
