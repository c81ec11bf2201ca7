package card

import "github.com/lowtoggle/lowtoggle/gemm/power"

// SetFaults injects faults into simulated cards until restore is called.
func SetFaults(faults ...power.SimFault) (restore func()) {
	simulatedCard = func() power.SimOptions {
		o := power.DefaultSim()
		o.Faults = faults
		return o
	}
	return func() { simulatedCard = power.DefaultSim }
}
