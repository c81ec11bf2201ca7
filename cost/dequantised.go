package cost

import (
	"context"
	"math/rand/v2"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/internal/elementary"
	"github.com/lowtoggle/lowtoggle/weights"
)

// dequantisedError widens the interval of predictions for four-bit weights, because the shares come from a few
// patterns and one kernel.
const dequantisedError = 0.015

// PredictDequantised predicts a product of BF16 with four-bit weights. x and w are the operands of the tensor cores;
// w is dequantised to BF16. codes are the packed codes [N, K/2] in memory, two in a byte. The card's
// [Kernels.Dequantised] has the shares of the energy that depend on w and on codes. If it is missing, the result is
// that of [Calibration.Predict]. Joules, seconds, watts and clock are unknown.
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
		return r.shared(shares.many(p.Role), half), nil
	}
	r = r.shared(shares.FewOperands, half)
	// Codes are compared with random bytes, because transfers of bytes do not depend on their type.
	bytes := Product{Type: arith.FP8, M: p.M, N: p.N, K: p.K / 2, Cold: true, Scale: RandomSigma(weights.F8E4M3)}
	memory, err := c.Predict(ctx, bytes, randomBytes, codes)
	if err != nil {
		return r, err
	}
	random, err := c.Predict(ctx, bytes, randomBytes, randomBytes)
	if err != nil {
		return r, err
	}
	half = elementary.Hypot((r.Interval[1]-r.Interval[0])/2, shares.Codes*(memory.Interval[1]-memory.Interval[0])/2)
	r.Relative -= float64(shares.Codes * (1 - memory.Relative/random.Relative))
	r.SamplingError = elementary.Hypot(r.SamplingError, shares.Codes*memory.SamplingError)
	r.Interval = [2]float64{r.Relative - half, r.Relative + half}
	r.RelativeTime, r.BelowCap, r.Warnings = 1, nil, nil
	return r, nil
}

// DequantisedEnergy is [Calibration.Energy] for a layer with four-bit weights. units are the weights dequantised to
// BF16. codes are the layer's packed codes, two in a byte, as F8_E4M3. See [Calibration.PredictDequantised].
func (c *Calibration) DequantisedEnergy(ctx context.Context, units, codes Weights, role Role, l Workload) (e Estimate, err error) {
	shares := c.Facts.Kernels.Dequantised
	if shares == nil {
		return c.Energy(ctx, units, role, l)
	}
	if e, err = c.Energy(ctx, units, role, Workload{Prefill: 1}); err != nil {
		return e, err
	}
	change, half := 1-e.Relative, (e.Interval[1]-e.Interval[0])/2
	share := float64(l.Prefill*shares.many(units.product(Product{M: PrefillTokens, Role: role}).Role)) + float64(l.Decode*shares.FewOperands)
	e.Relative, half = 1-float64(share*change), elementary.Hypot(share*half, dequantisedError)
	if l.Decode > 0 {
		random := codes
		rows := min(codes.Rows, bandRows)
		random.Bands = []Band{{Data: noise(0, 0, rows*codes.Cols)}}
		codes.Scale = RandomSigma(codes.DType) // equal before and after a change
		random.Scale = codes.Scale
		memory, err := c.Energy(ctx, codes, role, Workload{Decode: 1})
		if err != nil {
			return e, err
		}
		from, err := c.Energy(ctx, random, role, Workload{Decode: 1})
		if err != nil {
			return e, err
		}
		share := l.Decode * shares.Codes
		e.Relative -= float64(share * (1 - memory.Relative/from.Relative))
		half = elementary.Hypot(half, share*(memory.Interval[1]-memory.Interval[0])/2)
	}
	e.Interval = [2]float64{e.Relative - half, e.Relative + half}
	return e, nil
}

// many returns the share with many tokens.
func (d *Dequantised) many(r Role) float64 {
	if r == Streaming {
		return d.StreamingOperands
	}
	return d.Operands
}

// randomBytes is an operand of random bytes.
func randomBytes(_ context.Context, row, rows, col, cols int) ([]byte, error) {
	return noise(row, col, rows*cols), nil
}

// noise returns n random bytes for a block that begins at a row and a column.
func noise(row, col, n int) []byte {
	rng := rand.New(rand.NewPCG(uint64(row), uint64(col)))
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	return data
}

// shared scales a prediction to the share of the energy that depends on the operands. half is half the interval of
// the share.
func (r Prediction) shared(share, half float64) Prediction {
	half = elementary.Hypot(share*half, dequantisedError)
	relative := 1 - float64(share*(1-r.Relative))
	return Prediction{
		Relative: relative, Interval: [2]float64{relative - half, relative + half}, RelativeTime: 1 - float64(share*(1-r.RelativeTime)),
		BelowCap: r.BelowCap.shared(share), SamplingError: share * r.SamplingError, Scale: r.Scale, Calibration: r.Calibration, Warnings: r.Warnings,
	}
}
