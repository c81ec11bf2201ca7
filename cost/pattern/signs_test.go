package pattern

import (
	"math"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
	"pgregory.net/rapid"
)

func TestRandomSigns(t *testing.T) {
	sum := 0.0
	for _, x := range values(t, "const(1) | signs(random)", Spec{weights.F16, 256, 256, 4}) {
		if sum += x; math.Abs(x) != 1 {
			t.Fatalf("the sign of 1 gave %g", x)
		}
	}
	if math.Abs(sum) > 6*256 {
		t.Errorf("%g more positive than negative ones", sum)
	}
}

func TestSignsOfRowsAndColumns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSpec(t)
		f, _ := s.DType.Format()
		axis := rapid.SampledFrom([]string{"rows", "columns"}).Draw(t, "axis")
		source := MustParse("uniform(-3,2) | quantize(1)")
		before, err := source.Generate(t.Context(), s, 1)
		if err != nil {
			t.Fatal(err)
		}
		p, _ := source.With("signs(" + axis + ")")
		after, err := p.Generate(t.Context(), s, 1)
		if err != nil {
			t.Fatal(err)
		}
		sums := make([]int, s.Rows+s.Cols)
		line := func(i int) int {
			if axis == "rows" {
				return i / s.Cols
			}
			return i % s.Cols
		}
		for i := range s.Rows * s.Cols {
			switch v := f.Value(f.Elem(before, i)); {
			case v > 0:
				sums[line(i)]++
			case v < 0:
				sums[line(i)]--
			}
		}
		for i := range s.Rows * s.Cols {
			want := f.Value(f.Elem(before, i))
			if sums[line(i)] < 0 {
				want = -want
			}
			if got := f.Value(f.Elem(after, i)); got != want {
				t.Fatalf("element %d of %s with the sum %d became %g, want %g", i, axis, sums[line(i)], got, want)
			}
		}
	})
}
