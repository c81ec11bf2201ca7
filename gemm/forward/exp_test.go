package forward

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/decoder"
)

func TestExpIsMathExp(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 200_000 {
		x := (r.Float64()*2 - 1) * 699
		if i%2 == 0 {
			x /= 100
		}
		got, want := exp(x), math.Exp(x)
		if math.Abs(got-want) > 1e-13*want {
			t.Fatalf("exp(%v) is %v, want %v", x, got, want)
		}
	}
	for x, want := range map[float64]float64{0: 1, math.Copysign(0, -1): 1, 1e-300: 1, 700: math.Inf(1), 1e300: math.Inf(1),
		math.Inf(1): math.Inf(1), -700: 0, -1e300: 0, math.Inf(-1): 0} {
		if got := exp(x); got != want {
			t.Errorf("exp(%v) is %v, want %v", x, got, want)
		}
	}
	if got := exp(math.NaN()); got == got {
		t.Errorf("exp(NaN) is %v", got)
	}
}

// ulps is the distance of two floats in units of the last place of the second.
func ulps(got float32, want float64) float64 {
	w := math.Abs(want)
	_, e := math.Frexp(w)
	return math.Abs(float64(got)-want) / math.Ldexp(1, max(e-24, -149))
}

func TestExpScaled(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		row := make([]float32, 1+r.IntN(50))
		spread, scale, largest := r.Float64()*400, float32(r.Float64()), float32(r.Float64()*20)
		for i := range row {
			row[i] = largest - float32(r.Float64()*spread)
		}
		want, total := make([]float64, len(row)), 0.0
		for i, v := range row {
			want[i] = math.Exp(float64((v - largest) * scale))
			total += want[i]
		}
		expScaled(row, scale, largest)
		for i, v := range row {
			if off := ulps(v, want[i]); !(off <= 0.51) {
				t.Fatalf("e^x is %v, want %v: off by %.3f ulp", v, want[i], off)
			}
		}
		sum := 0.0
		for _, v := range row {
			sum += float64(v)
		}
		if math.Abs(sum-total) > 1e-7*total+1e-40 {
			t.Fatalf("the sum is %v, want %v", sum, total)
		}
	}
	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1))} {
		row := []float32{1, bad, 2}
		if inverse := softmax(row); inverse == inverse {
			t.Errorf("softmax with a score of %v gives %v and no NaN", bad, inverse)
		}
	}
	row := []float32{float32(math.Inf(-1)), 3}
	if inverse := softmax(row); inverse != 1 || row[0] != 0 || row[1] != 1 {
		t.Errorf("softmax of a score of -Inf and another: %v, inverse %v", row, inverse)
	}
}

// softmax replaces scores by weights, and returns the inverse of their sum.
func softmax(row []float32) float32 {
	(&attention{Attention: &decoder.Attention{Scale: 1}}).weigh(row, 0)
	return inverseOf(row)
}

func inverseOf(row []float32) float32 {
	var inverse [1]float32
	inverseSums(inverse[:], [][]float32{row})
	return inverse[0]
}

func TestActivations(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 100_000 {
		x := float32(r.NormFloat64() * math.Exp(6*r.Float64()-3))
		v := float64(x)
		if want := v / (1 + math.Exp(-v)); ulps(siluGo(x), want) > 1 {
			t.Fatalf("silu(%v) is %v, want %v", x, siluGo(x), want)
		}
		// tanh near -1 cancels: there the exponential form is the reference.
		u := math.Sqrt(2/math.Pi) * (v + 0.044715*v*v*v)
		want := v / 2 * (1 + math.Tanh(u))
		if u < -1 {
			want = v * math.Exp(2*u) / (1 + math.Exp(2*u))
		}
		if ulps(geluTanhGo(x), want) > 1 {
			t.Fatalf("gelu(%v) is %v, want %v", x, geluTanhGo(x), want)
		}
	}
	for x, want := range map[float32]float64{1: 0.8413447460685429, -1: -0.15865525393145707, -5: -1.4332578596693994e-06, 0.5: 0.34573123063700656} {
		if ulps(gelu(x), want) > 1 {
			t.Errorf("the exact gelu(%v) is %v, want %v", x, gelu(x), want)
		}
	}
	large := float32(math.MaxFloat32)
	for name, act := range map[string]func(float32) float32{"silu": siluGo, "gelu": geluTanhGo, "exact gelu": gelu, "relu": relu} {
		if act(large) != large || act(-large) != 0 || act(0) != 0 {
			t.Errorf("%s at the ends: %v, %v, %v", name, act(large), act(-large), act(0))
		}
		if nan := act(float32(math.NaN())); nan == nan {
			t.Errorf("%s(NaN) is %v", name, nan)
		}
	}
}

func TestSoftcap(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 1000 {
		v, scale, cap := float32(r.NormFloat64()*math.Exp(8*r.Float64()-6)), r.Float64()+0.01, 50*r.Float64()+0.1
		row := []float32{v}
		softcap(row, scale, cap)
		want := cap * math.Tanh(scale*float64(v)/cap)
		if off := math.Abs(float64(row[0]) - want); off > 1e-7*math.Abs(want)+1e-13*cap {
			t.Fatalf("softcap(%v) by %v and %v is %v, want %v", v, scale, cap, row[0], want)
		}
	}
	row := []float32{math.MaxFloat32, -math.MaxFloat32, float32(math.NaN())}
	if softcap(row, 1, 30); row[0] != 30 || row[1] != -30 || row[2] == row[2] {
		t.Errorf("softcap at the ends: %v", row)
	}
}
