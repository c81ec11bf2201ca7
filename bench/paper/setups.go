package paper

import (
	"cmp"
	"slices"

	"github.com/lowtoggle/lowtoggle/bench/experiment"
	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/arith"
)

// Setups lists the setups of the experiments. The most important come first, because a run may be interrupted:
// both operands changed at 2048³, as in the paper, with its four types first; then only the weights at 8192³, in
// both roles; then both operands at 8192³.
func Setups() (list []experiment.Setup) {
	cube := func(t arith.Type, size int, c experiment.Change, r cost.Role) {
		list = append(list, experiment.Setup{Type: t, M: size, N: size, K: size, Change: c, Role: r})
	}
	for _, t := range []arith.Type{arith.FP16, arith.FP32, arith.FP16CUDA, arith.INT8, arith.BF16, arith.FP8} {
		cube(t, 2048, experiment.Both, cost.Stationary)
	}
	large := []arith.Type{arith.BF16, arith.FP16, arith.FP8}
	for _, t := range large {
		cube(t, 8192, experiment.Weights, cost.Stationary)
		cube(t, 8192, experiment.Weights, cost.Streaming)
	}
	for _, t := range large {
		cube(t, 8192, experiment.Both, cost.Stationary)
	}
	return list
}

// compareSetups sorts in the order of [Setups]. Setups that are not in this list come last, by name.
func compareSetups(a, b experiment.Setup) int {
	all := Setups()
	place := func(s experiment.Setup) int {
		if i := slices.Index(all, s); i >= 0 {
			return i
		}
		return len(all)
	}
	return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a.String(), b.String()))
}
