package hessian_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/gemm/hessian"
	"github.com/lowtoggle/lowtoggle/internal/tally"
)

// TestCollectAndScoreRunsTheModelOnce: the files are Collect's, the result equals a pass's. One pass gives both, even if the
// folder is finished or a run was interrupted.
func TestCollectAndScoreRunsTheModelOnce(t *testing.T) {
	for _, config := range []string{"llama-tiny", "gpt2-tiny"} { // the latter's head is its embedding
		s, clean := tiny(t, config), t.TempDir()
		s.collect(t, clean, hessian.Options{Key: "a"})
		want := s.pass(t)
		dir := t.TempDir()
		for _, state := range []string{"empty", "finished", "unfinished"} {
			if state == "unfinished" {
				if err := errors.Join(os.Remove(filepath.Join(dir, "index.json")), os.Remove(moments(t, dir)[2])); err != nil {
					t.Fatal(err)
				}
			}
			var counts tally.Tally
			steps := 0
			o := hessian.Options{Key: "a", Progress: func(done, total int) {
				if steps++; done != steps || total != s.decoder.Blocks()+1 {
					t.Errorf("%s: step %d is reported as %d of %d", state, steps, done, total)
				}
			}}
			store, got, err := hessian.CollectAndScore(tally.With(t.Context(), &counts), s.decoder, s.weights, s.tokens, dir, forward.Keep{Entries: 2}, o)
			if err != nil {
				t.Fatal(err)
			}
			if n := counts.Counts()["forward.Pass"]; n != 1 || steps != s.decoder.Blocks()+1 {
				t.Errorf("%s, %s folder: %d passes of %d steps, want 1 of all blocks and the head", config, state, n, steps)
			}
			if !cmp.Equal(want.End, got.End) || !cmp.Equal(want.Scores, got.Scores) {
				t.Errorf("%s, %s folder: the result is not a pass's", config, state)
			}
			if got.First(2).Entry(1) == nil {
				t.Errorf("%s, %s folder: the entries were not kept", config, state)
			}
			if !cmp.Equal(contents(t, clean), contents(t, dir)) {
				t.Errorf("%s, %s folder: the files are not Collect's", config, state)
			}
			if len(store.Layers()) != len(s.decoder.Layers()) {
				t.Errorf("%s, %s folder: %d layers", config, state, len(store.Layers()))
			}
		}
	}
}

// TestCollectAndScoreFails where weights fail, and leaves what is finished.
func TestCollectAndScoreFails(t *testing.T) {
	s, dir := tiny(t, "llama-tiny"), t.TempDir()
	_, _, err := hessian.CollectAndScore(t.Context(), s.decoder, &dies{Weights: s.weights, tensor: "lm_head.weight"}, s.tokens, dir, forward.Keep{}, hessian.Options{Key: "a"})
	if !errors.Is(err, errDied) {
		t.Errorf("error %v, want that of the weights", err)
	}
	if n := len(moments(t, dir)); n != 8 { // four in each of two blocks
		t.Errorf("%d files are left, want those of both blocks", n)
	}
}

// pass returns a forward pass without statistics.
func (s subject) pass(t testing.TB) *forward.Result {
	t.Helper()
	r, err := s.decoder.Pass(t.Context(), s.weights, s.tokens, forward.PassOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}
