package elementary

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"testing"
)

// functions are the functions of this package and of package math, with the range of their arguments.
var functions = map[string]struct {
	here, there func(float64) float64
	low, high   float64
	most        float64 // largest relative error
}{
	"Exp":   {Exp, math.Exp, -700, 700, 2e-15},
	"Exp2":  {Exp2, math.Exp2, -1000, 1000, 1e-15},
	"Expm1": {Expm1, math.Expm1, -3, 3, 2e-15},
	"Log":   {func(x float64) float64 { return Log(math.Exp(x)) }, func(x float64) float64 { return math.Log(math.Exp(x)) }, -700, 700, 1e-15},
	"near":  {Log, math.Log, 0.9, 1.1, 1e-15},
	"Log2":  {func(x float64) float64 { return Log2(math.Exp2(x)) }, func(x float64) float64 { return math.Log2(math.Exp2(x)) }, -1000, 1000, 1e-14},
	"Log10": {func(x float64) float64 { return Log10(math.Exp(x)) }, func(x float64) float64 { return math.Log10(math.Exp(x)) }, -700, 700, 1e-15},
	"Log1p": {Log1p, math.Log1p, -0.9, 3, 2e-15},
	"small": {func(x float64) float64 { return Log1p(x * 1e-9) }, func(x float64) float64 { return math.Log1p(x * 1e-9) }, -1, 1, 2e-15},
	"Pow":   {func(x float64) float64 { return Pow(math.Abs(x), 2.3) }, func(x float64) float64 { return math.Pow(math.Abs(x), 2.3) }, -9, 9, 2e-14},
	"root":  {func(x float64) float64 { return Pow(10000, x) }, func(x float64) float64 { return math.Pow(10000, x) }, -1, 1, 2e-14},
	"Erfc":  {Erfc, math.Erfc, -12, 3, 1e-14},
	"tail":  {Erfc, math.Erfc, 3, 9.99, 1e-9},
}

func TestAgreesWithMath(t *testing.T) {
	for name, f := range functions {
		r := rand.New(rand.NewPCG(1, 2))
		worst, at := 0.0, 0.0
		for range 100_000 {
			x := f.low + (f.high-f.low)*r.Float64()
			want := f.there(x)
			if e := math.Abs(f.here(x)-want) / math.Max(math.Abs(want), 1e-300); !(e <= worst) {
				worst, at = e, x
			}
		}
		t.Logf("%s: relative error %.2g", name, worst)
		if !(worst <= f.most) {
			t.Errorf("%s(%v) is %v, want %v", name, at, f.here(at), f.there(at))
		}
	}
	r := rand.New(rand.NewPCG(3, 4))
	for i := range 100_000 {
		x := (r.Float64()*2 - 1) * []float64{1, 100, 1e6}[i%3]
		s, c := Sincos(x)
		wantS, wantC := math.Sincos(x)
		if math.Abs(s-wantS) > 1e-15 || math.Abs(c-wantC) > 1e-15 {
			t.Fatalf("Sincos(%v) is %v, %v, want %v, %v", x, s, c, wantS, wantC)
		}
	}
}

// TestSpecialCases: special cases agree with package math, and exact values are exact.
func TestSpecialCases(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	xs := []float64{0, math.Copysign(0, -1), 1, -1, inf, -inf, nan, 1e300, -1e300, 1e-300, -2, 4, 1024}
	same := func(a, b float64) bool {
		return a == b && math.Signbit(a) == math.Signbit(b) || a != a && b != b || math.Abs(a-b) <= 1e-14*math.Abs(b)
	}
	for name, f := range map[string][2]func(float64) float64{"Exp": {Exp, math.Exp}, "Exp2": {Exp2, math.Exp2}, "Expm1": {Expm1, math.Expm1},
		"Log": {Log, math.Log}, "Log2": {Log2, math.Log2}, "Log1p": {Log1p, math.Log1p}, "Erfc": {Erfc, math.Erfc}} {
		for _, x := range xs {
			if have, want := f[0](x), f[1](x); !same(have, want) {
				t.Errorf("%s(%v) is %v, want %v", name, x, have, want)
			}
		}
	}
	for _, x := range xs {
		for _, y := range xs {
			if x < 0 && y-y == 0 {
				continue // outside the domain
			}
			if have, want := Pow(x, y), math.Pow(x, y); !same(have, want) && math.Abs(have-want) > 1e-12*math.Abs(want) {
				t.Errorf("Pow(%v, %v) is %v, want %v", x, y, have, want)
			}
		}
		s, c := Sincos(x)
		if wantS, wantC := math.Sincos(x); math.Abs(x) < 1e6 && (!same(s, wantS) || !same(c, wantC)) || x != x && s == s {
			t.Errorf("Sincos(%v) is %v, %v", x, s, c)
		}
	}
	if x := math.SmallestNonzeroFloat64; math.Abs(Log(x)+1074*math.Ln2) > 1e-12 { // math.Log is wrong there on amd64
		t.Errorf("Log(%v) is %v", x, Log(x))
	}
	for e := -1000; e < 1000; e++ {
		if x := math.Ldexp(1, e); Log2(x) != float64(e) || Exp2(float64(e)) != x {
			t.Errorf("2^%d has the logarithm %v, the power of %d is %v", e, Log2(x), e, Exp2(float64(e)))
		}
	}
}

// TestBitsAreFrozen: on every machine, the results have the bits of amd64.
func TestBitsAreFrozen(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	h := sha256.New()
	put := func(v float64) { h.Write(binary.LittleEndian.AppendUint64(nil, math.Float64bits(v))) }
	for range 100_000 {
		x := r.Float64()
		for _, f := range []func(float64) float64{Exp, Exp2, Expm1, Log, Log2, Log10, Log1p, Erfc} {
			put(f(40 * x))
			put(f(x))
		}
		s, c := Sincos(1e5 * x)
		put(s)
		put(c)
		put(Pow(9*x, 3*x))
		put(Hypot(x, float64(3*x)-1))
	}
	const want = "cc052f6a494476df584546f51fb8b61ffb2e0b53b5c8483ba8131388c5854adf"
	if have := hex.EncodeToString(h.Sum(nil)); have != want {
		t.Errorf("the results have the SHA-256 %s", have)
	}
}

func BenchmarkErfc(b *testing.B) {
	y := 0.0
	for i := range b.N {
		y += Erfc(float64(i&255)/64 - 2)
	}
	_ = y
}

func BenchmarkPow(b *testing.B) {
	y := 0.0
	for i := range b.N {
		y += Pow(float64(i&255+1)/64, 1.7)
	}
	_ = y
}
