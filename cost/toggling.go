package cost

import (
	"context"
	"fmt"
	"math"
)

// Toggling is what the bits of a product's operands x[M,K] and w[N,K] do: in multipliers, over what random
// normal operands of the same scale do there, and on the wires that bytes pass on their way, over what
// bytes of uniformly random bits do: decoding in BF16, FP16 and FP8 costs alike for a byte that
// toggles alike. Operands that keep everything still have 0. A type that was not calibrated is looked at with
// BF16's model.
func (c *Calibration) Toggling(ctx context.Context, p Product, x, w Operand) (multiplied, moved float64, err error) {
	d, ok := operandTypes[p.Type]
	if !ok || min(p.M, p.N, p.K) < 1 {
		return 0, 0, fmt.Errorf("a product of %d×%d×%d in %q has no operands to look at", p.M, p.N, p.K, p.Type)
	}
	f, _ := d.Format()
	of := func(cold bool) *Model {
		if m := c.model(p.Type, cold); m != nil {
			return m
		}
		return c.model("bf16", cold)
	}
	on, from := of(false), of(true)
	if on == nil || from == nil {
		return 0, 0, c.unknown(p)
	}
	p.Role = p.roleInside()
	a, b := operandMatrix(f, p.M, p.K, x), operandMatrix(f, p.N, p.K, w)
	s, reference, err := c.besideRandom(ctx, on, p, a, b)
	if err != nil {
		return 0, 0, err
	}
	multiplied, moved = on.Toggling(&s, &reference), from.Moved(&s, &reference)
	// The model of what is moved looks at w alone: look at x in its place.
	if s, reference, err = c.besideRandom(ctx, on, p, b, a); err != nil {
		return 0, 0, err
	}
	share := float64(p.M) / float64(p.M+p.N) // of the bytes that are x's
	return multiplied, moved*(1-share) + from.Moved(&s, &reference)*share, nil
}

// besideRandom is the signals of two operands, and of random ones of the same scale.
func (c *Calibration) besideRandom(ctx context.Context, m *Model, p Product, x, w matrix) (s, reference Signals, err error) {
	sampled, err := take(ctx, p.Role, m.Swapped, layerTiles, w, x)
	if err != nil {
		return s, reference, err
	}
	reference, err = c.reference(ctx, m, p, layerTiles, &x, &w)
	return sampled.mean(), reference, err
}

// Toggling is the part of the activity that depends on the data, over that of a reference.
func (m *Model) Toggling(s, reference *Signals) float64 {
	fixed := m.Coefficients[constantTerm]
	if fixed >= 1 {
		return 1
	}
	return max(0, (m.activity(s, reference)-fixed)/(1-fixed))
}

// Moved is Toggling of a model of weights from memory, over that of uniformly random bits, of which half
// toggle. Where the operands are too small to show how many of a reference's do, half of them are taken to.
func (m *Model) Moved(s, reference *Signals) float64 {
	const half = 4. // of a byte's bits
	toggle := half
	for _, signal := range []int{weightBus2, weightBus32} {
		if v := reference[signal]; !math.IsNaN(v) {
			toggle = v
		}
	}
	return m.Toggling(s, reference) * toggle / half
}
