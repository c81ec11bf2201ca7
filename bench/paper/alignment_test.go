package paper

import (
	"math"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost/pattern"
	"github.com/lowtoggle/lowtoggle/weights"
)

func TestAlign(t *testing.T) {
	for _, c := range []struct {
		a, b   string
		bits   float64
		weight float64
	}{
		{"zeros", "zeros", 1, 0},
		{"const(1)", "const(1)", 1, 7. / 16},                         // BF16 0x3F80
		{"const(1)", "zeros", 9. / 16, 7. / 16},                      // seven bits differ
		{"const(1) | flip(1)", "const(1)", 0, 9. / 16},               // all do
		{"const(1) | random(low=16)", "const(1)", 0.5, 0.5},          // half of them do
		{"const(1) | sparse(0.5)", "const(1)", 1 - 3.5/16, 3.5 / 16}, // seven differ half the time
		{"const(1) | sparse(0.5)", "zeros", 1 - 3.5/16, 3.5 / 16},    // likewise
		{"const(1) | sparse(0.5)", "const(1) | sparse(0.5)", 1 - 3.5/16, 3.5 / 16},
	} {
		got, err := Align(t.Context(), pattern.MustParse(c.a), pattern.MustParse(c.b), weights.BF16)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(got.Bits-c.bits) > 0.01 || math.Abs(got.A-c.weight) > 0.01 {
			t.Errorf("%s and %s: %+v, want %v and %v", c.a, c.b, got, c.bits, c.weight)
		}
	}
}

// TestAlignPairs compares the counts with a loop over all pairs of elements.
func TestAlignPairs(t *testing.T) {
	a, b := pattern.MustParse("normal(3,1)"), pattern.MustParse("normal(0,1) | sort(0.5)")
	got, err := Align(t.Context(), a, b, weights.I8)
	if err != nil {
		t.Fatal(err)
	}
	make := func(p pattern.Pattern, seed uint64) []byte {
		data, err := p.Generate(t.Context(), pattern.Spec{DType: weights.I8, Rows: sampled, Cols: sampled, Seed: seed}, 1)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	x, w, equal := make(a, 2*firstSeed), make(b, 2*firstSeed+1), 0
	for m := range sampled {
		for n := range sampled {
			for k := range sampled {
				same := ^(x[m*sampled+k] ^ w[n*sampled+k])
				for ; same != 0; same &= same - 1 {
					equal++
				}
			}
		}
	}
	if want := float64(equal) / (8 * sampled * sampled * sampled); math.Abs(got.Bits-want) > 1e-12 {
		t.Errorf("%v, pair by pair %v", got.Bits, want)
	}
}

func TestAlignError(t *testing.T) {
	if _, err := Align(t.Context(), pattern.Pattern{}, pattern.MustParse("zeros"), weights.BF16); err == nil {
		t.Error("no error for a pattern that is none")
	}
}
