package runner

import (
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/decoder"
)

func TestWork(t *testing.T) {
	for _, c := range []struct {
		work   Work
		tokens int
		text   string
	}{
		{Work{Sequences: 3, Context: 5, Decode: true}, 3, "decode, batch 3, context 5"},
		{Work{Sequences: 3, Context: 5}, 15, "prefill, 3 × 5 tokens"},
	} {
		if c.work.Tokens() != c.tokens || c.work.String() != c.text {
			t.Errorf("%+v: %d tokens, %q", c.work, c.work.Tokens(), c.work)
		}
	}
}

// A step's tokens are drawn from its seed alone, so two models of one vocabulary get the same.
func TestStepTokens(t *testing.T) {
	draw := func(seed uint64) [][]int32 {
		s := &Step{model: &Model{decoder: &decoder.Decoder{Vocab: 5}}, work: Work{Sequences: 3, Context: 40, Seed: seed}}
		return s.sequences()
	}
	a := draw(1)
	if len(a) != 3 || !slices.EqualFunc(a, draw(1), slices.Equal[[]int32]) || slices.EqualFunc(a, draw(2), slices.Equal[[]int32]) {
		t.Errorf("%v", a)
	}
	for _, s := range a {
		if len(s) != 40 || slices.Min(s) != 0 || slices.Max(s) != 4 {
			t.Errorf("%v", s)
		}
	}
}

// TestAttendShared: attend's arrays, in floats: queries and keys with a float behind each, values, scores.
func TestAttendShared(t *testing.T) {
	if got, want := attendShared(80, 64), 4*(32*81+32*81+32*64+32*33); got != want {
		t.Errorf("%d bytes, want %d", got, want)
	}
	if got := attendShared(256, maxValueSize); got > 227<<10 {
		t.Errorf("%d bytes are more than a block can have", got)
	}
}

func TestFlat(t *testing.T) {
	for n, want := range map[int]int{0: 1, 1: 1, threads: 1, threads + 1: 2, 1 << 30: 2112} {
		if got := flat(n); got.X != want || got.Y != 0 || got.Z != 0 {
			t.Errorf("%d elements: %v blocks, want %d", n, got, want)
		}
	}
}
