package transform

import (
	"math/bits"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
	"pgregory.net/rapid"
)

// togglesBetween counts the bits that differ where label b follows label a: the first position of
// each run of b against the last of the same run of a.
func togglesBetween(u *use, a, b int, mask uint32) (n float64) {
	heads, tails := u.borders()
	for run := range heads[b] {
		for other := range u.across() {
			x, y := u.elemAt(tails[a][run], other), u.elemAt(heads[b][run], other)
			n += float64(bits.OnesCount32((x ^ y) & mask))
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
	u.weight = float64(rapid.IntRange(1, 3).Draw(t, "weight"))
	return u
}

func TestDistanceIsABitCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		labels := rapid.IntRange(2, 6).Draw(t, "labels")
		uses := []*use{drawUse(t, labels), drawUse(t, labels)}
		mask := rapid.SampledFrom([]func(*use) uint32{allBits, func(u *use) uint32 { return u.format.SignMask() }}).Draw(t, "mask")
		s, err := newSketch(t.Context(), uses, labels, 1<<20, mask)
		ok(t, err)
		for a := range labels {
			for b := range labels {
				var want float64
				for _, u := range uses {
					want += u.weight * togglesBetween(u, a, b, mask(u))
				}
				if a == b { // a label's own end against its own beginning: never asked for
					continue
				}
				if got := s.distance(a, b); got != want {
					t.Fatalf("from %d to %d toggle %g bits, want %g", a, b, got, want)
				}
			}
		}
	})
}

func TestSketchKeepsItsSize(t *testing.T) {
	x := memory(weights.BF16, []int{64, 4096}, make([]byte, 64*4096*2))
	for _, limit := range []int{1 << 14, 1 << 16, 1 << 18} {
		s, err := newSketch(t.Context(), []*use{useOf(x, 0, singly(64))}, 64, limit, allBits)
		ok(t, err)
		if got := 8 * (len(s.head) + len(s.tail)); got > limit+64*64 {
			t.Errorf("%d bytes, the limit is %d", got, limit)
		}
	}
}
