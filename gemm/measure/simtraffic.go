package measure

import (
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// Time and power of traffic on the simulated card. The numbers are invented.
const (
	simCache       = 50 << 20 // bytes that fit into the L2 cache
	simCopyBytes   = 3.5e12   // bytes per second, read and written
	simCopyWatts   = 350
	simCachedBytes = 6e12 // bytes per second within the cache
	simCachedWatts = 300
	simFillBytes   = 3e12 // bytes per second
	simFillWatts   = 300
	simLaunchWatts = 150
	simSpinWatts   = 250  // power of all multiprocessors
	simSpinRound   = 2e-6 // seconds per round
	simRestWatts   = 120
	simSMs         = 132
	simMemoryWatts = 52 // power of the memory above idle at simCopyBytes
)

// simMemory returns the power of the memory above idle in watts, at a rate in bytes per second.
func simMemory(rate float64) float64 { return simMemoryWatts * min(1, rate/simCopyBytes) }

// simTraffic returns the power and time of one execution of traffic.
func simTraffic(t cuda.Traffic) (k power.SimKernel, err error) {
	if err := t.Validate(); err != nil {
		return k, err
	}
	bytes, rate := float64(t.Bytes), 0.0
	switch {
	case t.Kind == cuda.Copy && 2*t.Bytes <= simCache:
		bytes, rate, k.Watts = 2*bytes, simCachedBytes, simCachedWatts
	case t.Kind == cuda.Copy:
		bytes, rate, k.Watts = 2*bytes, simCopyBytes, simCopyWatts
		k.Memory = simMemory(rate)
	case t.Kind == cuda.Fill:
		rate, k.Watts = simFillBytes, simFillWatts
		if t.Bytes > simCache {
			k.Memory = simMemory(rate)
		}
	case t.Kind == cuda.Read:
		share := simShare(t.Blocks)
		bytes *= float64(max(1, t.Rounds))
		rate = share * simCopyBytes
		k.Watts = simRestWatts + share*(simCopyWatts-simRestWatts)
		if t.Bytes > simCache {
			k.Memory = simMemory(rate)
		}
	case t.Kind == cuda.Spin:
		share := simShare(t.Blocks)
		bytes, rate = simSpinRound*float64(max(1, t.Rounds)), 1
		k.Watts = simRestWatts + share*(simSpinWatts-simRestWatts)
	case t.Kind == cuda.Rest:
		bytes, rate, k.Watts = t.Time.Seconds(), 1, simRestWatts
	default: // a launch
		bytes, rate, k.Watts = 0, 1, simLaunchWatts
	}
	k.Seconds = max(simKernel, bytes/rate)
	return k, nil
}

// simShare returns the share of the multiprocessors that a number of blocks keeps busy; 0 blocks means all.
func simShare(blocks int) float64 {
	if blocks == 0 {
		return 1
	}
	return min(1, float64(blocks)/simSMs)
}
