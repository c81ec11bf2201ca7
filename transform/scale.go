package transform

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/lowtoggle/lowtoggle/weights/arch"
)

var scalePass = &Pass{
	Name: "scale", Class: Exact, NeedsFamily: true,
	Usage: "scale[=labels]",
	Doc: "Multiplies by powers of two on one side of an index and by their inverses on the other (a norm's " +
		"weight against the layers that read it, up against down, V against O). Each label gets a power that " +
		"brings it to its neighbours' level; labels asks for no more. Besides, in workloads with decode, all labels of an " +
		"index get one in common, chosen jointly for all indices of the model and for the values that the lossy passes will " +
		"leave: that which moves the layers' exponents to where few of their bits differ. It pays beside coarse grids, whose " +
		"zeros then differ in one bit from what follows: llama-17m, measured in decode, −2.5 points with grid=2, −1.3 with grid=4, " +
		"−0.5 alone. In prefill nothing could be told. Refused for a label where any value would overflow, turn " +
		"subnormal or is not finite. What lies between the two sides at run time is multiplied by a power of two: BF16 " +
		"and FP32 runtimes do not notice, fixed scales of FP8 or INT8 activations and KV caches do, and FP16 could " +
		"overflow. So a power in common is given only where all tensors are BF16 or F32.",
	check: func(args []string) error {
		if len(args) != 1 || args[0] != onlyLabels {
			return fmt.Errorf("%q is not %s", args, onlyLabels)
		}
		return nil
	},
	plan: planScale,
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

// onlyLabels is the argument that asks for no power in common.
const onlyLabels = "labels"

// planScale chooses every label's own power, then one for each index, and keeps of both what is exact.
func planScale(ctx context.Context, p *planner, args []string) error {
	var mu sync.Mutex
	exps := map[string][]int{} // by index
	err := p.eachIndex(ctx, func(ix *arch.Index) bool { return ix.Scale }, func(p *planner, ix *arch.Index) ([]*Step, error) {
		e, err := scaleLabels(p, ix)
		mu.Lock()
		defer mu.Unlock()
		exps[ix.Name] = e
		return nil, err
	})
	if err != nil {
		return err
	}
	if len(args) == 0 && p.opt.Workload.Decode > 0 {
		if err := p.level(exps); err != nil {
			return err
		}
	}
	var chosen []*arch.Index
	for _, ix := range p.layout.Indices {
		if slices.ContainsFunc(exps[ix.Name], func(e int) bool { return e != 0 }) {
			chosen = append(chosen, ix)
		}
	}
	err = p.parallel(ctx, p.pass.Name, len(chosen), len(chosen), func(i int) error {
		for _, u := range signedUses(p.uses(chosen[i])) {
			if err := u.limit(p.ctx, exps[chosen[i].Name]); err != nil {
				return err
			}
		}
		return nil
	})
	for _, ix := range chosen {
		if e := exps[ix.Name]; slices.ContainsFunc(e, func(e int) bool { return e != 0 }) {
			p.add(&Step{Index: ix.Name, Exponents: e})
		}
	}
	return err
}

// scaleLabels brings every label's mean exponent to the median label's, as seen by the uses whose
// neighbours run along this index in the plan's workload.
func scaleLabels(p *planner, ix *arch.Index) ([]int, error) {
	exps := make([]int, ix.Len)
	sum := make([]float64, ix.Len)
	var weight float64
	for _, u := range signedUses(p.uses(ix)) {
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
	for label := range exps {
		if weight > 0 {
			exps[label] = int(math.RoundToEven(sum[label] / weight))
		}
	}
	return exps, nil
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
