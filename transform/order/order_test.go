package order

import (
	"context"
	"errors"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
)

// lag returns a lag with the same weight at every place.
func lag(distance int) cost.Lag { return cost.Lag{Distance: distance, Weights: []float64{1, 1, 1, 1}} }

// lanes are the lags of the H200's streaming rows.
var lanes = []cost.Lag{{Distance: 1, Weights: []float64{0.7, 1.4, 0.7, 0}}, {Distance: 5, Weights: []float64{0, 0, 0, 1.2}}}

// singly gives every label one position.
func singly(n int) [][]int {
	list := make([][]int, n)
	for i := range list {
		list[i] = []int{i}
	}
	return list
}

func ones(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = 1
	}
	return list
}

func useOf(x weights.Tensor, axis int, positions [][]int) *Use {
	u := &Use{Format: testmodel.FormatOf(x.DType), Axis: axis, Positions: positions, Lags: []cost.Lag{lag(1)}}
	u.Rows, u.Cols = x.Matrix()
	size := u.Cols * u.Format.Bits / 8
	u.Reader = func() func(int) []byte { return func(row int) []byte { return x.Data[row*size : (row+1)*size] } }
	u.Guard = func(work func() error) error { return work() }
	return u
}

func sketchOf(t testmodel.TB, o SketchOptions, uses ...*Use) *Sketch {
	t.Helper()
	if o.Labels = len(uses[0].Positions); o.MaxBytes == 0 {
		o.MaxBytes = 1 << 20
	}
	s, err := NewSketch(context.Background(), uses, o)
	testmodel.OK(t, err)
	return s
}

// elemAt returns an element of a use.
func (u *Use) elemAt(pos, other int) uint32 {
	if u.Axis == 1 {
		pos, other = other, pos
	}
	return u.Format.Elem(u.Reader()(pos), other)
}

// toggling counts the toggles bit by bit: the first position of each run of b against the last position of the same
// run of a. opposed says whether the labels' signs differ.
func toggling(u *Use, a, b int, opposed bool) (n float64) {
	heads, tails := u.borders()
	sign := u.Format.SignMask()
	for run := range heads[b] {
		free := u.Dir != nil && u.Dir[heads[b][run]] != 0
		for other := range u.Across() {
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

// drawUse draws a matrix with labels of several runs of several positions each, such as KV heads in a fused
// projection, along rows or columns.
func drawUse(t *rapid.T, labels int) *Use {
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
	d := rapid.SampledFrom(testmodel.DTypes).Draw(t, "type")
	u := useOf(testmodel.Memory(d, shape, testmodel.DrawBytes(t, n*across*d.Bits()/8, "data")), axis, positions)
	if rapid.Bool().Draw(t, "takes signs") && u.Format.IsFloat() {
		u.Dir = ones(n)
	}
	return u
}

func TestDistanceIsABitCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		labels := rapid.IntRange(2, 6).Draw(t, "labels")
		uses := []*Use{drawUse(t, labels), drawUse(t, labels)}
		uses[1].Lags = []cost.Lag{lag(2)} // a separate group
		s := sketchOf(t, SketchOptions{Signs: true, Workers: rapid.IntRange(1, 3).Draw(t, "workers")}, uses...)
		sums := make([]separation, 2)
		for a := range labels {
			for b := range labels {
				if a == b { // a label's own end and beginning are never compared
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
	x := testmodel.Matrix(weights.BF16, 4, []float32{1, -2, 3, 4, -1, 2, 0, 4, 1, 1, 1, 1})
	u := useOf(x, 0, singly(3))
	u.Dir = ones(3)
	s := sketchOf(t, SketchOptions{Signs: true, OnlySigns: true}, u)
	sums := make([]separation, 1)
	if s.between(0, 1, sums); sums[0] != (separation{2, 1}) { // zero has no sign
		t.Errorf("%v bits of signs toggle", sums[0])
	}
}

func TestSketchKeepsItsSize(t *testing.T) {
	x := testmodel.Memory(weights.BF16, []int{64, 4096}, make([]byte, 64*4096*2))
	for _, limit := range []int{1 << 14, 1 << 16, 1 << 18} {
		s := sketchOf(t, SketchOptions{MaxBytes: limit}, useOf(x, 0, singly(64)))
		if got := 8 * len(s.head); got > limit+64*64 {
			t.Errorf("%d bytes, the limit is %d", got, limit)
		}
	}
	var experts []*Use
	for range 1000 {
		experts = append(experts, useOf(x, 0, singly(64)))
	}
	const limit = 1 << 18
	if s := sketchOf(t, SketchOptions{MaxBytes: limit}, experts...); 8*len(s.head) > limit+64*64 || len(s.parts) < 2 {
		t.Errorf("%d uses take %d bytes, the limit is %d", len(s.parts), 8*len(s.head), limit)
	}
}

// TestSampleStandsForAll: distances in a sample are about those of whole labels.
func TestSampleStandsForAll(t *testing.T) {
	data := make([]byte, 2*4096*2)
	for i := range data {
		data[i] = byte(i * i * 31 >> 3)
	}
	x := testmodel.Memory(weights.BF16, []int{2, 4096}, data)
	sums := make([]separation, 1)
	sketchOf(t, SketchOptions{}, useOf(x, 0, singly(2))).between(0, 1, sums)
	all := sums[0].alike
	sketchOf(t, SketchOptions{MaxBytes: 4096}, useOf(x, 0, singly(2))).between(0, 1, sums)
	if got := sums[0].alike; got < 0.8*all || got > 1.2*all {
		t.Errorf("%g bits by a sample, %g in all", got, all)
	}
}

// TestPlacementOfLanes: streaming rows are visited in runs of four; the next run of a lane is eight rows on (package
// cost).
func TestPlacementOfLanes(t *testing.T) {
	p := newPlacement(19, [][]cost.Lag{lanes}, []float64{1})
	want := []int{0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 4, 5, 6, 7, 12, 13, 14, 15}
	if !slices.Equal(p.places, want) {
		t.Errorf("places %v, want %v", p.places, want)
	}
	order := p.Lay(Identity(19))
	for i, place := range p.places {
		if order[place] != i {
			t.Errorf("label %d of the path is not at place %d", i, place)
		}
	}
}

func TestPlacementFollowsTheHeaviest(t *testing.T) {
	p := newPlacement(7, [][]cost.Lag{{lag(1)}, {lag(3)}}, []float64{1, 2})
	if want := []int{0, 3, 6, 1, 4, 5, 2}; !slices.Equal(p.places, want) {
		t.Errorf("places %v, want %v", p.places, want)
	}
	n := 0
	for _, links := range p.before {
		n += len(links)
	}
	if n != 6+4 {
		t.Errorf("%d pairs of places are linked, want 10", n)
	}
	if newPlacement(3, [][]cost.Lag{{lag(3)}}, []float64{1}).linked() {
		t.Error("three places are linked three apart")
	}
}

// TestLagsOfLabels: blocks meet only at their borders. Runs count positions from the start of the index.
func TestLagsOfLabels(t *testing.T) {
	heads := make([][]int, 4)
	for i := range 128 {
		heads[i/32] = append(heads[i/32], i)
	}
	if got := Along(lanes, heads); len(got) != 1 || got[0].Distance != 1 {
		t.Errorf("blocks have the lags %v", got)
	}
	moved := singly(128)
	for i := range moved {
		moved[i][0] = (i + 3) % 128
	}
	if got := Along(lanes, moved); got[0].Weights[0] != 0 || got[1].Weights[0] == 0 {
		t.Errorf("at position 3 a run does not end: %v", got)
	}
	if got := Along(lanes, singly(128)); !slices.Equal(got[0].Weights, lanes[0].Weights) {
		t.Errorf("from position 0 the lags are %v", got)
	}
	if Along(nil, heads) != nil {
		t.Error("blocks have lags where the axis has none")
	}
}

// drawSketch draws a sketch of a random matrix's rows with some lags.
func drawSketch(t *rapid.T) *Sketch {
	n, cols := rapid.IntRange(2, 24).Draw(t, "labels"), rapid.IntRange(1, 12).Draw(t, "columns")
	u := useOf(testmodel.Memory(weights.BF16, []int{n, cols}, testmodel.DrawBytes(t, n*cols*2, "data")), 0, singly(n))
	u.Dir, u.Lags = ones(n), drawLags(t)
	return sketchOf(t, SketchOptions{Signs: rapid.Bool().Draw(t, "signs")}, u)
}

// drawLags draws one to three different lags. The first has a weight at every place.
func drawLags(t *rapid.T) []cost.Lag {
	list := []cost.Lag{lag(rapid.IntRange(1, 3).Draw(t, "lag"))}
	for range rapid.IntRange(0, 2).Draw(t, "more lags") {
		l := lag(list[len(list)-1].Distance + rapid.IntRange(1, 4).Draw(t, "next lag"))
		for i := range l.Weights {
			l.Weights[i] = float64(rapid.IntRange(0, 2).Draw(t, "weight")) / 2
		}
		list = append(list, l)
	}
	return list
}

// toggles returns the toggles of an order; nil is the source's order. With signs, the labels get their chosen signs.
func toggles(t testmodel.TB, s *Sketch, order []int, signs bool) float64 {
	t.Helper()
	if order == nil {
		order = Identity(s.labels)
	}
	p := s.Placement()
	sum, err := s.sum(context.Background(), p, p.Pick(order), signs, 1)
	testmodel.OK(t, err)
	return sum
}

// TestNoOrderIsWorse: no order toggles more than the source's. With signs, choosing the order for the signs is at
// least as good as choosing them one after the other.
func TestNoOrderIsWorse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSketch(t)
		alone, err := s.Order(context.Background(), false, 1)
		testmodel.OK(t, err)
		joint, err := s.Order(context.Background(), true, 1)
		testmodel.OK(t, err)
		for _, order := range [][]int{alone, joint} {
			if order != nil && !slices.Equal(slices.Sorted(slices.Values(order)), Identity(s.labels)) {
				t.Fatalf("%v is not a permutation", order)
			}
		}
		if toggles(t, s, alone, false) > toggles(t, s, nil, false) || toggles(t, s, joint, true) > toggles(t, s, nil, true) {
			t.Fatal("the order toggles more than the source's")
		}
		if toggles(t, s, joint, true) > toggles(t, s, alone, true) {
			t.Fatalf("together %g bits, one after the other %g", toggles(t, s, joint, true), toggles(t, s, alone, true))
		}
		if toggles(t, s, alone, true) > toggles(t, s, alone, false) {
			t.Fatal("signs make more bits toggle")
		}
	})
}

// togglesPlainly counts the toggles at the lags of rows in an order, element by element.
func togglesPlainly(u *Use, order []int) (sum float64) {
	plain := *u
	plain.Dir = nil
	for place := range order {
		for _, l := range u.Lags {
			if place+l.Distance < len(order) {
				sum += l.Weights[place%len(l.Weights)] * toggling(&plain, order[place], order[place+l.Distance], false)
			}
		}
	}
	return sum
}

// TestTogglesAreThoseOfPlaces: the minimised sum is the toggles at the labels' final places.
func TestTogglesAreThoseOfPlaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 20).Draw(t, "labels")
		u := useOf(testmodel.Memory(weights.BF16, []int{n, 5}, testmodel.DrawBytes(t, n*10, "data")), 0, singly(n))
		u.Lags = drawLags(t)
		order := rapid.Permutation(Identity(n)).Draw(t, "order")
		got := toggles(t, sketchOf(t, SketchOptions{}, u), order, false)
		if want := togglesPlainly(u, order); math.Abs(got-want) > 1e-9*want {
			t.Fatalf("%g bits, want %g", got, want)
		}
	})
}

// TestSigns: on a path the signs are optimal. For any lags, flipping one more label gains nothing, and the signs are
// at least as good as no flips.
func TestSigns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 9).Draw(t, "labels")
		u := useOf(testmodel.Memory(weights.BF16, []int{n, 3}, testmodel.DrawBytes(t, n*6, "data")), 0, singly(n))
		u.Dir, u.Lags = ones(n), drawLags(t)
		if rapid.Bool().Draw(t, "path") {
			u.Lags = []cost.Lag{lag(1)}
		}
		s := sketchOf(t, SketchOptions{Signs: true}, u)
		c, err := s.Toggles(context.Background(), s.Placement(), s.Placement().Pick(Identity(n)), 1)
		testmodel.OK(t, err)
		fixed := make([]bool, n)
		flipped := c.Signs(fixed)
		sum := c.Sum(flipped)
		for all := range 1 << n {
			other := make([]bool, n)
			differ := 0
			for i := range other {
				if other[i] = all>>i&1 != 0; other[i] != flipped[i] {
					differ++
				}
			}
			if best := len(u.Lags) == 1; (best || differ == 1 || all == 0) && c.Sum(other) < sum-1e-6 {
				t.Fatalf("%v toggles %g bits, %v %g", flipped, sum, other, c.Sum(other))
			}
		}
		fixed[n/2] = true
		if c.Signs(fixed)[n/2] {
			t.Fatal("a fixed label is flipped")
		}
	})
}

// planted returns rows drawn from a few prototypes with little noise, grouped by prototype. With flipped, some rows
// are multiplied by −1.
func planted(prototypes, each, cols int, flipped bool) [][]float32 {
	rng := rand.New(rand.NewPCG(1, 2))
	var rows [][]float32
	for range prototypes {
		proto := make([]float32, cols)
		for i := range proto {
			proto[i] = float32(rng.NormFloat64())
		}
		for range each {
			row := slices.Clone(proto)
			for range 4 {
				row[rng.IntN(cols)] = float32(rng.NormFloat64())
			}
			if flipped && rng.IntN(2) == 0 {
				for i := range row {
					row[i] = -row[i]
				}
			}
			rows = append(rows, row)
		}
	}
	return rows
}

func sketchOfRows(t testmodel.TB, rows [][]float32, order []int, o SketchOptions, lags []cost.Lag) *Sketch {
	var v []float32
	for _, i := range order {
		v = append(v, rows[i]...)
	}
	u := useOf(testmodel.Matrix(weights.BF16, len(rows[0]), v), 0, singly(len(rows)))
	u.Dir, u.Lags = ones(len(rows)), lags
	return sketchOf(t, o, u)
}

// TestPlantedStructureIsFound: the search brings each prototype's rows together, for any lags; with signs, also rows
// of opposite sign.
func TestPlantedStructureIsFound(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, flipped := range []bool{false, true} {
		rows := planted(6, 40, 64, flipped)
		for _, lags := range [][]cost.Lag{{lag(1)}, lanes, {lag(32)}} {
			source := sketchOfRows(t, rows, Identity(len(rows)), SketchOptions{Signs: flipped}, lags)
			want, err := source.sum(t.Context(), source.Placement(), Identity(len(rows)), flipped, 1)
			testmodel.OK(t, err)
			s := sketchOfRows(t, rows, rng.Perm(len(rows)), SketchOptions{Signs: flipped}, lags)
			order, err := s.Order(t.Context(), flipped, 2)
			testmodel.OK(t, err)
			got, before := toggles(t, s, order, flipped), toggles(t, s, nil, flipped)
			if got > 1.1*want || before < 2*want {
				t.Errorf("lags %v: %g bits toggle, %g as planted, %g shuffled", lags, got, want, before)
			}
		}
	}
}

// TestOrderAtAnyWorkers: an order does not depend on the number of workers.
func TestOrderAtAnyWorkers(t *testing.T) {
	rows := planted(7, 30, 40, true)
	shuffle := rand.New(rand.NewPCG(5, 6)).Perm(len(rows))
	var first []int
	for _, workers := range []int{1, 2, 5} {
		s := sketchOfRows(t, rows, shuffle, SketchOptions{Signs: true, Workers: workers}, lanes)
		order, err := s.Order(t.Context(), true, workers)
		testmodel.OK(t, err)
		if first == nil {
			first = order
		}
		if order == nil || !slices.Equal(order, first) {
			t.Errorf("another order with %d workers", workers)
		}
	}
}

func TestOrderIsCancelled(t *testing.T) {
	s := sketchOfRows(t, planted(4, 20, 16, false), Identity(80), SketchOptions{}, lanes)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Order(ctx, false, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	if _, err := NewSketch(ctx, []*Use{useOf(testmodel.Matrix(weights.BF16, 2, make([]float32, 8)), 0, singly(4))}, SketchOptions{Labels: 4, MaxBytes: 1 << 10}); !errors.Is(err, context.Canceled) {
		t.Errorf("a sketch: the error is %v", err)
	}
}

// TestDistances: each distance is correct in its direction, also if one computation serves both directions.
func TestDistances(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSketch(t)
		if rapid.Bool().Draw(t, "blocks") { // of two rows each, so first and last rows differ
			blocks := make([][]int, rapid.IntRange(2, 6).Draw(t, "blocks of rows"))
			for i := range blocks {
				blocks[i] = []int{2 * i, 2*i + 1}
			}
			rows := 2 * len(blocks)
			s = sketchOf(t, SketchOptions{}, useOf(testmodel.Memory(weights.BF16, []int{rows, 3}, testmodel.DrawBytes(t, rows*3*2, "rows")), 0, blocks))
		}
		m, err := s.distances(context.Background(), Identity(s.labels), false, 2)
		testmodel.OK(t, err)
		sums := make([]separation, len(s.groups))
		for a := range s.labels {
			for b := range s.labels {
				s.between(a, b, sums)
				want := 0.0
				for g, d := range sums {
					want += float64(totalWeight(s.groups[g]) * d.alike)
				}
				if m.at(a, b) != float64(float32(want)) {
					t.Fatalf("from %d to %d: %g, want %g", a, b, m.at(a, b), want)
				}
			}
		}
	})
}

// TestTwoOptImproves: 2-opt never makes a path longer, keeps all labels, and ends when no reversal of a stretch
// helps.
func TestTwoOptImproves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSketch(t)
		m, err := s.distances(context.Background(), Identity(s.labels), rapid.Bool().Draw(t, "joint"), 1)
		testmodel.OK(t, err)
		length := func(path []int) (sum float64) {
			for i := range path[1:] {
				sum += m.at(path[i], path[i+1])
			}
			return sum
		}
		path, err := m.nearestNeighbour(context.Background())
		testmodel.OK(t, err)
		for i, at := range path[:len(path)-1] { // the nearest remaining label
			for _, other := range path[i+1:] {
				if m.at(at, other) < m.at(at, path[i+1]) {
					t.Fatalf("%d is nearer to %d than %d", other, at, path[i+1])
				}
			}
		}
		before := length(path)
		testmodel.OK(t, m.twoOpt(context.Background(), path))
		if !slices.Equal(slices.Sorted(slices.Values(path)), Identity(s.labels)) || length(path) > before*(1+1e-6) {
			t.Fatalf("%v of length %g, from %g", path, length(path), before)
		}
		for i := range path {
			for j := i + 1; j < len(path); j++ {
				other := slices.Clone(path)
				slices.Reverse(other[i : j+1])
				if length(other) < length(path)*(1-1e-3) {
					t.Fatalf("reversing %d to %d shortens %g to %g", i, j, length(path), length(other))
				}
			}
		}
	})
}
