package pattern

import (
	"math"
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
)

// generate makes a matrix, and also returns its format.
func generate(t testing.TB, text string, s Spec) ([]byte, weights.Format) {
	t.Helper()
	data, err := MustParse(text).Generate(t.Context(), s, 2)
	if err != nil {
		t.Fatal(err)
	}
	f, _ := s.DType.Format()
	return data, f
}

// TestArithmetic compares steps with their definitions, on small matrices without tables and on large ones with
// tables.
func TestArithmetic(t *testing.T) {
	if testing.Short() {
		t.Skip("slow, and without shared data for the race detector")
	}
	const source = "normal(0,30)"
	for step, of := range map[string]func(f weights.Format, b uint32) uint32{
		"shift(2.5)":        arithmeticTwin(func(v float64) float64 { return v + 2.5 }),
		"scale(0.3)":        arithmeticTwin(func(v float64) float64 { return v * 0.3 }),
		"scale(-1e30)":      arithmeticTwin(func(v float64) float64 { return v * -1e30 }),
		"abs":               arithmeticTwin(math.Abs),
		"clip(10)":          arithmeticTwin(func(v float64) float64 { return math.Max(-10, math.Min(10, v)) }),
		"quantize(4)":       arithmeticTwin(func(v float64) float64 { return math.Trunc((v+math.Copysign(2, v))/4)*4 + 0 }),
		"round(2)":          func(f weights.Format, b uint32) uint32 { return f.Round(b, min(2, f.Zeroable()), false) },
		"round(2,truncate)": func(f weights.Format, b uint32) uint32 { return f.Round(b, min(2, f.Zeroable()), true) },
		"round(23)":         func(f weights.Format, b uint32) uint32 { return f.Round(b, f.Zeroable(), false) },
		"zero(low=3)":       func(_ weights.Format, b uint32) uint32 { return b &^ 7 },
		"zero(high=3)":      func(f weights.Format, b uint32) uint32 { return b & (1<<(f.Bits-3) - 1) },
		"zero(low=8)":       func(_ weights.Format, b uint32) uint32 { return b >> 8 << 8 },
		"zero(high=0)":      func(_ weights.Format, b uint32) uint32 { return b },
	} {
		for _, d := range types {
			for _, n := range []int{5, 300} {
				s := Spec{d, n, n, 2}
				before, f := generate(t, source, s)
				after, _ := generate(t, source+"|"+step, s)
				for i := range n * n {
					b, got := f.Elem(before, i), f.Elem(after, i)
					if v := math.Abs(float64(f.Value(b))); step == "quantize(4)" && math.Mod(v, 4) == 2 {
						continue // a tie, which the definition here rounds away from zero
					}
					if want := of(f, b); got != want {
						t.Fatalf("%s %s: %#x became %#x, want %#x", d, step, b, got, want)
					}
				}
			}
		}
	}
}

func arithmeticTwin(of func(float64) float64) func(weights.Format, uint32) uint32 {
	return func(f weights.Format, b uint32) uint32 { return f.FromValue(float32(of(float64(f.Value(b))))) }
}

func TestQuantizeTiesGoToEven(t *testing.T) {
	if got, want := stepped(t, []float64{1, 3, 5, -1, -3, 0.9}, 1, 6, "quantize(2)"), []float64{0, 4, 4, 0, -4, 0}; !slices.Equal(got, want) || math.Signbit(got[3]) {
		t.Errorf("%v, want %v without a negative zero", got, want)
	}
}

// TestGridStepsFollowRows: every row has the step of the pass grid.
func TestGridStepsFollowRows(t *testing.T) {
	for _, d := range types {
		s := Spec{d, 9, 400, 1}
		before, f := generate(t, "normal(0,3) | repeat(rows=3) | sparse(0.3,block=3x1)", s)
		after, _ := generate(t, "normal(0,3) | repeat(rows=3) | sparse(0.3,block=3x1) | grid(4)", s)
		width := len(before) / s.Rows
		for r := range s.Rows {
			sum := 0.0
			for i := range s.Cols {
				v := float64(f.Value(f.Elem(before[r*width:], i)))
				sum += v * v
			}
			e := int(math.Round(math.Log2(math.Sqrt(sum/float64(s.Cols)) / 4)))
			for i := range s.Cols {
				b := f.Elem(before[r*width:], i)
				if got, want := f.Elem(after[r*width:], i), f.Grid(e).Nearest(b); got != want {
					t.Fatalf("%s row %d: %#x became %#x, want a multiple of 2^%d, %#x", d, r, b, got, e, want)
				}
			}
		}
	}
}

func TestSparseBlocks(t *testing.T) {
	const n = 512
	for text, block := range map[string][2]int{"sparse(0.3)": {1, 1}, "sparse(0.3,block=16x8)": {16, 8}, "sparse(0.3,block=1x64)": {1, 64}} {
		v := values(t, "const(1) | "+text, Spec{weights.BF16, n, n, 4})
		zeroed, blocks := 0, n/block[0]*n/block[1]
		for i, x := range v {
			r, c := i/n, i%n
			if first := v[r/block[0]*block[0]*n+c/block[1]*block[1]]; x != first {
				t.Fatalf("%s: element %d, %d is %g and its block's first %g", text, r, c, x, first)
			}
			if x == 0 && r%block[0] == 0 && c%block[1] == 0 {
				zeroed++
			}
		}
		if expected := 0.3 * float64(blocks); math.Abs(float64(zeroed)-expected) > 6*math.Sqrt(expected*0.7) {
			t.Errorf("%s: %d of %d blocks, want about %.0f", text, zeroed, blocks, expected)
		}
	}
	if v := values(t, "const(1) | sparse(1)", Spec{weights.BF16, 50, 50, 1}); slices.ContainsFunc(v, func(x float64) bool { return x != 0 }) {
		t.Error("nonzero elements remain at share 1")
	}
	if v := values(t, "const(1) | sparse(0)", Spec{weights.BF16, 50, 50, 1}); slices.Contains(v, 0) {
		t.Error("elements are zeroed at share 0")
	}
}
