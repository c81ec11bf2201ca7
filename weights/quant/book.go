package quant

import (
	"math"

	"github.com/lowtoggle/lowtoggle/weights"
)

// floatCodes returns the value of each code of a floating-point format. nan and inf report the codes of NaN and infinities.
func floatCodes(expBits, mantBits, bias int, nan func(code int) bool, inf int) []float32 {
	bits := 1 + expBits + mantBits
	values := make([]float32, 1<<bits)
	for c := range values {
		magnitude := c & (1<<(bits-1) - 1)
		exp, mant := magnitude>>mantBits, magnitude&(1<<mantBits-1)
		v := math.Ldexp(float64(mant), 1-bias-mantBits)
		if exp > 0 {
			v = math.Ldexp(float64(mant|1<<mantBits), exp-bias-mantBits)
		}
		if magnitude == inf {
			v = math.Inf(1)
		}
		if c>>(bits-1) != 0 {
			v = math.Copysign(v, -1)
		}
		if nan(c) {
			v = math.NaN()
		}
		values[c] = float32(v)
	}
	return values
}

// Values of codes. In the FNUZ types the code of −0 is NaN.
var (
	fp8Values = map[weights.DType][]float32{
		weights.F8E4M3:     floatCodes(4, 3, 7, func(c int) bool { return c&0x7F == 0x7F }, -1),
		weights.F8E5M2:     floatCodes(5, 2, 15, func(c int) bool { return c&0x7F > 0x7C }, 0x7C),
		weights.F8E4M3FNUZ: floatCodes(4, 3, 8, func(c int) bool { return c == 0x80 }, -1),
		weights.F8E5M2FNUZ: floatCodes(5, 2, 16, func(c int) bool { return c == 0x80 }, -1),
	}
	fp4Values = floatCodes(2, 1, 1, func(int) bool { return false }, -1)
	intValues = integers()
)

// integers returns the values of unsigned codes of up to 8 bits.
func integers() []float32 {
	values := make([]float32, 256)
	for c := range values {
		values[c] = float32(c)
	}
	return values
}

// powerValues has the values of E8M0 scales.
var powerValues = func() []float32 {
	values := make([]float32, 256)
	for e := range values {
		values[e] = float32(math.Ldexp(1, e-127))
	}
	values[255] = float32(math.NaN())
	return values
}()
