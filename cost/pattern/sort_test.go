package pattern

import (
	"bytes"
	"context"
	"math"
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
	"pgregory.net/rapid"
)

// before compares elements by the definition of the order: by value, −0 before 0, NaN beyond all values of its sign.
func before(f weights.Format, a, b uint32) int {
	place := func(b uint32) (class int, v float64, bits int64) {
		v = float64(f.Value(b))
		mag := int64(b &^ f.SignMask())
		negative := b&f.SignMask() != 0
		if negative {
			mag = -mag
		}
		switch {
		case !math.IsNaN(v):
			if v == 0 && negative {
				return 0, 0, -1
			}
			return 0, v, 0
		case negative:
			return -1, 0, mag
		default:
			return 1, 0, mag
		}
	}
	classA, vA, bitsA := place(a)
	classB, vB, bitsB := place(b)
	switch {
	case classA != classB:
		return classA - classB
	case vA < vB || vA == vB && bitsA < bitsB:
		return -1
	case vA > vB || vA == vB && bitsA > bitsB:
		return 1
	}
	return 0
}

func TestKeysOrderElements(t *testing.T) {
	for _, d := range []weights.DType{weights.BF16, weights.F16, weights.F8E4M3, weights.F8E5M2, weights.I8} {
		f, _ := d.Format()
		o := newOrdering(f)
		all := make([]uint32, 1<<f.Bits)
		for b := range all {
			all[b] = uint32(b)
			if k := o.key(uint32(b)); k>>f.Bits != 0 || o.element(k) != uint32(b) {
				t.Fatalf("%s: %#x has the key %#x, which gives %#x", d, b, k, o.element(k))
			}
		}
		slices.SortFunc(all, func(a, b uint32) int { return before(f, a, b) })
		for k, b := range all {
			if o.key(b) != uint32(k) {
				t.Fatalf("%s: %#x is element %d in order and has the key %d", d, b, k, o.key(b))
			}
		}
	}
}

// naive moves the n lowest elements to the front by a stable sort of all elements.
func naive(f weights.Format, data []byte, n int) []byte {
	places := make([]int, len(data)/(f.Bits/8))
	for i := range places {
		places[i] = i
	}
	ranked := slices.Clone(places)
	slices.SortStableFunc(ranked, func(i, j int) int { return before(f, f.Elem(data, i), f.Elem(data, j)) })
	lowest := map[int]bool{}
	sorted := make([]byte, len(data))
	for to, from := range ranked[:n] {
		lowest[from] = true
		f.SetElem(sorted, to, f.Elem(data, from))
	}
	to := n
	for _, from := range places {
		if !lowest[from] {
			f.SetElem(sorted, to, f.Elem(data, from))
			to++
		}
	}
	return sorted
}

// TestSortLowestEqualsNaive: with many and few ties, for lengths that are sorted by comparison, by counting, or by
// digits.
func TestSortLowestEqualsNaive(t *testing.T) {
	if testing.Short() {
		t.Skip("slow, and without shared data for the race detector")
	}
	check := func(t rapid.TB, f weights.Format, data []byte, n int) {
		want, got := naive(f, data, n), bytes.Clone(data)
		if err := sortLowest(context.Background(), f, got, n); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%s: the lowest %d of\n%x give\n%x (%v), want\n%x", f.DType, n, data, got, err, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		f, _ := rapid.SampledFrom(types).Draw(t, "type").Format()
		few := rapid.SliceOfN(rapid.Uint32(), 1, 5).Draw(t, "values")
		data := make([]byte, f.Bits/8*rapid.IntRange(0, 600).Draw(t, "elements"))
		for i := range len(data) / (f.Bits / 8) {
			f.SetElem(data, i, rapid.SampledFrom(few).Draw(t, "element"))
		}
		check(t, f, data, rapid.IntRange(0, len(data)/(f.Bits/8)).Draw(t, "lowest"))
	})
	for _, d := range types {
		f, _ := d.Format()
		for _, text := range []string{"normal(0,1)", "set(3,normal(0,40)) | sparse(0.5) | signs(random)"} {
			data, err := MustParse(text).Generate(t.Context(), Spec{d, 70, 1000, 1}, 1)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range []int{35_000, 70_000} {
				check(t, f, data, n)
			}
		}
	}
}

// TestSortPlaces shows the meaning of by= on a small matrix.
func TestSortPlaces(t *testing.T) {
	source := []float64{
		5, 1, 8,
		2, 7, 3,
	}
	for step, want := range map[string][]float64{
		"sort":                     {1, 2, 3, 5, 7, 8},
		"sort(0)":                  {5, 1, 8, 2, 7, 3},
		"sort(0.5)":                {1, 2, 3, 5, 8, 7},
		"sort(by=columns)":         {1, 3, 7, 2, 5, 8},
		"sort(0.5,by=columns)":     {1, 3, 7, 2, 5, 8}, // 5, 7, 8 remain of 5 2 1 7 8 3
		"sort(by=within)":          {1, 5, 8, 2, 3, 7},
		"sort(0.4,by=within)":      {1, 5, 8, 2, 7, 3},
		"transpose":                {5, 2, 1, 7, 8, 3},
		"signs(rows)":              {5, 1, 8, 2, 7, 3},
		"repeat(rows=2)":           {5, 1, 8, 5, 1, 8},
		"repeat(columns=2)":        {5, 5, 8, 2, 2, 3},
		"cycle(columns=2)":         {5, 1, 5, 2, 7, 2},
		"cycle(rows=1)":            {5, 1, 8, 5, 1, 8},
		"scale(-1)|signs(rows)":    {5, 1, 8, 2, 7, 3},
		"shift(-4)|signs(rows)":    {1, -3, 4, 2, -3, 1},
		"shift(-6)|signs(columns)": {1, -5, 2, 4, 1, -3},
	} {
		if got := stepped(t, source, 2, 3, step); !slices.Equal(got, want) {
			t.Errorf("%s gives %v, want %v", step, got, want)
		}
	}
}
