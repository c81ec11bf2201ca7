package order

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/internal/goldenfile"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
)

// pairs gives every label runs of two neighbouring positions, n labels apart.
func pairs(n, runs int) [][]int {
	list := make([][]int, n)
	for label := range list {
		for run := range runs {
			list[label] = append(list[label], 2*(run*n+label), 2*(run*n+label)+1)
		}
	}
	return list
}

// someUses are uses of 11 labels, with different types, axes, signs and lags.
func someUses() map[string][]*Use {
	const n = 11
	rng := rand.New(rand.NewPCG(7, 8))
	matrix := func(d weights.DType, axis, along, across int, positions [][]int, dir []int, lags []cost.Lag) *Use {
		shape := [][]int{{along, across}, {across, along}}[axis]
		data := make([]byte, along*across*d.Bits()/8)
		for i := range data {
			first := byte(rng.IntN(256))
			data[i] = first & byte(rng.IntN(256))
		}
		u := useOf(testmodel.Memory(d, shape, data), axis, positions)
		u.Dir, u.Lags = dir, lags
		return u
	}
	some, twice := append(ones(n), make([]int, n)...), make([][]int, n) // the second position of each label has no sign
	for label := range twice {
		twice[label] = []int{label, n + label}
	}
	some[3] = -1
	return map[string][]*Use{
		"rows":             {matrix(weights.BF16, 0, n, 37, singly(n), nil, []cost.Lag{lag(1)})},
		"columns":          {matrix(weights.F32, 1, n, 19, singly(n), ones(n), []cost.Lag{lag(1), lag(4)})},
		"lanes":            {matrix(weights.BF16, 1, 2*n, 150, twice, some, lanes)},
		"blocks":           {matrix(weights.F16, 0, 4*n, 9, pairs(n, 2), nil, lanes)},
		"signed blocks":    {matrix(weights.F8E4M3, 1, 2*n, 70, pairs(n, 1), ones(2*n), []cost.Lag{lag(1)})},
		"integers":         {matrix(weights.I8, 0, n, 21, singly(n), ones(n), []cost.Lag{lag(2)})},
		"rows and columns": {matrix(weights.BF16, 0, 2*n, 300, twice, some, []cost.Lag{lag(1)}), matrix(weights.BF16, 1, n, 12, singly(n), nil, []cost.Lag{lag(1)}), matrix(weights.F8E4M3, 0, n, 5, singly(n), ones(n), []cost.Lag{lag(3)})},
		"blocks and rows":  {matrix(weights.BF16, 0, 2*n, 8, pairs(n, 1), nil, []cost.Lag{lag(1)}), matrix(weights.BF16, 0, n, 8, singly(n), nil, lanes)},
		"no lags":          {matrix(weights.BF16, 0, n, 8, singly(n), nil, nil)},
	}
}

// TestGoldenOrders: sketches have the recorded layout and distances. Orders and signs, and the bits that toggle, are the recorded
// ones.
func TestGoldenOrders(t *testing.T) {
	var b strings.Builder
	all := someUses()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		uses := all[name]
		for _, u := range uses {
			heads, tails := u.borders()
			fmt.Fprintf(&b, "%s: axis %d, %d across, blocks %v, heads %v, tails %v, all signed %v", name, u.Axis, u.Across(), u.Blocks(), heads[1], tails[1], u.allSigned())
			if signed := u.Signed(); signed != nil {
				fmt.Fprintf(&b, ", signed %v", signed.Positions)
			}
			fmt.Fprintf(&b, "\n  along %v\n", Along(u.Lags, u.Positions))
		}
		for _, o := range []SketchOptions{{}, {Signs: true}, {Signs: true, OnlySigns: true}, {MaxBytes: 11 * 64 * 4, Signs: true}, {MaxBytes: 11 * 70}} {
			s := sketchOf(t, o, uses...)
			fmt.Fprintf(&b, "  signs %v, only %v, at most %d bytes: %d words, symmetric %v, groups of %v bits\n", o.Signs, o.OnlySigns, o.MaxBytes, s.words, s.symmetric(), s.heavy)
			for _, p := range s.parts {
				fmt.Fprintf(&b, "    words %d to %d, group %d, scale %.6g, signs %v\n", p.from, p.to, p.group, p.scale, p.signs)
			}
			place := s.Placement()
			fmt.Fprintf(&b, "    places %v, linked %v\n", place.places, place.linked())
			sums := make([]separation, len(s.groups))
			for i := range 10 {
				s.between(i, (7*i+3)%11, sums)
				fmt.Fprintf(&b, "    %d to %d: %.6g\n", i, (7*i+3)%11, sums)
			}
			for _, signs := range []bool{false, o.Signs} {
				list, err := s.Order(t.Context(), signs, 2)
				testmodel.OK(t, err)
				fmt.Fprintf(&b, "    order %v: %v toggles %.6g of %.6g\n", signs, list, toggles(t, s, list, signs), toggles(t, s, nil, signs))
				if list == nil {
					list = Identity(11)
				}
				links, err := s.Toggles(t.Context(), place, place.Pick(list), 2)
				testmodel.OK(t, err)
				fixed := make([]bool, 11)
				fixed[4], fixed[0] = true, true
				flipped := links.Signs(fixed)
				fmt.Fprintf(&b, "    flipped %v: %.6g\n", flipped, links.Sum(flipped))
			}
		}
	}
	for _, most := range []int{-1, 0, 1, 2, 3, 7} {
		for _, u := range spread(append(all["rows and columns"], all["blocks and rows"]...), most) {
			fmt.Fprintf(&b, "%d: %s %d×%d\n", most, u.Format.DType, u.Rows, u.Cols)
		}
	}
	goldenfile.Same(t, "testdata/orders.txt", []byte(b.String()))
}

// TestFaultsAreTold: a failure while labels are sketched or ordered ends with its error.
func TestFaultsAreTold(t *testing.T) {
	for name, uses := range someUses() {
		t.Run(name, func(t *testing.T) {
			testmodel.EachFault(t, func(ctx context.Context, f *testmodel.Faults) error {
				var faulty []*Use
				for _, u := range uses {
					u := *u
					u.Guard = func(work func() error) error {
						if err := f.Next(); err != nil {
							return err
						}
						return work()
					}
					faulty = append(faulty, &u)
				}
				s, err := NewSketch(ctx, faulty, SketchOptions{Labels: 11, MaxBytes: 1 << 16, Signs: true, Workers: 1})
				if err != nil {
					return err
				}
				_, err = s.Order(ctx, true, 1)
				return err
			})
		})
	}
}

// TestNothingToSketch: a sketch without labels or uses is refused. Labels without signs have no bits in a sketch of signs alone, and no
// better order.
func TestNothingToSketch(t *testing.T) {
	uses := someUses()["rows"]
	for labels, uses := range map[int][]*Use{0: uses, -1: uses, 11: nil} {
		if _, err := NewSketch(t.Context(), uses, SketchOptions{Labels: labels, MaxBytes: 1 << 10}); err == nil {
			t.Errorf("a sketch of %d labels and %d uses is made", labels, len(uses))
		}
	}
	if one := sketchOf(t, SketchOptions{}, useOf(testmodel.Matrix(weights.BF16, 2, []float32{1, 2}), 0, singly(1))); one.words == 0 {
		t.Error("one label has no bits")
	}
	if Along(nil, nil) != nil || len(Along(lanes, [][]int{{}})) != 2 {
		t.Error("labels without positions change the lags")
	}
}

// TestFirstLabelWithoutSign: the first label may have no position whose sign is free, and labels may have different numbers of them.
func TestFirstLabelWithoutSign(t *testing.T) {
	x := testmodel.Matrix(weights.BF16, 2, []float32{1, 2, -3, 4, 5, -6, 7, 8, 1, -2, 3, 4, -5, 6, 7, -8})
	for _, only := range []bool{false, true} {
		u := useOf(x, 0, [][]int{{0, 1}, {2, 3}, {4, 5}, {6, 7}})
		u.Dir = []int{0, 0, 1, 1, 1, 0, 1, 1}
		s, err := NewSketch(t.Context(), []*Use{u}, SketchOptions{Labels: 4, MaxBytes: 1 << 12, Signs: true, OnlySigns: only, Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Order(t.Context(), true, 1); err != nil {
			t.Error(err)
		}
		sum := make([]separation, len(s.groups))
		s.between(1, 3, sum)
		if only && sum[0].alike+sum[0].opposed == 0 {
			t.Error("the signs of labels 1 and 3 are not compared")
		}
		if s.between(0, 1, sum); only && sum[0] != (separation{}) {
			t.Errorf("label 0 has no sign, and %+v", sum[0])
		}
	}
}
