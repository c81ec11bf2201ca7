package vector

import "math"

// Exp returns e^x with a relative error of 1e-13; beyond ±700 it returns 0 or +Inf. math.Exp is slower, and its last digit
// depends on the machine. Exp splits x into a multiple of ln 2/32, for which it has a table, and a remainder, for which it uses a
// polynomial (Tang, ACM TOMS 15, 1989).
func Exp(x float64) float64 {
	if !(x > -700 && x < 700) {
		return expBeyond(x)
	}
	z := float64(x * (expSteps / math.Ln2))
	shifted := z + expShift // its last bits are z, rounded
	r := z - (shifted - expShift)
	n := math.Float64bits(shifted)
	s := math.Float64frombits(exp2Table[n%expSteps] + n/expSteps<<52)
	// The conversions keep compilers from fusing products and sums.
	p := exp4 + float64(r*exp5)
	p = exp3 + float64(r*p)
	p = exp2 + float64(r*p)
	p = exp1 + float64(r*p)
	return s + float64(s*float64(r*p))
}

// expScaledGo is expScaled8 in Go. It uses a shorter polynomial than Exp, which is precise enough for float32.
func expScaledGo(row []float32, scale, largest float32) {
	for i, v := range row {
		x := float64(float32(v-largest) * scale)
		if x < -104 {
			x = -104 // e^-104 is 0 in float32
		}
		z := float64(x * (expSteps / math.Ln2))
		shifted := z + expShift
		r := z - (shifted - expShift)
		n := math.Float64bits(shifted)
		s := math.Float64frombits(exp2Table[n%expSteps] + n/expSteps<<52)
		p := float64(r*exp1) + float64(float64(r*r)*(exp2+float64(r*exp3)))
		row[i] = float32(s + float64(s*p))
	}
}

func expBeyond(x float64) float64 {
	switch {
	case x > 0:
		return math.Inf(1)
	case x < 0:
		return 0
	}
	return x // NaN
}

const (
	expSteps = 32
	expShift = 3 << 51

	// Taylor's coefficients of 2^(r/32).
	exp1 = math.Ln2 / expSteps
	exp2 = exp1 * exp1 / 2
	exp3 = exp1 * exp2 / 3
	exp4 = exp1 * exp3 / 4
	exp5 = exp1 * exp4 / 5
)

// exp2Table has the bits of 2^(i/32) as constants, because math.Exp2 may differ between machines.
var exp2Table = func() (bits [expSteps]uint64) {
	for i, v := range [expSteps]float64{
		0x1.0000000000000p+0, 0x1.059b0d3158574p+0, 0x1.0b5586cf9890fp+0, 0x1.11301d0125b51p+0,
		0x1.172b83c7d517bp+0, 0x1.1d4873168b9aap+0, 0x1.2387a6e756238p+0, 0x1.29e9df51fdee1p+0,
		0x1.306fe0a31b715p+0, 0x1.371a7373aa9cbp+0, 0x1.3dea64c123422p+0, 0x1.44e086061892dp+0,
		0x1.4bfdad5362a27p+0, 0x1.5342b569d4f82p+0, 0x1.5ab07dd485429p+0, 0x1.6247eb03a5585p+0,
		0x1.6a09e667f3bcdp+0, 0x1.71f75e8ec5f74p+0, 0x1.7a11473eb0187p+0, 0x1.82589994cce13p+0,
		0x1.8ace5422aa0dbp+0, 0x1.93737b0cdc5e5p+0, 0x1.9c49182a3f090p+0, 0x1.a5503b23e255dp+0,
		0x1.ae89f995ad3adp+0, 0x1.b7f76f2fb5e47p+0, 0x1.c199bdd85529cp+0, 0x1.cb720dcef9069p+0,
		0x1.d5818dcfba487p+0, 0x1.dfc97337b9b5fp+0, 0x1.ea4afa2a490dap+0, 0x1.f50765b6e4540p+0,
	} {
		bits[i] = math.Float64bits(v)
	}
	return bits
}()
