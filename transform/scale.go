package transform

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/lowtoggle/lowtoggle/weights/arch"
)

var scalePass = &Pass{
	Name: "scale", Class: Exact, NeedsFamily: true,
	Usage: "scale",
	Doc: "Multiplies by powers of two on one side of an index and by their inverses on the other, so " +
		"that neighbouring values have like exponents. Refused for a label where any value would " +
		"overflow, turn subnormal or is not finite. It moves only exponent bits, which are few of the " +
		"bits that toggle: expect tenths of a percent.",
	plan: func(ctx context.Context, p *planner, _ []string) error {
		return p.eachIndex(ctx, func(ix *arch.Index) bool { return ix.Scale }, scaleIndex)
	},
	merge: func(s *Step, sym *Symmetry, n int) error {
		if sym.Exp != nil {
			return fmt.Errorf("the index is scaled twice")
		}
		if len(s.Exponents) != n {
			return fmt.Errorf("has %d exponents for %d labels", len(s.Exponents), n)
		}
		for _, e := range s.Exponents {
			if e < -1000 || e > 1000 {
				return fmt.Errorf("exponent %d is not within ±1000", e)
			}
		}
		sym.Exp = slices.Clone(s.Exponents)
		return nil
	},
}

// scaleIndex brings every label's mean exponent to the median label's, as seen by the uses whose
// neighbours run along this index in the plan's workload, and as far as every use can follow.
func scaleIndex(p *planner, ix *arch.Index) ([]*Step, error) {
	uses := signedUses(p.uses(ix))
	sum := make([]float64, ix.Len)
	var weight float64
	for _, u := range uses {
		if u.weight == 0 {
			continue
		}
		level, err := u.levels(p.ctx)
		if err != nil {
			return nil, err
		}
		target := median(level)
		for label, l := range level {
			if !math.IsNaN(l) {
				sum[label] += u.weight * (target - l)
			}
		}
		weight += u.weight
	}
	if weight == 0 {
		return nil, nil
	}
	exps := make([]int, ix.Len)
	for label := range exps {
		exps[label] = int(math.RoundToEven(sum[label] / weight))
	}
	for _, u := range uses {
		if err := u.limit(p.ctx, exps); err != nil {
			return nil, err
		}
	}
	if !slices.ContainsFunc(exps, func(e int) bool { return e != 0 }) {
		return nil, nil
	}
	return []*Step{{Index: ix.Name, Exponents: exps}}, nil
}

func median(list []float64) float64 {
	var known []float64
	for _, v := range list {
		if !math.IsNaN(v) {
			known = append(known, v)
		}
	}
	if len(known) == 0 {
		return 0
	}
	slices.Sort(known)
	return known[len(known)/2]
}

// levels is the mean of ±log2|w| over each label's nonzero finite values, signed by the direction
// in which they scale, so that a label's exponent adds to its level; NaN where it has none.
func (u *use) levels(ctx context.Context) ([]float64, error) {
	level, n := make([]float64, len(u.positions)), make([]float64, len(u.positions))
	err := u.each(ctx, func(label int, b uint32, dir int) {
		if v := math.Abs(float64(u.format.Value(b))); v > 0 && u.format.Finite(b) {
			level[label] += math.Log2(v) * float64(dir)
			n[label]++
		}
	})
	for label := range level {
		level[label] /= n[label]
	}
	return level, err
}

// limit moves each label's exponent towards zero until every value of the label can take it
// exactly.
func (u *use) limit(ctx context.Context, exps []int) error {
	return u.each(ctx, func(label int, b uint32, dir int) {
		for e := &exps[label]; *e != 0; *e -= *e / max(*e, -*e) {
			if _, ok := scaled(u.format, b, false, *e*dir); ok {
				return
			}
		}
	})
}
