package cuda

import (
	"math"

	"github.com/lowtoggle/lowtoggle/cost/arith"
)

const (
	// replayTime is long against the gap of a few microseconds between two launches of a graph.
	replayTime  = 5e-3
	maxLaunches = 4096
	overL2      = 4
)

// rates are roughly an H200's, in operations per second, the others in bytes per second. They decide
// nothing but how often a default replay repeats its products and traffic.
var rates = map[arith.Type]float64{
	arith.FP32: 5e13, arith.TF32: 4e14, arith.FP16: 8e14, arith.BF16: 8e14, arith.FP16CUDA: 1e14, arith.FP8: 1.5e15, arith.INT8: 1.5e15,
}

const (
	memoryRate, launchTime = 4e12, 2e-6

	trafficMemoryRate, trafficCacheRate, trafficLaunchTime = 2e12, 4e12, 3e-6
)

// plan says how many copies of all weights there are and how many passes a replay makes, a
// multiple of the copies.
func plan(products []Product, traffic []Traffic, o Options, l2 int64) (copies, passes int) {
	var seconds, weights float64
	for _, p := range products {
		p.Problem.N *= max(1, o.Stack)
		seconds += launchTime + max(p.Problem.Ops()/rates[p.Problem.Type], p.Problem.Bytes()/memoryRate)
		weights += float64(len(p.W.Data) * max(1, o.Stack))
	}
	for _, t := range traffic {
		rate := trafficMemoryRate
		if t.moved() <= l2 {
			rate = trafficCacheRate
		}
		seconds += trafficLaunchTime + float64(t.moved())/rate
	}
	most := max(1, maxLaunches/(len(products)+len(traffic)))
	copies = 1
	if o.Cold && len(products) > 0 {
		copies = min(most, int(math.Floor(overL2*float64(l2)/weights))+1)
	}
	repeat := o.Repeat
	if repeat < 1 {
		repeat = max(1, min(most/copies, int(math.Ceil(replayTime/(seconds*float64(copies))))))
	}
	return copies, copies * repeat
}
