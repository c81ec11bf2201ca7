package divergence_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowtoggle/lowtoggle/gemm/divergence"
	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/internal/tally"
)

// TestFromPassHasTheBitsOfNew: FromPass gives the results of New without another pass, whatever results the pass kept.
func TestFromPassHasTheBitsOfNew(t *testing.T) {
	m := trained(t, 3, 24)
	ctx, coarse, few := context.Background(), grid(m.stored, 1./16), 2
	first := m
	first.tokens = m.tokens[:few]
	wantLayers, wantAll := perLayer(t, first.evaluator(t), nil, coarse), wholeModel(t, m.evaluator(t), coarse)
	for name, keep := range map[string]forward.Keep{"everything": {Entries: few}, "logits": {}, "nothing": {Entries: few, Bytes: -1}} {
		r, err := m.Pass(ctx, m.stored, m.tokens, forward.PassOptions{Keep: keep})
		if err != nil {
			t.Fatal(err)
		}
		e := divergence.FromPass(m.Decoder, m.stored, r, divergence.Options{PerLayer: few})
		if diff := cmp.Diff(wantLayers, perLayer(t, e, nil, coarse)); diff != "" {
			t.Errorf("%s kept: per layer (-New +FromPass)\n%s", name, diff)
		}
		if got := wholeModel(t, e, coarse); got != wantAll {
			t.Errorf("%s kept: the whole model diverges by %v, want %v", name, got, wantAll)
		}
		if e.Loss() != r.Scores.Loss() {
			t.Errorf("%s kept: loss %v, want %v", name, e.Loss(), r.Scores.Loss())
		}
	}
}

// TestOneOwnPass: the model's own weights run once for all comparisons.
func TestOneOwnPass(t *testing.T) {
	m := trained(t, 2, 16)
	var counts tally.Tally
	ctx := tally.With(t.Context(), &counts)
	asked := 0
	layer := m.names()[0] // of the first block: every pass reads this layer
	own := source(func(ctx context.Context, name string) ([]float32, error) {
		if name == layer {
			asked++
		}
		return m.stored.Tensor(ctx, name)
	})
	e, err := divergence.New(ctx, m.Decoder, own, m.tokens, divergence.Options{})
	if err != nil {
		t.Fatal(err)
	}
	coarse := grid(m.stored, 1./16)
	if err := e.PerLayer(ctx, nil, only(coarse, m.names()[20]), func(string, float64) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := e.WholeModel(ctx, coarse); err != nil {
		t.Fatal(err)
	}
	if n := counts.Counts()["forward.Pass"]; n != 1 || asked != 1 {
		t.Errorf("%d passes, and the first layer was asked for %d times, want once", n, asked)
	}
}

func TestFewSequences(t *testing.T) {
	sequences := func(lengths ...int) (all [][]int32) {
		for _, n := range lengths {
			all = append(all, make([]int32, n))
		}
		return all
	}
	for _, test := range []struct {
		tokens [][]int32
		want   int
	}{
		{sequences(1024, 1024, 1024, 1024, 1024), 4}, {sequences(5000, 2), 1}, {sequences(100, 200), 2},
		{sequences(4096, 1), 1}, {sequences(4000, 96, 1), 2},
	} {
		if got := divergence.FewSequences(test.tokens); got != test.want {
			t.Errorf("%d sequences, want %d", got, test.want)
		}
	}
}
