package paper

import (
	"cmp"
	"slices"

	"github.com/lowtoggle/lowtoggle/bench/experiment"
	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/arith"
)

// Setups lists what the experiments are measured in, in the order in which a run that may be broken
// off should measure them: the paper's own, 2048³ with both operands changed, its four types first;
// then the weights alone at 8192³, in both roles; then both operands at that size.
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

// compareSetups sorts in the order of [Setups], with any others behind them.
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
