//go:build cgo && linux && !nogpu

package power

import (
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// nvmlInfo queries all values of Info. A value whose query fails is left out.
func nvmlInfo(lib nvml.Interface, dev nvml.Device) Info {
	info := Info{
		Name:             known(dev.GetName()),
		UUID:             known(dev.GetUUID()),
		Driver:           known(lib.SystemGetDriverVersion()),
		PowerLimit:       watts(dev.GetEnforcedPowerLimit()),
		PowerLimitPreset: watts(dev.GetPowerManagementDefaultLimit()),
		MaxSMClock:       megahertz(dev.GetMaxClockInfo(nvml.CLOCK_SM)),
		MaxMemClock:      megahertz(dev.GetMaxClockInfo(nvml.CLOCK_MEM)),
		Persistence:      enabled(dev.GetPersistenceMode()),
	}
	if v, ret := lib.SystemGetCudaDriverVersion(); ret == nvml.SUCCESS {
		info.CUDA = fmt.Sprintf("%d.%d", v/1000, v%1000/10)
	}
	if low, high, ret := dev.GetPowerManagementLimitConstraints(); ret == nvml.SUCCESS {
		info.PowerLimitMin, info.PowerLimitMax = watts(low, ret), watts(high, ret)
	}
	if low, _, ret := dev.GetMinMaxClockOfPState(nvml.CLOCK_SM, nvml.PSTATE_0); ret == nvml.SUCCESS {
		info.MinSMClock = megahertz(low, ret)
	}
	if m, ret := dev.GetMemoryInfo(); ret == nvml.SUCCESS {
		info.MemoryBytes, info.MemoryUsed = &m.Total, &m.Used
	}
	if now, _, ret := dev.GetEccMode(); ret == nvml.SUCCESS {
		info.ECC = enabled(now, ret)
	}
	if now, _, ret := dev.GetMigMode(); ret == nvml.SUCCESS {
		on := now == nvml.DEVICE_MIG_ENABLE
		info.MIG = &on
	}
	if mode, ret := dev.GetComputeMode(); ret == nvml.SUCCESS {
		info.ComputeMode = computeModes[mode]
	}
	return info
}

var computeModes = map[nvml.ComputeMode]string{
	nvml.COMPUTEMODE_DEFAULT:           "default",
	nvml.COMPUTEMODE_EXCLUSIVE_THREAD:  "exclusive_thread",
	nvml.COMPUTEMODE_PROHIBITED:        "prohibited",
	nvml.COMPUTEMODE_EXCLUSIVE_PROCESS: "exclusive_process",
}

func known(s string, ret nvml.Return) string {
	if ret != nvml.SUCCESS {
		return ""
	}
	return s
}

func watts(mw uint32, ret nvml.Return) *float64 {
	return optional(float64(mw)/1000, queryError("limit", ret))
}

func megahertz(v uint32, ret nvml.Return) *float64 {
	return optional(float64(v), queryError("clock", ret))
}

func enabled(state nvml.EnableState, ret nvml.Return) *bool {
	return optional(state == nvml.FEATURE_ENABLED, queryError("mode", ret))
}
