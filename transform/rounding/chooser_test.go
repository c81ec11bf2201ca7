package rounding

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
	"pgregory.net/rapid"
)

// anyValues draws values of a format: of every exponent, near its limits, subnormal, zero.
func anyValues(t *rapid.T, f weights.Format, n int) []float32 {
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "values"), 0))
	v := make([]float32, n)
	for i := range v {
		b := uint32(rng.Uint64() & (1<<f.Bits - 1))
		if !f.Finite(b) {
			b = f.MaxFinite - uint32(rng.IntN(2))
		}
		v[i] = f.Value(b)
	}
	return v
}

func choose(t rapid.TB, c Chooser, targets []float32, d float64) []float32 {
	fn, err := c.Begin(len(targets), 1)
	if err != nil {
		t.Fatal(err)
	}
	v := append([]float32(nil), targets...)
	fn(Column{D: d, T: v})
	return v
}

// TestLikePasses: on stored values, choosers give the results of the passes.
func TestLikePasses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := format(t, rapid.SampledFrom(allTypes).Draw(t, "type"))
		targets := anyValues(t, f, 200)
		bits := rapid.IntRange(0, f.Zeroable()).Draw(t, "bits")
		exp := rapid.OneOf(rapid.IntRange(-20, 20), rapid.IntRange(-160, 160), rapid.IntRange(-1000, 1000)).Draw(t, "exponent")
		exps := make([]int, len(targets))
		for i := range exps {
			exps[i] = exp
		}
		grid := f.Grid(exp)
		byGrid, byBits := choose(t, Grid{f, exps}, targets, 1), choose(t, Bits{f, bits}, targets, 1)
		same := choose(t, Stored{f}, targets, 1)
		for i, v := range targets {
			b := f.FromValue(v)
			for _, c := range []struct {
				name string
				got  float32
				want uint32
			}{{"grid", byGrid[i], grid.Nearest(b)}, {"bits", byBits[i], f.Round(b, bits, false)}, {"stored", same[i], b}} {
				if want := f.Value(c.want); math.Float32bits(c.got) != math.Float32bits(want) {
					t.Errorf("%s of %g in %s with 2^%d, %d bits is %g, want %g", c.name, v, f.DType, exp, bits, c.got, want)
				}
			}
		}
	})
}

// TestNearest: for other targets, choosers choose the nearest value, and it is a value of the format.
func TestNearest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := format(t, rapid.SampledFrom(allTypes).Draw(t, "type"))
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "targets"), 0))
		targets := make([]float32, 200)
		for i := range targets {
			targets[i] = float32(rng.NormFloat64() * math.Exp2(float64(rng.IntN(300)-160)))
			if targets[i]-targets[i] != 0 {
				targets[i] = math.MaxFloat32
			}
		}
		free := Trellis{Format: f, Rates: risingRates(f), Lambda: 0, Scale: 1}
		for name, v := range map[string][]float32{
			"stored": choose(t, Stored{f}, targets, 1), "without lambda": choose(t, free, targets, 1),
		} {
			for i, got := range v {
				if want := stored(f, targets[i]); math.Float32bits(got) != math.Float32bits(want) {
					t.Errorf("%s: %g in %s becomes %g, want %g", name, targets[i], f.DType, got, want)
				}
			}
		}
		// A lambda too small to matter keeps the smallest error, but maybe not the value.
		free.Lambda = 1e-36
		for i := range targets {
			targets[i] = float32(rng.NormFloat64() * math.Exp2(float64(rng.IntN(24)-12)))
		}
		for i, got := range choose(t, free, targets, 1) {
			least := math.Abs(float64(targets[i] - stored(f, targets[i])))
			if d := math.Abs(float64(targets[i] - got)); d > least || got != stored(f, got) {
				t.Errorf("%g in %s becomes %g, not %g", targets[i], f.DType, got, stored(f, targets[i]))
			}
		}
		coarse := rapid.IntRange(-30, 30).Draw(t, "exponent")
		exps := make([]int, len(targets))
		for i := range exps {
			exps[i] = coarse
		}
		for i, got := range choose(t, Grid{f, exps}, targets, 1) {
			if got != stored(f, got) || math.Mod(float64(got), math.Ldexp(1, coarse)) != 0 {
				t.Errorf("%g of %g is not on the grid of 2^%d in %s", got, targets[i], coarse, f.DType)
			}
		}
	})
}

func TestSparse(t *testing.T) {
	f := format(t, weights.BF16)
	w := normal(1, 300, 40)
	keep := make([]bool, len(w.Data))
	for i := range keep {
		keep[i] = i*7%11 < 5
	}
	q := must(Round(t.Context(), w, Flat(40), Sparse{Stored{f}, keep}, Options{}))(t)
	for i, v := range w.Data {
		want := stored(f, v)
		if !keep[i] {
			want = 0
		}
		if q.Data[i] != want {
			t.Fatalf("element %d is %g, want %g", i, q.Data[i], want)
		}
	}
}

func TestParameters(t *testing.T) {
	f := format(t, weights.BF16)
	rates := func(change func(*Rates)) Trellis {
		r := risingRates(f)
		change(&r)
		return Trellis{Format: f, Rates: r, Lambda: 1, Scale: 1}
	}
	for _, c := range []Chooser{
		Bits{f, 8}, Bits{f, -1}, Grid{f, []int{1}}, Grid{f, []int{0, 1001}}, Sparse{Stored{f}, nil},
		Trellis{Format: f},
		Trellis{Format: f, Rates: risingRates(f), Lambda: -1},
		Trellis{Format: f, Rates: risingRates(f), Scale: math.Inf(1)},
		rates(func(r *Rates) { r.Significant[3] = 0.1 }),
		rates(func(r *Rates) { r.Significant[0] = -0.1 }),
		rates(func(r *Rates) { r.Differ = 1 }),
		rates(func(r *Rates) { r.Sign, r.Run = 1, 3 }),
		rates(func(r *Rates) { r.Sign, r.Run, r.Lanes = 1, 64, 8 }),
		rates(func(r *Rates) { r.Lanes = -1 }),
		rates(func(r *Rates) { r.Line = math.NaN() }),
	} {
		if _, err := c.Begin(2, 1); err == nil {
			t.Errorf("no error of %+v", c)
		}
		if _, err := Round(t.Context(), normal(1, 2, 1), Flat(1), c, Options{}); err == nil {
			t.Errorf("Round takes %+v", c)
		}
	}
}
