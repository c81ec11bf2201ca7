package verify

import (
	"context"
	"math/bits"

	"github.com/lowtoggle/lowtoggle/cost"
)

// togglesCost is a cost model for tests: energy goes with the bits that differ between neighbours
// in memory, so that what is coarse saves, and zeros save more together than scattered.
type togglesCost struct{}

func (togglesCost) Energy(_ context.Context, w cost.Weights, _ cost.Role, _ cost.Workload) (cost.Estimate, error) {
	size := w.DType.Bits() / 8
	toggles, all := 0, 0
	for _, band := range w.Bands {
		for i := size; i < len(band.Data); i++ {
			toggles += bits.OnesCount8(band.Data[i] ^ band.Data[i-size])
			all += 8
		}
	}
	e := 2 * float64(toggles) / float64(max(1, all))
	return cost.Estimate{Relative: e, Interval: [2]float64{e - 0.01, e + 0.01}, Calibration: "toggles"}, nil
}
