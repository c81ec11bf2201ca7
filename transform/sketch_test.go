package transform

import (
	"context"
	"math/bits"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
	"pgregory.net/rapid"
)

// one is the wire from each place to the next.
var one = []wire{{1, [laneRun]float64{1, 1, 1, 1}}}

// bare is a use's tensor as it lies in the file, with the signs that the use knows.
func bare(u *use) (*view, error) {
	return &view{program{src: u.tensor, format: u.format, rows: u.rows, cols: u.cols, row: u.row, col: u.col, unit: 1}}, nil
}

func sketchOf(t tb, o sketchOptions, uses ...*use) *sketch {
	t.Helper()
	if o.labels = len(uses[0].positions); o.maxBytes == 0 {
		o.maxBytes = 1 << 20
	}
	if o.view == nil {
		o.view = bare
	}
	for _, u := range uses {
		if u.follow == nil {
			u.follow = one
		}
	}
	s, err := newSketch(context.Background(), uses, o)
	ok(t, err)
	return s
}

// toggling counts bit by bit what newSketch packs: the first position of each run of b against the last of
// the same run of a, with the labels' signs alike or opposed.
func toggling(u *use, a, b int, opposed bool) (n float64) {
	heads, tails := u.borders()
	sign := u.format.SignMask()
	for run := range heads[b] {
		free := u.dir != nil && u.dir[heads[b][run]] != 0
		for other := range u.across() {
			x, y := u.elemAt(tails[a][run], other), u.elemAt(heads[b][run], other)
			differ := x ^ y
			if free {
				differ &^= sign
				if x&^sign != 0 && y&^sign != 0 && ((x^y)&sign != 0) != opposed {
					n++
				}
			}
			n += float64(bits.OnesCount32(differ))
		}
	}
	return n
}

func (u *use) elemAt(pos, other int) uint32 {
	if u.axis == 0 {
		return u.elem(pos, other)
	}
	return u.elem(other, pos)
}

// drawUse is a tensor with labels of several runs of several positions each, such as KV heads in a
// fused projection, along rows or columns, with some signs already planned.
func drawUse(t *rapid.T, labels int) *use {
	runs, length := rapid.IntRange(1, 3).Draw(t, "runs"), rapid.IntRange(1, 4).Draw(t, "positions")
	n, across := labels*runs*length, rapid.IntRange(1, 9).Draw(t, "across")
	positions := make([][]int, labels)
	for run := range runs {
		for label := range labels {
			for i := range length {
				positions[label] = append(positions[label], (run*labels+label)*length+i)
			}
		}
	}
	axis := rapid.IntRange(0, 1).Draw(t, "axis")
	shape := [][]int{{n, across}, {across, n}}[axis]
	d := rapid.SampledFrom(kinds).Draw(t, "type")
	u := useOf(memory(d, shape, drawBytes(t, n*across*d.Bits()/8, "data")), axis, positions)
	u.row.flip = rapid.SliceOfN(rapid.Bool(), shape[0], shape[0]).Draw(t, "flips")
	if rapid.Bool().Draw(t, "takes signs") && u.format.IsFloat() {
		u.dir = ones(n)
	}
	return u
}

func TestDistanceIsABitCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		labels := rapid.IntRange(2, 6).Draw(t, "labels")
		uses := []*use{drawUse(t, labels), drawUse(t, labels)}
		uses[1].follow = []wire{{2, [laneRun]float64{1, 1, 1, 1}}} // a group of its own
		s := sketchOf(t, sketchOptions{signs: true, workers: rapid.IntRange(1, 3).Draw(t, "workers")}, uses...)
		sums := make([]separation, 2)
		for a := range labels {
			for b := range labels {
				if a == b { // a label's own end against its own beginning: never asked for
					continue
				}
				s.between(a, b, sums)
				for i, u := range uses {
					want := separation{toggling(u, a, b, false), toggling(u, a, b, true)}
					if sums[i] != want {
						t.Fatalf("use %d: from %d to %d toggle %v bits, want %v", i, a, b, sums[i], want)
					}
				}
			}
		}
	})
}

func TestSketchOfSignsAlone(t *testing.T) {
	x := matrix(weights.BF16, 4, []float32{1, -2, 3, 4, -1, 2, 0, 4, 1, 1, 1, 1})
	u := useOf(x, 0, singly(3))
	u.dir = ones(3)
	s := sketchOf(t, sketchOptions{signs: true, only: true}, u)
	sums := make([]separation, 1)
	if s.between(0, 1, sums); sums[0] != (separation{2, 1}) { // zero has no sign
		t.Errorf("%v bits of signs toggle", sums[0])
	}
}

func TestSketchKeepsItsSize(t *testing.T) {
	x := memory(weights.BF16, []int{64, 4096}, make([]byte, 64*4096*2))
	for _, limit := range []int{1 << 14, 1 << 16, 1 << 18} {
		s := sketchOf(t, sketchOptions{maxBytes: limit}, useOf(x, 0, singly(64)))
		if got := 8 * len(s.head); got > limit+64*64 {
			t.Errorf("%d bytes, the limit is %d", got, limit)
		}
	}
	var experts []*use
	for range 1000 {
		experts = append(experts, useOf(x, 0, singly(64)))
	}
	const limit = 1 << 18
	if s := sketchOf(t, sketchOptions{maxBytes: limit}, experts...); 8*len(s.head) > limit+64*64 || len(s.parts) < 2 {
		t.Errorf("%d uses take %d bytes, the limit is %d", len(s.parts), 8*len(s.head), limit)
	}
}

// Where a sketch holds a sample, distances are still those of whole labels, about.
func TestSampleStandsForAll(t *testing.T) {
	data := make([]byte, 2*4096*2)
	for i := range data {
		data[i] = byte(i * i * 31 >> 3)
	}
	x := memory(weights.BF16, []int{2, 4096}, data)
	sums := make([]separation, 1)
	sketchOf(t, sketchOptions{}, useOf(x, 0, singly(2))).between(0, 1, sums)
	all := sums[0].alike
	sketchOf(t, sketchOptions{maxBytes: 4096}, useOf(x, 0, singly(2))).between(0, 1, sums)
	if got := sums[0].alike; got < 0.8*all || got > 1.2*all {
		t.Errorf("%g bits by a sample, %g in all", got, all)
	}
}
