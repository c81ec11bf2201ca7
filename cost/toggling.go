package cost

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/lowtoggle/lowtoggle/cost/arith"
)

// Toggling is what the bits of a product's operands x[M,K] and w[N,K] do: in multipliers, over what random
// normal operands of the same scale do there, and on the wires that bytes pass on their way, over what
// bytes of uniformly random bits do: decoding in BF16, FP16 and FP8 costs alike for a byte that
// toggles alike. Operands that keep everything still have 0. A type that was not calibrated is looked at with
// BF16's model.
func (c *Calibration) Toggling(ctx context.Context, p Product, x, w Operand) (multiplied, moved float64, err error) {
	if !p.Type.Valid() || min(p.M, p.N, p.K) < 1 {
		return 0, 0, fmt.Errorf("a product of %d×%d×%d in %v has no operands to look at", p.M, p.N, p.K, p.Type)
	}
	f, _ := p.Type.Operand().Format()
	chip, _ := c.togglingModels(p.Type)
	if chip == nil {
		return 0, 0, c.unknown(p)
	}
	p.Role = c.Facts.Kernels.roleInside(p)
	a, b := operandMatrix(f, p.M, p.K, x), operandMatrix(f, p.N, p.K, w)
	s, reference, err := c.besideRandom(ctx, chip, p, a, b)
	if err != nil {
		return 0, 0, err
	}
	multiplied, movedW := c.TogglingOf(p.Type, &s, &reference)
	// The model of what is moved looks at w alone: look at x in its place.
	if s, reference, err = c.besideRandom(ctx, chip, p, b, a); err != nil {
		return 0, 0, err
	}
	_, movedX := c.TogglingOf(p.Type, &s, &reference)
	share := float64(p.M) / float64(p.M+p.N) // of the bytes that are x's
	return multiplied, movedW*(1-share) + movedX*share, nil
}

// TogglingOf is [Calibration.Toggling] of features over those of random operands; what is moved is the weights.
// Where no type is known both are NaN.
func (c *Calibration) TogglingOf(typ arith.Type, s, random *Features) (multiplied, moved float64) {
	chip, memory := c.togglingModels(typ)
	if chip == nil {
		return math.NaN(), math.NaN()
	}
	return c.Facts.coefficients(chip).toggling(s, random), c.Facts.coefficients(memory).moved(s, random)
}

// togglingModels are a type's models of weights on chip and from memory, or BF16's; nil if one is not known.
func (c *Calibration) togglingModels(typ arith.Type) (chip, memory *Model) {
	of := func(cold bool) *Model { return cmp.Or(c.model(typ, cold), c.model(arith.BF16, cold)) }
	if chip, memory = of(false), of(true); chip == nil || memory == nil {
		return nil, nil
	}
	return chip, memory
}

// besideRandom is the features of two operands, and of random ones of the same scale.
func (c *Calibration) besideRandom(ctx context.Context, m *Model, p Product, x, w matrix) (s, reference Features, err error) {
	sampled, err := c.Facts.take(ctx, p.Role, m.Swapped, layerTiles, w, x)
	if err != nil {
		return s, reference, err
	}
	reference, err = c.reference(ctx, m, p, layerTiles, &x, &w)
	return sampled.mean(), reference, err
}

// toggling is the part of the activity that depends on the data, over that of a reference.
func (c *coefficients) toggling(s, reference *Features) float64 {
	if c.constant >= 1 {
		return 1
	}
	return max(0, (c.activity(s, reference)-c.constant)/(1-c.constant))
}

// moved is toggling, by the model of weights from memory, over that of uniformly random bits, of which half
// toggle. Half of a reference's bits are taken to toggle where the operands are too small to show how many do.
func (c *coefficients) moved(s, reference *Features) float64 {
	const half = 4. // of a byte's bits
	toggle := half
	for _, feature := range []int{weightElement, weightSector} {
		if v := reference[feature]; !math.IsNaN(v) {
			toggle = v
		}
	}
	return c.toggling(s, reference) * toggle / half
}
