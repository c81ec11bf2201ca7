package forward_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/forward"
)

// TestBlocksMayBeLeftHalfway moves a state to every layer's step, and from the step to the end.
func TestBlocksMayBeLeftHalfway(t *testing.T) {
	m, d := model(t, "llama-tiny", nil)
	w, tokens := forward.Stored(m), sequences(64, 5, 9)
	want := run(t, d, w, tokens)
	layers, halfway := d.Layers(), 0
	for _, l := range layers {
		s, err := d.Start(t.Context(), w, tokens)
		if err == nil {
			err = d.Before(t.Context(), l, w, s)
		}
		if err != nil {
			t.Fatal(err)
		}
		if s.Next != l.Block || s.Step != l.Step {
			t.Errorf("%s: the state is before step %d of block %d, want step %d of block %d", l.Tensor, s.Step, s.Next, l.Step, l.Block)
		}
		halfway += min(s.Step, 1)
		for err == nil && s.Next < d.Blocks() {
			err = d.Block(t.Context(), s.Next, w, s, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		got, err := d.Score(t.Context(), w, s, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.EqualFunc(got.Nats, want.Nats, slices.Equal[[]float64]) {
			t.Errorf("%s: other losses than those of a pass in one go", l.Tensor)
		}
	}
	if halfway == 0 {
		t.Error("no layer is in a second step")
	}
	s, err := d.Start(t.Context(), w, tokens)
	if err == nil {
		err = d.Before(t.Context(), layers[len(layers)-2], w, s) // the head is the last layer
	}
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[int]string{0: "so block 0 cannot run now", len(layers) - 6: "cannot go back to step 0"} {
		if err := d.Before(t.Context(), layers[at], w, s.Clone()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("back to %s: error %v, want %q", layers[at].Tensor, err, want)
		}
	}
}
