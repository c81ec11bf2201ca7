package probe

import (
	"github.com/lowtoggle/lowtoggle/bench/experiment"
	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/arith"
)

// length is the length of a list of probes.
type length uint8

const (
	none  length = iota
	few          // patterns that show the effect of the shape
	short        // about half of every family
	long         // all patterns
)

func setup(t arith.Type, m, n, k int, role cost.Role) experiment.Setup {
	return experiment.Setup{Type: t, M: m, N: n, K: k, Change: experiment.Weights, Role: role}
}

func prefill(t arith.Type, size int, role cost.Role) experiment.Setup {
	return setup(t, size, size, size, role)
}

// tokens is M of memory-bound products, as in decode.
const tokens = 16

func decode(t arith.Type, m, n, k int, role cost.Role) experiment.Setup {
	s := setup(t, m, n, k, role)
	s.Cold = true
	return s
}

// plan lists the setups of a calibration in the order of measurement.
var plan = []struct {
	setup       experiment.Setup
	full, quick length // lists of patterns in a full and in a usual calibration
}{
	{prefill(arith.BF16, 8192, cost.Stationary), long, short},
	{prefill(arith.BF16, 8192, cost.Streaming), long, short},
	{decode(arith.BF16, tokens, 8192, 8192, cost.Stationary), long, few},
	{prefill(arith.FP16, 8192, cost.Stationary), long, few},
	{prefill(arith.FP16, 8192, cost.Streaming), long, none},
	{prefill(arith.FP8, 8192, cost.Stationary), short, few},
	{prefill(arith.FP8, 8192, cost.Streaming), short, few},
	{prefill(arith.INT8, 8192, cost.Stationary), short, few},
	{prefill(arith.INT8, 8192, cost.Streaming), short, few},
	{prefill(arith.FP32, 4096, cost.Stationary), short, none},
	{prefill(arith.FP32, 4096, cost.Streaming), short, none},
	{decode(arith.BF16, tokens, 8192, 8192, cost.Streaming), short, none},
	{decode(arith.FP16, tokens, 8192, 8192, cost.Stationary), short, none},
	{decode(arith.FP8, tokens, 8192, 8192, cost.Stationary), short, none},
	{decode(arith.INT8, tokens, 8192, 8192, cost.Stationary), short, none},
	{prefill(arith.BF16, 1024, cost.Stationary), few, none},
	{prefill(arith.BF16, 2048, cost.Stationary), few, none},
	{prefill(arith.BF16, 4096, cost.Stationary), few, none},
	{setup(arith.BF16, 256, 4096, 4096, cost.Stationary), few, none},
	{setup(arith.BF16, 4096, 14336, 4096, cost.Stationary), few, none},
	{decode(arith.BF16, 1, 4096, 4096, cost.Stationary), few, none},
	{decode(arith.BF16, 64, 4096, 4096, cost.Stationary), few, none},
	{decode(arith.BF16, tokens, 14336, 4096, cost.Stationary), few, none},
}

// Jobs lists the measurements of a calibration. The usual list takes less than ten minutes. It has half of the
// patterns for BF16 in prefill, and a few for decode and for the other types of tensor cores. The full list takes most of an
// hour. It also allows a test of the model on families left out of the fit.
func Jobs(full bool) ([]experiment.Job, error) {
	var list []experiment.Job
	for _, p := range plan {
		l := p.quick
		if full {
			l = p.full
		}
		if l == none {
			continue
		}
		w, err := job(p.setup, l)
		if err != nil {
			return nil, err
		}
		list = append(list, w)
	}
	return list, nil
}
