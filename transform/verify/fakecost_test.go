package verify

import (
	"context"
	"encoding/binary"
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
		a, b := band.Data[:max(0, len(band.Data)-size)], band.Data[min(size, len(band.Data)):]
		all += 8 * len(a)
		for ; len(a) >= 8; a, b = a[8:], b[8:] {
			toggles += bits.OnesCount64(binary.LittleEndian.Uint64(a) ^ binary.LittleEndian.Uint64(b))
		}
		for i := range a {
			toggles += bits.OnesCount8(a[i] ^ b[i])
		}
	}
	e := 2 * float64(toggles) / float64(max(1, all))
	return cost.Estimate{Relative: e, Interval: [2]float64{e - 0.01, e + 0.01}, Calibration: "toggles"}, nil
}
