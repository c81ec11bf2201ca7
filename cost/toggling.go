package cost

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/lowtoggle/lowtoggle/cost/arith"
)

// Toggling returns two relative activities of a product's operands x[M,K] and w[N,K]. multiplied is the activity in
// multipliers, relative to random normal operands of the same scale. moved is the activity in transfers of bytes,
// relative to uniformly random bytes, because a byte's energy does not depend on its type. Both are 0 for operands
// that do not toggle. A type that was not calibrated is predicted by BF16's model.
func (c *Calibration) Toggling(ctx context.Context, p Product, x, w Operand) (multiplied, moved float64, err error) {
	if !p.Type.Valid() || min(p.M, p.N, p.K) < 1 {
		return 0, 0, fmt.Errorf("a product of %d×%d×%d in %v: every dimension must be at least 1, and the type a known one", p.M, p.N, p.K, p.Type)
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
	// The model of moved bytes has features of w alone, so x is passed as w.
	if s, reference, err = c.besideRandom(ctx, chip, p, b, a); err != nil {
		return 0, 0, err
	}
	_, movedX := c.TogglingOf(p.Type, &s, &reference)
	share := float64(p.M) / float64(p.M+p.N) // x's share of the bytes
	return multiplied, float64(movedW*(1-share)) + float64(movedX*share), nil
}

// TogglingOf is [Calibration.Toggling] for features, relative to those of random operands. moved is for the weights
// alone. Both are NaN if the calibration lacks a model, or without features.
func (c *Calibration) TogglingOf(typ arith.Type, s, random *Features) (multiplied, moved float64) {
	chip, memory := c.togglingModels(typ)
	if chip == nil || s == nil || random == nil {
		return math.NaN(), math.NaN()
	}
	return c.Facts.coefficients(chip).toggling(s, random), c.Facts.coefficients(memory).moved(s, random)
}

// togglingModels returns a type's models of weights on chip and from memory, or BF16's models; nil if one is missing.
func (c *Calibration) togglingModels(typ arith.Type) (chip, memory *Model) {
	of := func(cold bool) *Model { return cmp.Or(c.model(typ, cold), c.model(arith.BF16, cold)) }
	if chip, memory = of(false), of(true); chip == nil || memory == nil {
		return nil, nil
	}
	return chip, memory
}

// besideRandom returns the features of two operands, and of random operands of the same scale.
func (c *Calibration) besideRandom(ctx context.Context, m *Model, p Product, x, w matrix) (s, reference Features, err error) {
	sampled, err := c.Facts.take(ctx, p.Role, m.Swapped, layerTiles, w, x)
	if err != nil {
		return s, reference, err
	}
	reference, _, err = c.reference(ctx, m, p, layerTiles, &x, &w)
	return sampled.mean(), reference, err
}

// toggling returns the part of the activity that depends on data, relative to that of a reference.
func (c *coefficients) toggling(s, reference *Features) float64 {
	if c.constant >= 1 {
		return 1
	}
	return max(0, (c.activity(s, reference)-c.constant)/(1-c.constant))
}

// moved is toggling by the model of weights from memory, relative to uniformly random bits. Half of those toggle. If
// the operands are too small, half of the reference's bits are assumed to toggle.
func (c *coefficients) moved(s, reference *Features) float64 {
	const half = 4. // half of a byte's bits
	toggle := half
	for _, feature := range []int{weightElement, weightSector} {
		if v := reference[feature]; !math.IsNaN(v) {
			toggle = v
		}
	}
	return c.toggling(s, reference) * toggle / half
}
