package forward_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowtoggle/lowtoggle/gemm/forward"
)

// counted counts the reads of each tensor.
type counted struct {
	forward.Weights
	name  string
	count *int
}

func (c counted) Tensor(ctx context.Context, name string) ([]float32, error) {
	if name == c.name {
		*c.count++
	}
	return c.Weights.Tensor(ctx, name)
}

// TestKeptLogitsHaveTheBitsOfComputedOnes: a divergence is the same whether the reference's logits were kept or not, and reads
// the reference's head only if they were not.
func TestKeptLogitsHaveTheBitsOfComputedOnes(t *testing.T) {
	for _, name := range []string{"llama-tiny", "gemma2-tiny"} {
		m, d := model(t, name, nil)
		w, tokens := forward.Stored(m), sequences(90, 20, 30, 7)
		other := changed{w, "model.norm.weight", 1.25}
		type outcome struct {
			Nats   float64
			Scores *forward.Scores
		}
		compare := func(keep forward.Keep) (all []outcome, asked int) {
			r := pass(t, d, counted{w, "model.norm.weight", &asked}, tokens, keep)
			asked = 0
			for _, r := range []*forward.Result{r, r.First(2), r.First(1)} {
				nats, scores, err := d.Divergence(t.Context(), r, r.End, other)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, outcome{nats, scores})
			}
			return all, asked
		}
		kept, asked := compare(forward.Keep{})
		if asked != 0 {
			t.Errorf("%s: the reference's norm was asked for %d times behind the pass", name, asked)
		}
		computed, asked := compare(forward.Keep{Bytes: -1})
		if asked != 3 {
			t.Errorf("%s: the reference's norm was asked for %d times, want once a comparison", name, asked)
		}
		if diff := cmp.Diff(computed, kept); diff != "" {
			t.Errorf("%s: (-computed +kept)\n%s", name, diff)
		}
		for i, n := range []int{3, 2, 1} {
			if want := run(t, d, other, tokens[:n]); !cmp.Equal(want, kept[i].Scores) {
				t.Errorf("%s: %d sequences: the losses are not those of Run", name, n)
			}
		}
	}
}

// TestEntriesAreTheStatesBeforeBlocks: entries are the states of the requested number of sequences, within the limit.
func TestEntriesAreTheStatesBeforeBlocks(t *testing.T) {
	m, d := model(t, "llama-tiny", nil)
	w, tokens := forward.Stored(m), sequences(128, 20, 30, 7)
	few := tokens[:2]
	r := pass(t, d, w, tokens, forward.Keep{Entries: 2})
	want, err := d.Start(t.Context(), w, few)
	if err != nil {
		t.Fatal(err)
	}
	for i := range d.Blocks() {
		if r.Entry(i) != nil {
			t.Errorf("block %d: there is an entry of all sequences, and two of three were kept", i)
		}
		got := r.First(2).Entry(i)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("block %d: (-walked +entry)\n%s", i, diff)
		}
		got.Hidden.Data[0]++ // is the caller's
		if again := r.First(2).Entry(i); !cmp.Equal(want, again) {
			t.Errorf("block %d: a caller's change reached the result", i)
		}
		if one := r.First(1).Entry(i); !slices.Equal(one.Hidden.Data, want.Hidden.Data[:len(one.Hidden.Data)]) {
			t.Errorf("block %d: the entry of one sequence differs", i)
		}
		if err := d.Block(t.Context(), i, w, want, nil); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, r.First(2).Entry(d.Blocks())); diff != "" {
		t.Errorf("head: (-walked +entry)\n%s", diff)
	}
	if r := pass(t, d, w, few, forward.Keep{Entries: 2, Bytes: 100}); r.Entry(0) != nil {
		t.Error("entries were kept beyond the limit")
	}
}

// TestErrorOfStepEndsThePass: an error of Step ends the pass at any step.
func TestErrorOfStepEndsThePass(t *testing.T) {
	m, d := model(t, "llama-tiny", nil)
	stop := errors.New("stop")
	for at := 1; at <= d.Blocks()+1; at++ {
		var steps []int
		_, err := d.Pass(t.Context(), forward.Stored(m), sequences(128, 4), forward.PassOptions{Step: func(done, total int) error {
			if total != d.Blocks()+1 {
				t.Errorf("%d steps in all, want the blocks and the head", total)
			}
			if steps = append(steps, done); done == at {
				return stop
			}
			return nil
		}})
		if !errors.Is(err, stop) || len(steps) != at {
			t.Errorf("stopped at step %d: error %v behind %v", at, err, steps)
		}
	}
}
