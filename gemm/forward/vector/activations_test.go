package vector

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestActivations(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 100_000 {
		x := float32(r.NormFloat64() * math.Exp(6*r.Float64()-3))
		v := float64(x)
		if want := v / (1 + math.Exp(-v)); ulps(siluGo(x), want) > 1 {
			t.Fatalf("SiLU(%v) is %v, want %v", x, siluGo(x), want)
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
