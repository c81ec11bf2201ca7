//go:build cgo && linux && !nogpu

package power

import (
	"fmt"
	"math"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// nvmlCard is a Card and Governor that uses NVML.
type nvmlCard struct {
	lib  nvml.Interface
	dev  nvml.Device
	info Info
}

func (c *nvmlCard) Info() Info { return c.info }

func (c *nvmlCard) Close() error {
	if ret := c.lib.Shutdown(); ret != nvml.SUCCESS {
		return fmt.Errorf("NVML does not shut down: %s", returnName(ret))
	}
	return nil
}

func (c *nvmlCard) Energy() (uint64, error) {
	mj, ret := c.dev.GetTotalEnergyConsumption()
	return mj, queryError("energy", ret)
}

func (c *nvmlCard) Temperature() (float64, error) {
	v, ret := c.dev.GetTemperature(nvml.TEMPERATURE_GPU)
	return float64(v), queryError("temperature", ret)
}

func (c *nvmlCard) SMClock() (float64, error) {
	v, ret := c.dev.GetClockInfo(nvml.CLOCK_SM)
	return float64(v), queryError("clock", ret)
}

func (c *nvmlCard) MemClock() (float64, error) {
	v, ret := c.dev.GetClockInfo(nvml.CLOCK_MEM)
	return float64(v), queryError("memory clock", ret)
}

// Throttle uses the older name of the query, which every driver supports.
func (c *nvmlCard) Throttle() (Throttle, error) {
	v, ret := c.dev.GetCurrentClocksThrottleReasons()
	return Throttle(v), queryError("throttle reasons", ret)
}

func (c *nvmlCard) Processes() ([]Process, error) {
	compute, ret := c.dev.GetComputeRunningProcesses()
	if err := queryError("processes", ret); err != nil {
		return nil, err
	}
	graphics, _ := c.dev.GetGraphicsRunningProcesses()
	var all []Process
	seen := map[uint32]bool{}
	for _, p := range append(compute, graphics...) {
		if seen[p.Pid] {
			continue
		}
		seen[p.Pid] = true
		bytes := p.UsedGpuMemory
		if bytes == math.MaxUint64 { // NVML's value for unknown
			bytes = 0
		}
		all = append(all, Process{PID: int(p.Pid), Bytes: bytes})
	}
	return all, nil
}
