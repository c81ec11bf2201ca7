package card

import "github.com/lowtoggle/lowtoggle/gemm/power"

// SetFaults gives simulated cards faults, until the function that it returns is called.
func SetFaults(faults ...power.SimFault) (restore func()) {
	simulatedCard = func() power.SimOptions {
		o := power.DefaultSim()
		o.Faults = faults
		return o
	}
	return func() { simulatedCard = power.DefaultSim }
}
