package transform

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/weights"
)

// Streaming rows are visited in runs of four, the next of them eight rows on (package cost).
func TestCourseOfLanes(t *testing.T) {
	c := newCourse(19, [][]wire{lanes}, []float64{1})
	want := []int{0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 4, 5, 6, 7, 12, 13, 14, 15}
	if !slices.Equal(c.places, want) {
		t.Errorf("places %v, want %v", c.places, want)
	}
	order := c.lay(identity(19))
	for i, place := range c.places {
		if order[place] != i {
			t.Errorf("label %d of the path is not at place %d", i, place)
		}
	}
}

func TestCourseFollowsTheHeaviest(t *testing.T) {
	even := one[0].weight
	c := newCourse(7, [][]wire{{{1, even}}, {{3, even}}}, []float64{1, 2})
	if want := []int{0, 3, 6, 1, 4, 5, 2}; !slices.Equal(c.places, want) {
		t.Errorf("places %v, want %v", c.places, want)
	}
	n := 0
	for _, ties := range c.before {
		n += len(ties)
	}
	if n != 6+4 {
		t.Errorf("%d pairs of places are tied, want 10", n)
	}
	if newCourse(3, [][]wire{{{3, even}}}, []float64{1}).tied() {
		t.Error("three places are tied three apart")
	}
}

func TestWires(t *testing.T) {
	matrix := memory(weights.BF16, []int{128, 128}, make([]byte, 128*128*2))
	prefill, decode := cost.Workload{Prefill: 1}, cost.Workload{Decode: 1}
	lags := func(axis, outAxis int, l cost.Workload, streams bool) (list []int) {
		for _, w := range useOf(matrix, axis, singly(128)).wires(outAxis, l, streams) {
			list = append(list, w.lag)
		}
		return list
	}
	for _, c := range []struct {
		axis, outAxis int
		workload      cost.Workload
		streams       bool
		want          []int
	}{
		{0, 0, prefill, true, []int{1, 5}},     // lanes
		{0, 0, prefill, false, nil},            // rows that stand still
		{1, 0, prefill, true, []int{32}},       // 64 bytes of memory
		{1, 0, decode, false, []int{1, 16}},    // 2 and 32 bytes
		{0, 0, decode, true, nil},              // few tokens: nothing but memory counts
		{1, 1, prefill, true, []int{1, 5, 32}}, // outputs along memory
		{0, 1, prefill, true, nil},
	} {
		if got := lags(c.axis, c.outAxis, c.workload, c.streams); !slices.Equal(got, c.want) {
			t.Errorf("%+v: lags %v", c, got)
		}
	}
	heads := make([][]int, 4)
	for i := range 128 {
		heads[i/32] = append(heads[i/32], i)
	}
	if got := useOf(matrix, 0, heads).wires(0, prefill, true); len(got) != 1 || got[0].lag != 1 {
		t.Errorf("blocks follow one another on %v", got)
	}
	// The lanes count positions, wherever the index begins.
	shifted := singly(128)
	for i := range shifted {
		shifted[i][0] = (i + 3) % 128
	}
	if got := useOf(matrix, 0, shifted).wires(0, prefill, true); got[0].weight[0] != 0 || got[1].weight[0] == 0 {
		t.Errorf("at position 3 a run does not end: %v", got)
	}
}

// Whether rows stream is asked of the cost model.
func TestStreamsIsAsked(t *testing.T) {
	for _, stream := range []bool{false, true} {
		var asked atomic.Int64
		o := options(t, "reorder", 0)
		o.Workload, o.Role = cost.Workload{Prefill: 1}, cost.Streaming
		o.Cost = costFunc(func(_ context.Context, w cost.Weights, role cost.Role, l cost.Workload) (e cost.Estimate, _ error) {
			if len(w.Bands) == 1 && w.Bands[0].First == 0 {
				asked.Add(1)
			}
			e.Relative = 1
			size := w.Cols * w.DType.Bits() / 8
			if d := w.Bands[0].Data; stream && role == cost.Streaming && string(d[:size]) == string(d[size:2*size]) {
				e.Relative = 0.9
			}
			return e, nil
		})
		m := tiny(t, "llama-tiny", weights.BF16)
		p, err := Make(t.Context(), m, o)
		ok(t, err)
		found := slices.ContainsFunc(p.Steps, func(s *Step) bool { return s.Index == "layers.0.ffn" })
		if stream && !found {
			t.Error("rows stream, and neurons keep their order")
		}
		if asked.Load() == 0 {
			t.Error("nobody asked")
		}
	}
}
