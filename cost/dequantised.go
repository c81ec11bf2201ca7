package cost

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/lowtoggle/lowtoggle/cost/arith"
)

// dequantisedError is the half width that is added to predictions of products with weights of four bits: their shares come
// from a few patterns of one kernel.
const dequantisedError = 0.015

// PredictDequantised predicts a product of BF16 with weights of four bits. x and w are the operands of the matrix units, w
// dequantised to BF16. codes are the packed codes [N, K/2] as memory holds them, two in a byte. The card's
// [Kernels.Dequantised] says which shares of the energy follow w and codes. Without it the result is that of
// [Calibration.Predict]. Joules, seconds, watts and clock are not known.
func (c *Calibration) PredictDequantised(ctx context.Context, p Product, x, w, codes Operand) (Prediction, error) {
	shares := c.Facts.Kernels.Dequantised
	if shares == nil {
		return c.Predict(ctx, p, x, w)
	}
	cold := p.Cold && p.M <= c.Facts.Kernels.MemoryBoundTokens
	units := p
	if units.Cold = false; cold {
		units.M = PrefillTokens
		f, _ := p.Type.Operand().Format()
		x = c.inputs(f, units)
	}
	r, err := c.Predict(ctx, units, x, w)
	if err != nil {
		return r, err
	}
	half := (r.Interval[1] - r.Interval[0]) / 2
	if !cold {
		r = r.shared(shares.Operands, half)
		return r, nil
	}
	r = r.shared(shares.FewOperands, half)
	// Bytes of codes move like bytes of any type. They are compared with random ones.
	bytes := Product{Type: arith.FP8, M: p.M, N: p.N, K: p.K / 2, Cold: true}
	memory, err := c.Predict(ctx, bytes, randomBytes, codes)
	if err != nil {
		return r, err
	}
	random, err := c.Predict(ctx, bytes, randomBytes, randomBytes)
	if err != nil {
		return r, err
	}
	half = math.Hypot((r.Interval[1]-r.Interval[0])/2, shares.Codes*(memory.Interval[1]-memory.Interval[0])/2)
	r.Relative -= shares.Codes * (1 - *memory.Joules / *random.Joules)
	r.SamplingError = math.Hypot(r.SamplingError, shares.Codes*memory.SamplingError)
	r.Interval = [2]float64{r.Relative - half, r.Relative + half}
	r.RelativeTime, r.Warnings = 1, nil
	return r, nil
}

// randomBytes is an operand of random bytes.
func randomBytes(_ context.Context, row, rows, col, cols int) ([]byte, error) {
	rng := rand.New(rand.NewPCG(uint64(row), uint64(col)))
	data := make([]byte, rows*cols)
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	return data, nil
}

// shared is a prediction of which only a share of the energy follows the operands. half is that of its interval.
func (r Prediction) shared(share, half float64) Prediction {
	half = math.Hypot(share*half, dequantisedError)
	relative := 1 - share*(1-r.Relative)
	return Prediction{
		Relative: relative, Interval: [2]float64{relative - half, relative + half}, RelativeTime: 1 - share*(1-r.RelativeTime),
		SamplingError: share * r.SamplingError, Calibration: r.Calibration, Warnings: r.Warnings,
	}
}
