package forward_test

import (
	"context"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// fields are changes to a config.json; nil takes a field out.
type fields map[string]any

// synthetic writes a small random model: a named configuration with changes.
func synthetic(t testing.TB, name string, changes fields) (dir string) {
	t.Helper()
	config, err := synth.Config(name)
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]any
	if err := json.Unmarshal(config, &all); err != nil {
		t.Fatal(err)
	}
	maps.Copy(all, changes)
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil })
	if config, err = json.Marshal(all); err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(t.TempDir(), "model")
	if err := synth.Folder(context.Background(), config, dir, synth.Options{Seed: 1}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// model returns a small random one, ready to run.
func model(t testing.TB, name string, changes fields) (*weights.Model, *forward.Decoder) {
	t.Helper()
	return open(t, synthetic(t, name, changes))
}

// sequences draws tokens below vocab.
func sequences(vocab int, lengths ...int) [][]int32 {
	r := rand.New(rand.NewPCG(7, 7))
	all := make([][]int32, len(lengths))
	for i, n := range lengths {
		for range n {
			all[i] = append(all[i], int32(r.IntN(vocab)))
		}
	}
	return all
}

func run(t testing.TB, d *forward.Decoder, w forward.Weights, tokens [][]int32) *forward.Scores {
	t.Helper()
	s, err := d.Run(context.Background(), w, tokens, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// end returns the state behind the last block.
func end(t testing.TB, d *forward.Decoder, w forward.Weights, tokens [][]int32) *forward.State {
	t.Helper()
	s, err := d.Start(context.Background(), w, tokens)
	if err != nil {
		t.Fatal(err)
	}
	for i := range d.Blocks() {
		if err := d.Block(context.Background(), i, w, s, nil); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// pass runs the whole model, and keeps the results that keep selects.
func pass(t testing.TB, d *forward.Decoder, w forward.Weights, tokens [][]int32, keep forward.Keep) *forward.Result {
	t.Helper()
	r, err := d.Pass(context.Background(), w, tokens, forward.PassOptions{Keep: keep})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// changed is a Weights with one scaled tensor, to find the results that depend on the tensor.
type changed struct {
	forward.Weights
	name   string
	factor float32
}

func (c changed) Tensor(ctx context.Context, name string) ([]float32, error) {
	v, err := c.Weights.Tensor(ctx, name)
	if name == c.name {
		for i := range v {
			v[i] *= c.factor
		}
	}
	return v, err
}
