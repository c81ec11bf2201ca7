package forward_test

import (
	"context"
	"regexp"
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
)

// turns records the order of the experts' weights and inputs.
type turns struct {
	forward.Weights
	log  []string // "block/expert", without repetitions
	done int
}

var expertName = regexp.MustCompile(`layers\.(\d+)\..*experts\.(\d+)\.`)

func (t *turns) note(name string) {
	if m := expertName.FindStringSubmatch(name); m != nil {
		if turn := m[1] + "/" + m[2]; len(t.log) == 0 || t.log[len(t.log)-1] != turn {
			t.log = append(t.log, turn)
		}
	}
}

func (t *turns) Tensor(ctx context.Context, name string) ([]float32, error) {
	t.note(name)
	return t.Weights.Tensor(ctx, name)
}

func (t *turns) Input(names []string, _ sgemm.Matrix) error {
	t.note(names[0])
	return nil
}

func (t *turns) Done(names []string) error {
	t.note(names[0])
	t.done++
	return nil
}

// TestExpertsTakeTurns: the weights of an expert are loaded once, after the expert before has processed its tokens of all batches.
func TestExpertsTakeTurns(t *testing.T) {
	for _, name := range []string{"mixtral-tiny", "qwen3_moe-tiny", "deepseek_v3-tiny"} {
		m := testmodel.Tiny(t, name, weights.F32)
		d, err := forward.New(m, testmodel.LayoutOf(t, m))
		if err != nil {
			t.Fatal(err)
		}
		var tokens [][]int32
		for s := range 160 { // of 16 tokens: two batches
			var one []int32
			for i := range 16 {
				one = append(one, int32((7*s+5*i*i)%48))
			}
			tokens = append(tokens, one)
		}
		seen := &turns{Weights: forward.Stored(m)}
		if _, err := d.Run(t.Context(), seen, tokens, seen); err != nil {
			t.Fatal(err)
		}
		if len(seen.log) < 4 || seen.done != 2*len(seen.log) {
			t.Errorf("%s: %d turns, and %d inputs were done", name, len(seen.log), seen.done)
		}
		sorted := slices.Clone(seen.log)
		slices.Sort(sorted)
		if len(slices.Compact(sorted)) != len(seen.log) {
			t.Errorf("%s: an expert has several turns: %v", name, seen.log)
		}
	}
}
