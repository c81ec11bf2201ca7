package pattern

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
)

// TestNormalsAgainstErfinv compares quantiles with Erfinv, which is inexact for small shares.
func TestNormalsAgainstErfinv(t *testing.T) {
	check := func(p float64) {
		t.Helper()
		u := []float64{p}
		normals(u)
		want := math.Sqrt2 * math.Erfinv(2*p-1)
		if math.Abs(u[0]-want) > 1e-12*math.Max(1, math.Abs(want)) {
			t.Errorf("share %g: %.15g, want %.15g", p, u[0], want)
		}
	}
	for i := 1; i < 10000; i++ {
		check(float64(i) / 10000)
	}
	for _, edge := range []float64{0.075, 0.925} {
		check(math.Nextafter(edge, 0))
		check(edge)
		check(math.Nextafter(edge, 1))
	}
}

// TestUnitsAreOddMultiples: random numbers are odd multiples of 2⁻⁵³ below 1. These lie symmetrically about the middle.
func TestUnitsAreOddMultiples(t *testing.T) {
	u := make([]float64, 1000)
	newDice(5, 1).row(2).units(u, 3)
	for i, v := range u {
		if n := math.Ldexp(v, 53); math.Mod(n, 2) != 1 || n < 0 || v >= 1 {
			t.Fatalf("number %d is %v/2⁵³", i, n)
		}
	}
}

// TestTailsAgainstDistribution: the distribution below a quantile is the given share, down to the smallest share of
// dice.
func TestTailsAgainstDistribution(t *testing.T) {
	for e := -53; e < -4; e++ {
		for _, m := range []float64{1, 1.25, 1.7, math.Exp(-25) * math.Ldexp(1, -e)} {
			p := math.Ldexp(m, e)
			u := []float64{p, 1 - p, 1 - (1 - p)} // the last two have exactly the same distance from their ends
			normals(u)
			if back := math.Erfc(-u[0]/math.Sqrt2) / 2; math.Abs(back-p) > 1e-9*p {
				t.Errorf("share %g: %g lies above a share of %g", p, u[0], back)
			}
			if u[1] != -u[2] {
				t.Errorf("share %g: %g and %g on the other side", p, u[2], u[1])
			}
		}
	}
}

func TestLn(t *testing.T) {
	for e := -60; e <= 1; e++ {
		for i := range 64 {
			x := math.Ldexp(1+float64(i)/64, e)
			if got, want := ln(x), math.Log(x); math.Abs(got-want) > 4e-16*math.Max(1, math.Abs(want)) {
				t.Errorf("ln %g is %.17g, want %.17g", x, got, want)
			}
		}
	}
}

// values returns the values of a pattern's matrix.
func values(t testing.TB, text string, s Spec) []float64 {
	t.Helper()
	data, err := MustParse(text).Generate(t.Context(), s, 2)
	if err != nil {
		t.Fatal(err)
	}
	f, _ := s.DType.Format()
	v := make([]float64, s.Rows*s.Cols)
	for i := range v {
		v[i] = float64(f.Value(f.Elem(data, i)))
	}
	return v
}

// TestNormalDistribution: moments, tails and the Kolmogorov-Smirnov distance of a million elements. The limits are
// exceeded for about one seed in a million.
func TestNormalDistribution(t *testing.T) {
	if testing.Short() {
		t.Skip("slow, and without shared data for the race detector")
	}
	const n = 1 << 20
	for seed := range uint64(3) {
		v := values(t, "normal(3,2)", Spec{weights.F32, 1 << 10, 1 << 10, seed})
		var m [5]float64
		beyond := map[float64]int{}
		for i, x := range v {
			z := (x - 3) / 2
			v[i] = z
			for k, power := 1, z; k < 5; k, power = k+1, power*z {
				m[k] += power / n
			}
			for _, limit := range []float64{1, 2, 3, 4} {
				if math.Abs(z) > limit {
					beyond[limit]++
				}
			}
		}
		for k, want := range [...]struct{ mean, deviation float64 }{1: {0, 1}, 2: {1, math.Sqrt2}, 3: {0, math.Sqrt(15)}, 4: {3, math.Sqrt(96)}} {
			if off := (m[k] - want.mean) / want.deviation * math.Sqrt(n); math.Abs(off) > 5 {
				t.Errorf("seed %d: moment %d is %g, %.1f deviations from %g", seed, k, m[k], off, want.mean)
			}
		}
		for limit, count := range beyond {
			expected := n * math.Erfc(limit/math.Sqrt2)
			if math.Abs(float64(count)-expected) > 5*math.Sqrt(expected) {
				t.Errorf("seed %d: %d elements beyond %gσ, want about %.0f", seed, count, limit, expected)
			}
		}
		slices.Sort(v)
		distance := 0.0
		for i, z := range v {
			below := math.Erfc(-z/math.Sqrt2) / 2
			distance = math.Max(distance, math.Max(below-float64(i)/n, float64(i+1)/n-below))
		}
		if distance*math.Sqrt(n) > 2.7 {
			t.Errorf("seed %d: the distribution is off by %g", seed, distance)
		}
	}
}

// TestNeighboursAreIndependent tests the correlation of elements with their neighbours to the right and below.
func TestNeighboursAreIndependent(t *testing.T) {
	const n = 1 << 10
	v := values(t, "normal(0,1)", Spec{weights.F32, n, n, 5})
	for _, step := range []int{1, 2, n, n + 1, 64 * n} {
		sum := 0.0
		for i := range len(v) - step {
			sum += v[i] * v[i+step]
		}
		if off := sum / math.Sqrt(float64(len(v))); math.Abs(off) > 5 {
			t.Errorf("elements %d apart: correlation is %.1f deviations off", step, off)
		}
	}
}

// TestDiceBits: every bit of a random word is set with probability 1/2, alone and together with every other bit.
func TestDiceBits(t *testing.T) {
	const n = 1 << 16
	var together [64][64]int
	for i := range n {
		word := newDice(1, i%3).row(i / 256).at(i % 256)
		for a := range 64 {
			if word>>a&1 == 0 {
				continue
			}
			for b := range a + 1 {
				together[a][b] += int(word >> b & 1)
			}
		}
	}
	for a := range 64 {
		for b := range a + 1 {
			want := n / 4.
			if a == b {
				want = n / 2.
			}
			if math.Abs(float64(together[a][b])-want) > 6*math.Sqrt(n)/2 {
				t.Errorf("bits %d and %d are set %d times of %d", a, b, together[a][b], n)
			}
		}
	}
}

func TestUniform(t *testing.T) {
	v := values(t, "uniform(-1,3)", Spec{weights.F32, 1 << 10, 1 << 10, 1})
	var counts [16]int
	for _, x := range v {
		if x < -1 || x > 3 {
			t.Fatalf("%g is not between the ends", x)
		}
		counts[min(int((x+1)*4), 15)]++
	}
	for i, c := range counts {
		if math.Abs(float64(c)-1<<16) > 6*math.Sqrt(1<<16) {
			t.Errorf("%d of 2^20 elements in part %d of 16", c, i)
		}
	}
}

// TestSet: a set has at most the given number of values, and all are used.
func TestSet(t *testing.T) {
	for _, n := range []int{1, 2, 7, 64} {
		counts := map[uint32]int{}
		data, err := MustParse("set("+formatNumber(float64(n))+",normal(0,2^10))").Generate(t.Context(), Spec{weights.F32, 64, 64, 3}, 1)
		if err != nil {
			t.Fatal(err)
		}
		for ; len(data) > 0; data = data[4:] {
			counts[binary.LittleEndian.Uint32(data)]++
		}
		if len(counts) != n {
			t.Errorf("%d values in a set of %d", len(counts), n)
		}
		for b, c := range counts {
			if mean := 4096 / float64(n); math.Abs(float64(c)-mean) > 6*math.Sqrt(mean) {
				t.Errorf("%g of %d occurs %d times", math.Float32frombits(b), n, c)
			}
		}
	}
}
