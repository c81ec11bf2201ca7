package sgemm

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// exactFMA is a·b+c by exact arithmetic, rounded once; a, b and c are finite.
func exactFMA(a, b, c float32) float32 {
	exact := func(v float32) *big.Float { return new(big.Float).SetPrec(600).SetFloat64(float64(v)) }
	sum := exact(a)
	sum.Mul(sum, exact(b)).Add(sum, exact(c))
	if sum.Sign() == 0 { // big and IEEE 754 agree on zeros of float64, in which the product is exact
		return float32(float64(a)*float64(b) + float64(c))
	}
	f, _ := sum.Float32()
	return f
}

func finite(f float32) bool { return f-f == 0 }

func sameBits(a, b float32) bool {
	return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b
}

func checkFMA(t rapid.TB, a, b, c float32) {
	if !finite(a) || !finite(b) || !finite(c) {
		want := float32(math.FMA(float64(a), float64(b), float64(c)))
		if got := fma(a, b, c); !sameBits(got, want) {
			t.Fatalf("fma(%g, %g, %g) = %g, want %g", a, b, c, got, want)
		}
		return
	}
	if got, want := fma(a, b, c), exactFMA(a, b, c); !sameBits(got, want) {
		t.Fatalf("fma(%x, %x, %x) = %x, exactly rounded %x", a, b, c, got, want)
	}
}

// hard returns a float32 of few bits, or at an end of the range of exponents, or any bits at all.
func hard(r *rand.Rand) float32 {
	bits := r.Uint32()
	switch r.IntN(5) {
	case 0: // sparse significand: products and sums fall on halves
		bits &= 0xFF800000 | 1<<22 | 1<<11 | 1
	case 1: // near 1
		bits = bits&0x807FFFFF | 0x3F800000
	case 2: // subnormal, or next to it
		bits &= 0x80FFFFFF
	case 3: // very large
		bits |= 0x7E000000
	}
	return math.Float32frombits(bits)
}

func TestFMA(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// rapid's own numbers are mostly small, which for bits means subnormal.
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		for range 100 {
			a, b, c := hard(r), hard(r), hard(r)
			checkFMA(t, a, b, c)
			if p := a * b; finite(p) { // cancellation
				checkFMA(t, a, b, -p)
				checkFMA(t, a, b, -math.Nextafter32(p, c))
			}
		}
	})
}

// The product lies halfway between two float32, or just beside; c is too small to be seen by
// float64, and decides. Without roundToOdd every one of these is wrong on one side.
func TestFMAHalfway(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// An odd integer of 25 bits is halfway between two float32.
		x := float32(rapid.IntRange(1<<11, 1<<12-1).Draw(t, "x")*2 + 1)
		y := float32(rapid.IntRange(1<<11, 1<<12-1).Draw(t, "y")*2 + 1)
		exp := rapid.IntRange(-149-12, 127-26).Draw(t, "exponent")
		scale := func(f float32, e int) float32 { return float32(math.Ldexp(float64(f), e)) }
		a, b := scale(x, exp/2), scale(y, exp-exp/2)
		sign := rapid.SampledFrom([]float32{1, -1}).Draw(t, "sign")
		small := scale(1, rapid.IntRange(-149, max(exp, -149)).Draw(t, "c"))
		checkFMA(t, sign*a, b, small)
		checkFMA(t, sign*a, b, -small)
		checkFMA(t, small, small, sign*a)
		checkFMA(t, small, -small, sign*a)
	})
}

// Among subnormal numbers c and its neighbour are 2^-149 apart, and the product is half of that but
// for less than float64 can add to c.
func TestFMAHalfwaySubnormal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := math.Float32frombits(uint32(rapid.IntRange(1<<10, 1<<23-1).Draw(t, "c")))
		little := float32(rapid.IntRange(0, 4).Draw(t, "little")) * 0x1p-23
		a, b := 0x1p-75*(1+little), 0x1p-75*(1-little)
		for _, sign := range []float32{1, -1} {
			checkFMA(t, a, b, sign*c)
			checkFMA(t, -a, b, sign*c)
		}
	})
}

func FuzzFMA(f *testing.F) {
	for _, v := range [][3]float32{
		{1 + 0x1p-12, 1 + 0x1p-12, 0x1p-80},                     // halfway but for c
		{1 + 0x1p-12, 1 + 0x1p-12, -0x1p-80},                    // the same from below
		{0x1p-75, 0x1p-75, 0},                                   // half the smallest subnormal
		{0x1.000002p-75, 0x1.fffffcp-76, 0x201p-149},            // just below halfway
		{0x1p-75, 0x1p-75, 0x1p-149},                            // halfway among subnormals
		{0x1.fffffep63, 0x1.000002p64, math.MaxFloat32},         // overflow
		{0x1p103, 1, math.MaxFloat32},                           // halfway to infinity
		{0x1.fffffep102, 1, math.MaxFloat32},                    // just below that
		{1, -1, 1},                                              // cancellation
		{0, -1, float32(math.Copysign(0, -1))},                  // negative zero
		{float32(math.Inf(1)), 0, 1},                            // NaN
		{float32(math.Inf(1)), 1, float32(math.Inf(-1))},        // NaN
		{float32(math.Inf(1)), -1, math.MaxFloat32},             // infinity
		{math.MaxFloat32, math.MaxFloat32, float32(math.NaN())}, // NaN
	} {
		f.Add(v[0], v[1], v[2])
	}
	f.Fuzz(func(t *testing.T, a, b, c float32) { checkFMA(t, a, b, c) })
}
