package transform

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
	"pgregory.net/rapid"
)

// drawSketch is a sketch of the rows of a random matrix.
func drawSketch(t *rapid.T) *sketch {
	n, cols := rapid.IntRange(2, 24).Draw(t, "labels"), rapid.IntRange(1, 12).Draw(t, "columns")
	x := memory(weights.BF16, []int{n, cols}, drawBytes(t, n*cols*2, "data"))
	return sketchOf(t, n, useOf(x, 0, singly(n)))
}

// singly gives every label one position.
func singly(n int) [][]int {
	list := make([][]int, n)
	for i := range list {
		list[i] = []int{i}
	}
	return list
}

func useOf(x weights.Tensor, axis int, positions [][]int) *use {
	u := &use{tensor: x, format: formatOf(x.DType), axis: axis, positions: positions, weight: 1}
	u.rows, u.cols = x.Matrix()
	return u
}

func allBits(u *use) uint32 { return u.format.SignMask()<<1 - 1 }

func sketchOf(t *rapid.T, labels int, uses ...*use) *sketch {
	s, err := newSketch(t.Context(), uses, labels, 1<<20, allBits)
	ok(t, err)
	return s
}

// nearestPlainly is nearestNeighbour with a list and no early stop.
func nearestPlainly(s *sketch, candidates []int, window int) []int {
	left := slices.Clone(candidates[1:])
	order := []int{candidates[0]}
	for len(left) > 0 {
		best := 0
		for i := range left[:min(window, len(left))] {
			if s.distance(order[len(order)-1], left[i]) < s.distance(order[len(order)-1], left[best]) {
				best = i
			}
		}
		order = append(order, left[best])
		left = slices.Delete(left, best, best+1)
	}
	return order
}

func TestNearestNeighbour(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSketch(t)
		candidates := rapid.Permutation(identity(s.labels)).Draw(t, "candidates")
		window := rapid.IntRange(1, s.labels+2).Draw(t, "window")
		got, err := nearestNeighbour(t.Context(), s, candidates, window)
		ok(t, err)
		if !isPermutation(got, s.labels) {
			t.Fatalf("%v is no permutation", got)
		}
		if want := nearestPlainly(s, candidates, window); !slices.Equal(got, want) {
			t.Fatalf("order %v, want %v", got, want)
		}
	})
}

func TestEveryMethodGivesAPermutation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSketch(t)
		magnitude := rapid.SliceOfN(rapid.Float64(), s.labels, s.labels).Draw(t, "magnitude")
		for _, args := range [][]string{nil, {"greedy"}, {"sort"}, {"window", "3"}, {"window", "1000"}} {
			order, err := chooseOrder(t.Context(), s, magnitude, args)
			ok(t, err)
			if !isPermutation(order, s.labels) {
				t.Fatalf("%v: %v is no permutation", args, order)
			}
			if args != nil && args[0] == "sort" && !slices.IsSortedFunc(order, func(a, b int) int {
				if magnitude[a] < magnitude[b] {
					return -1
				}
				return 1
			}) {
				t.Fatalf("%v is not sorted by %v", order, magnitude)
			}
		}
	})
}

// Rows drawn from few prototypes with a little noise, shuffled: the walk must bring each
// prototype's rows together again.
func TestGreedyFindsPlantedStructure(t *testing.T) {
	const prototypes, each, cols = 6, 20, 64
	rng := rand.New(rand.NewPCG(1, 2))
	var rows [][]byte
	for range prototypes {
		proto := make([]byte, 2*cols)
		for i := range proto {
			proto[i] = byte(rng.Uint32())
		}
		for range each {
			row := slices.Clone(proto)
			for range 10 {
				row[rng.IntN(len(row))] ^= 1 << rng.IntN(8)
			}
			rows = append(rows, row)
		}
	}
	planted := newOrderOf(t, rows, identity(len(rows)))
	for _, shuffle := range [][]int{rng.Perm(len(rows)), rng.Perm(len(rows))} {
		s := newOrderOf(t, rows, shuffle)
		order, err := chooseOrder(t.Context(), s, make([]float64, len(rows)), []string{"greedy"})
		ok(t, err)
		want, got, before := planted.path(identity(len(rows))), s.path(order), s.path(identity(len(rows)))
		if got > 1.1*want || before < 3*want {
			t.Errorf("the path toggles %g bits, %g as planted, %g shuffled", got, want, before)
		}
	}
}

func newOrderOf(t *testing.T, rows [][]byte, order []int) *sketch {
	t.Helper()
	var data []byte
	for _, i := range order {
		data = append(data, rows[i]...)
	}
	x := memory(weights.BF16, []int{len(rows), len(rows[0]) / 2}, data)
	s, err := newSketch(t.Context(), []*use{useOf(x, 0, singly(len(rows)))}, len(rows), 1<<20, allBits)
	ok(t, err)
	return s
}
