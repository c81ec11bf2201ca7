package divergence_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/divergence"
)

var errBroken = errors.New("broken")

// broken fails for one tensor.
func broken(w divergence.Weights, at string) source {
	return func(ctx context.Context, name string) ([]float32, error) {
		if name == at {
			return nil, errBroken
		}
		return w.Tensor(ctx, name)
	}
}

func TestErrorsOfWeightsPassThrough(t *testing.T) {
	m := tied(t)
	ctx, names := context.Background(), m.names()
	last := names[len(names)-1]
	ignore := func(string, float64) error { return nil }
	_, err := divergence.New(ctx, m.Decoder, broken(m.stored, last), m.tokens, divergence.Options{})
	if !errors.Is(err, errBroken) {
		t.Errorf("New: error %v, want the one of the model's weights", err)
	}
	e := m.evaluator(t)
	for _, at := range []string{names[0], names[3], last} {
		w := broken(m.stored, at)
		before := 0
		err := e.PerLayer(ctx, nil, w, func(layer string, _ float64) error {
			if layer != names[before] {
				t.Errorf("%s was evaluated, want %s", layer, names[before])
			}
			before++
			return nil
		})
		if !errors.Is(err, errBroken) || before == len(names) || names[before] != at {
			t.Errorf("changed fails at %s: error %v behind %d layers", at, err, before)
		}
		if err := e.PerLayer(ctx, w, m.stored, ignore); !errors.Is(err, errBroken) {
			t.Errorf("base fails at %s: error %v", at, err)
		}
		if _, _, _, err := e.WholeModel(ctx, w); !errors.Is(err, errBroken) {
			t.Errorf("WholeModel, %s fails: error %v", at, err)
		}
	}
}

func TestErrorOfDoneEndsIt(t *testing.T) {
	m := tied(t)
	calls := 0
	err := m.evaluator(t).PerLayer(context.Background(), nil, m.stored, func(string, float64) error {
		calls++
		if calls == 3 {
			return errBroken
		}
		return nil
	})
	if err != errBroken || calls != 3 {
		t.Errorf("error %v behind %d calls, want done's own behind 3", err, calls)
	}
}

func TestErrorsNameTheLayer(t *testing.T) {
	m := tied(t)
	e, name := m.evaluator(t), m.names()[2]
	infinite := make([]float32, m.Layers()[2].Inputs*m.Layers()[2].Outputs)
	infinite[0] = float32(math.Inf(1))
	for want, values := range map[string][]float32{"values were given": {1}, "not finite": infinite} {
		w := source(func(_ context.Context, at string) ([]float32, error) {
			if at == name {
				return values, nil
			}
			return nil, nil
		})
		err := e.PerLayer(context.Background(), nil, w, func(layer string, nats float64) error {
			t.Errorf("%s diverges by %v", layer, nats)
			return nil
		})
		if err == nil || !strings.Contains(err.Error(), "with new values of "+name+": ") || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q that names %s", err, want, name)
		}
	}
}

func TestTokensMustBeTheModels(t *testing.T) {
	m := tied(t)
	_, err := divergence.New(context.Background(), m.Decoder, m.stored, [][]int32{{1, 1 << 20}}, divergence.Options{})
	if err == nil || !strings.Contains(err.Error(), "outside the vocabulary") {
		t.Errorf("error %v, want one about the vocabulary", err)
	}
}

func TestContextEndsIt(t *testing.T) {
	m := tied(t)
	e := m.evaluator(t)
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	never := func(layer string, _ float64) error {
		t.Errorf("%s was evaluated", layer)
		return nil
	}
	leaveOut := source(func(context.Context, string) ([]float32, error) { return nil, nil })
	for name, changed := range map[string]divergence.Weights{"all": m.stored, "none": leaveOut} {
		if err := e.PerLayer(gone, nil, changed, never); !errors.Is(err, context.Canceled) {
			t.Errorf("PerLayer of %s: error %v", name, err)
		}
	}
	if _, _, _, err := e.WholeModel(gone, leaveOut); !errors.Is(err, context.Canceled) {
		t.Errorf("WholeModel: error %v", err)
	}
	if _, err := divergence.New(gone, m.Decoder, m.stored, m.tokens, divergence.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("New: error %v", err)
	}

	half, cancel := context.WithCancel(context.Background())
	calls := 0
	err := e.PerLayer(half, nil, m.stored, func(string, float64) error {
		calls++
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) || calls != 1 {
		t.Errorf("error %v behind %d layers, want the context's behind 1", err, calls)
	}
}
