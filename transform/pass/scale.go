package pass

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// scaleName avoids an initialisation cycle of Scale.
const scaleName = "scale"

// Scale multiplies labels of an index by powers of two. The data of a step is the exponent of each label.
var Scale = &Pass{
	Name: scaleName, Class: Exact, NeedsFamily: true,
	Usage: "scale[=labels|uncached]",
	Doc: "Multiplies weights by powers of two on one side of an index and by the inverses on the other side. The two " +
		"sides are, for example, a norm's weight and the layers behind the norm, or V and O. Each label gets a power " +
		"that brings the mean exponent of its values near the median of all labels. With the argument labels, scale " +
		"makes no other change. Without this argument, and in workloads with decode, scale also multiplies all labels " +
		"of an index by one common power. The common powers of all indices are chosen together, for the values after " +
		"the lossy passes. A common power shifts all exponents of an index to a range where the exponents of " +
		"neighbouring weights differ in few bits. Common powers save energy on coarse grids, because zeros then differ " +
		"in one bit from their neighbours. In decode, scale changes the measured energy of the linear layers of llama-17m " +
		"by −2.5 percentage points on top of grid=2, and by −1.3 points on top of grid=4. Alone, scale changes the energy by −0.5 % " +
		"(docs/scaling.md). In prefill, scale saves no measurable energy. A label is not scaled if one of its values is " +
		"not finite. If a power would make a value overflow or become subnormal, the label gets a power nearer to 1. At " +
		"run time, the activations between the two sides are multiplied by these powers of two. BF16 and FP32 runtimes " +
		"compute the same results. FP16 activations could overflow, and fixed scales of FP8 or INT8 activations and KV " +
		"caches no longer fit. A common power is therefore used only if all tensors of the index are BF16 or F32. With " +
		"the argument uncached, scale leaves out the indices of attention heads and of latent vectors. The contents of " +
		"a KV cache (keys and values) then stay the same.",
	Args: func(args []string) error {
		if len(args) != 1 || args[0] != onlyLabels && args[0] != uncached {
			return fmt.Errorf("%q is neither %s nor %s", strings.Join(args, "/"), onlyLabels, uncached)
		}
		return nil
	},
	Plan: planScale,
	Symmetry: func(s *plan.Step, n int, sym *program.Symmetry) error {
		exponents, err := plan.Data[[]int](s, "exponents")
		switch {
		case err != nil:
			return err
		case sym.Exp != nil:
			return fmt.Errorf("the index is scaled twice")
		case len(exponents) != n:
			return fmt.Errorf("has %d exponents for %d labels", len(exponents), n)
		}
		for _, e := range exponents {
			if e < -1000 || e > 1000 {
				return fmt.Errorf("exponent %d is not within ±1000", e)
			}
		}
		sym.Exp = slices.Clone(exponents)
		return nil
	},
}

const (
	onlyLabels = "labels"   // argument: no common exponents
	uncached   = "uncached" // argument: leave out indices whose activations a KV cache may store
)

// planScale chooses a power for every label, then a common power for every index. It keeps the exact ones.
func planScale(ctx context.Context, m *Model, args []string) ([]*plan.Step, error) {
	var mu sync.Mutex
	exps := map[string][]int{} // by index
	want := func(ix *arch.Index) bool { return ix.Scale && !(ix.Cached && slices.Contains(args, uncached)) }
	_, err := m.eachIndex(ctx, scaleName, true, m.Workers, want, func(ctx context.Context, ix *arch.Index) ([]*plan.Step, error) {
		e, err := m.scaleLabels(ctx, ix)
		mu.Lock()
		defer mu.Unlock()
		exps[ix.Name] = e
		return nil, err
	})
	if err != nil {
		return nil, err
	}
	if !slices.Contains(args, onlyLabels) && m.Workload.Decode > 0 {
		if err := m.addCommonExponents(ctx, exps); err != nil {
			return nil, err
		}
	}
	var chosen []*arch.Index
	for _, ix := range m.Layout.Indices {
		if anyNonzero(exps[ix.Name]) {
			chosen = append(chosen, ix)
		}
	}
	err = m.Parallel(ctx, scaleName, len(chosen), len(chosen), func(ctx context.Context, i int) error {
		for _, u := range signedUses(m.uses(chosen[i])) {
			if err := u.limit(ctx, exps[chosen[i].Name]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return m.exactScales(ctx, chosen, exps)
}

func anyNonzero(list []int) bool {
	return slices.ContainsFunc(list, func(v int) bool { return v != 0 })
}

// exactScales returns the steps of the chosen indices. It leaves out indices that, together with another index of the
// same weight, would not be exact.
func (m *Model) exactScales(ctx context.Context, chosen []*arch.Index, exps map[string][]int) ([]*plan.Step, error) {
	for {
		var steps []*plan.Step
		syms := program.Symmetries{}
		for name, s := range m.Compiler.Symmetries() {
			copied := *s
			syms[name] = &copied
		}
		for _, ix := range chosen {
			e := exps[ix.Name]
			if !anyNonzero(e) {
				continue
			}
			steps = append(steps, &plan.Step{Index: ix.Name, Data: e})
			if syms[ix.Name] == nil {
				syms[ix.Name] = &program.Symmetry{}
			}
			syms[ix.Name].Exp = e
		}
		inexact, err := m.inexact(ctx, syms)
		if err != nil || inexact == nil {
			return steps, err
		}
		for _, ix := range chosen {
			if inexact[ix.Name] && anyNonzero(exps[ix.Name]) {
				m.Note("scale: index %s is not scaled: together with the scaling of another index, a value would leave the range of its type", ix.Name)
				delete(exps, ix.Name)
			}
		}
	}
}

// scaleLabels returns exponents that bring every label's mean exponent to the median label's. It considers only uses
// in which labels of this index are neighbours in the plan's workload.
func (m *Model) scaleLabels(ctx context.Context, ix *arch.Index) ([]int, error) {
	exps := make([]int, ix.Len)
	sum := make([]float64, ix.Len)
	var weight float64
	for _, u := range signedUses(m.uses(ix)) {
		if u.share == 0 {
			continue
		}
		mean, err := u.meanExponents(ctx)
		if err != nil {
			return nil, err
		}
		target := upperMedian(mean)
		for label, l := range mean {
			if !math.IsNaN(l) {
				sum[label] += float64(u.share * (target - l))
			}
		}
		weight += u.share
	}
	for label := range exps {
		if weight > 0 {
			exps[label] = int(math.RoundToEven(sum[label] / weight))
		}
	}
	return exps, nil
}

// upperMedian returns the upper median of the known numbers, so the result is the mean of an existing label; 0 if
// none is known.
func upperMedian(list []float64) float64 {
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
