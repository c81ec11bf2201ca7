package vector

import (
	"math"

	"github.com/lowtoggle/lowtoggle/internal/elementary"
)

// SiLU writes x·sigmoid(x) for each x of from, which may be to.
func SiLU(to, from []float32) {
	if n := len(from) / 8; vectors && n > 0 {
		silu8(&to[0], &from[0], n, &exp2Table[0])
		to, from = to[8*n:], from[8*n:]
	}
	for i, x := range from {
		to[i] = siluGo(x)
	}
}

// GELUTanh writes x/2·(1 + tanh u) with u = √(2/π)·(x + 0.044715·x³) for each x of from, which may be to.
func GELUTanh(to, from []float32) {
	if n := len(from) / 8; vectors && n > 0 {
		gelu8(&to[0], &from[0], n, &exp2Table[0])
		to, from = to[8*n:], from[8*n:]
	}
	for i, x := range from {
		to[i] = geluTanhGo(x)
	}
}

// GELU writes x·Φ(x), with Φ the normal distribution, for each x of from, which may be to.
func GELU(to, from []float32) {
	for i, x := range from {
		to[i] = gelu(x)
	}
}

// ReLU writes max(x, 0) for each x of from, which may be to.
func ReLU(to, from []float32) {
	for i, x := range from {
		to[i] = relu(x)
	}
}

// siluGo returns x·sigmoid(x).
func siluGo(x float32) float32 {
	v := float64(x)
	return float32(v / (1 + Exp(-v)))
}

// geluTanhGo returns x/2·(1 + tanh u) with u = √(2/π)·(x + 0.044715·x³), which is x·sigmoid(2u).
func geluTanhGo(x float32) float32 {
	const slope = 1.5957691216057308 // 2·√(2/π)
	v := float64(x)
	cube := float64(float64(v*v) * v)
	return float32(v / (1 + Exp(-slope*(v+float64(0.044715*cube)))))
}

// gelu returns x·Φ(x), with Φ the normal distribution.
func gelu(x float32) float32 {
	v := float64(x)
	return float32(v / 2 * elementary.Erfc(-v/math.Sqrt2))
}

// relu returns max(x, 0).
func relu(x float32) float32 { return max(x, 0) }
