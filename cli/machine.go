package cli

import (
	"strconv"

	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// openMachine opens the GPU of that number, or a simulated one with noise of its own.
func openMachine(device string, seed uint64) (measure.Machine, error) {
	if device == "simulated" {
		o := power.H200Sim()
		o.Seed = seed + 1
		return measure.Simulated(o), nil
	}
	index, err := strconv.Atoi(device)
	if err != nil || index < 0 {
		return nil, usagef("--device %s: give a number, 0 for the first GPU, or simulated", device)
	}
	return measure.Open(index)
}
