//go:build cgo && linux

package power

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// Open finds a card through NVML by its index ("0"), its UUID ("GPU-…") or its place on the bus
// ("0000:1b:00.0"). The last two are safer: NVML counts cards in the order of the bus, whatever
// CUDA_VISIBLE_DEVICES says.
//
// It fails with ErrNoNVML where there is no library or no driver, with ErrNoCard where there is no
// such card, and with ErrMIG for a slice of one.
func Open(id string) (Card, error) { return openNVML(nvml.New(), id) }

func openNVML(lib nvml.Interface, id string) (Card, error) {
	if ret := lib.Init(); ret != nvml.SUCCESS {
		return nil, initError(ret)
	}
	dev, err := find(lib, id)
	if err == nil {
		err = wholeCard(dev, id)
	}
	if err != nil {
		lib.Shutdown()
		return nil, err
	}
	return &nvmlCard{lib: lib, dev: dev, info: nvmlInfo(lib, dev)}, nil
}

// initError says what to do about a library that does not start.
func initError(ret nvml.Return) error {
	switch ret {
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		return fmt.Errorf("libnvidia-ml.so.1 is not on the loader's path: install NVIDIA's driver, or give the container the utility capability: %w", ErrNoNVML)
	case nvml.ERROR_DRIVER_NOT_LOADED:
		return fmt.Errorf("NVIDIA's driver is not loaded: nvidia-smi should list a card first: %w", ErrNoNVML)
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		return fmt.Errorf("libnvidia-ml.so.1 and the loaded driver differ in version: reboot after a driver update: %w", ErrNoNVML)
	case nvml.ERROR_NO_PERMISSION:
		return fmt.Errorf("no permission to open the driver: see who may read /dev/nvidia*: %w", ErrNoNVML)
	}
	return fmt.Errorf("NVML does not start (%s): %w", returnName(ret), ErrNoNVML)
}

// find looks a card up.
func find(lib nvml.Interface, id string) (nvml.Device, error) {
	if strings.HasPrefix(id, "MIG-") {
		return nil, fmt.Errorf("%q: %w", id, ErrMIG)
	}
	var byName func(string) (nvml.Device, nvml.Return)
	switch {
	case strings.HasPrefix(id, "GPU-"):
		byName = lib.DeviceGetHandleByUUID
	case strings.Contains(id, ":"):
		byName = lib.DeviceGetHandleByPciBusId
	}
	if byName != nil {
		dev, ret := byName(id)
		if ret != nvml.SUCCESS {
			return nil, fmt.Errorf("no card %q (%s): nvidia-smi -q lists those there are: %w", id, returnName(ret), ErrNoCard)
		}
		return dev, nil
	}
	index, err := strconv.Atoi(id)
	if err != nil {
		return nil, fmt.Errorf("card %q: want an index as 0, a UUID as GPU-… or a bus id as 0000:1b:00.0: %w", id, ErrNoCard)
	}
	count, ret := lib.DeviceGetCount()
	if ret == nvml.SUCCESS && (index < 0 || index >= count) {
		return nil, fmt.Errorf("no card %d: the driver sees %d: %w", index, count, ErrNoCard)
	}
	dev, ret := lib.DeviceGetHandleByIndex(index)
	switch ret {
	case nvml.SUCCESS:
		return dev, nil
	case nvml.ERROR_NO_PERMISSION:
		return nil, fmt.Errorf("no permission to read card %d: see who may read /dev/nvidia%d: %w", index, index, ErrNoCard)
	}
	return nil, fmt.Errorf("card %d cannot be read (%s): %w", index, returnName(ret), ErrNoCard)
}

// wholeCard refuses slices, and cards that are cut into slices.
func wholeCard(dev nvml.Device, id string) error {
	if slice, ret := dev.IsMigDeviceHandle(); ret == nvml.SUCCESS && slice {
		return fmt.Errorf("%q: %w", id, ErrMIG)
	}
	if mode, _, ret := dev.GetMigMode(); ret == nvml.SUCCESS && mode == nvml.DEVICE_MIG_ENABLE {
		return fmt.Errorf("card %q is cut into MIG slices: %w", id, ErrMIG)
	}
	return nil
}

// nvmlCard is a Card behind NVML.
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

func (c *nvmlCard) Power(sensor Sensor, scope Scope) (float64, error) {
	field := uint32(nvml.FI_DEV_POWER_INSTANT)
	if sensor == Average {
		field = nvml.FI_DEV_POWER_AVERAGE
	}
	scopes := map[Scope]uint32{GPU: nvml.POWER_SCOPE_GPU, Module: nvml.POWER_SCOPE_MODULE, Memory: nvml.POWER_SCOPE_MEMORY}
	values := []nvml.FieldValue{{FieldId: field, ScopeId: scopes[scope]}}
	if ret := c.dev.GetFieldValues(values); ret != nvml.SUCCESS {
		return 0, queryError("power", ret)
	}
	// The call may succeed while the value in it does not.
	if ret := nvml.Return(values[0].NvmlReturn); ret != nvml.SUCCESS {
		return 0, queryError("power", ret)
	}
	mw, err := fieldValue(values[0])
	return mw / 1000, err
}

// fieldValue reads the member of the union that the type names.
func fieldValue(v nvml.FieldValue) (float64, error) {
	switch nvml.ValueType(v.ValueType) {
	case nvml.VALUE_TYPE_UNSIGNED_INT:
		return float64(binary.NativeEndian.Uint32(v.Value[:])), nil
	case nvml.VALUE_TYPE_UNSIGNED_LONG, nvml.VALUE_TYPE_UNSIGNED_LONG_LONG:
		return float64(binary.NativeEndian.Uint64(v.Value[:])), nil
	case nvml.VALUE_TYPE_DOUBLE:
		return math.Float64frombits(binary.NativeEndian.Uint64(v.Value[:])), nil
	}
	return 0, fmt.Errorf("power of value type %d: %w", v.ValueType, ErrAbsent)
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

// Throttle uses the older name of the query: every driver has it.
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
		if bytes == math.MaxUint64 { // NVML's way of saying that it does not know
			bytes = 0
		}
		all = append(all, Process{PID: int(p.Pid), Bytes: bytes})
	}
	return all, nil
}

// queryError is nil, or wraps ErrAbsent where the card has no answer.
func queryError(what string, ret nvml.Return) error {
	switch ret {
	case nvml.SUCCESS:
		return nil
	case nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_NO_DATA, nvml.ERROR_NOT_FOUND,
		nvml.ERROR_INVALID_ARGUMENT, nvml.ERROR_FUNCTION_NOT_FOUND:
		return fmt.Errorf("%s (%s): %w", what, returnName(ret), ErrAbsent)
	case nvml.ERROR_NO_PERMISSION:
		return fmt.Errorf("%s: no permission: ask as a user who may read the card's sensors", what)
	case nvml.ERROR_GPU_IS_LOST:
		return errors.New(what + ": the card is lost to its driver: see the kernel's log")
	}
	return fmt.Errorf("%s: NVML: %s", what, returnName(ret))
}

// returnName spells a code without the library, which may be missing.
func returnName(ret nvml.Return) string {
	names := map[nvml.Return]string{
		nvml.ERROR_UNINITIALIZED: "uninitialized", nvml.ERROR_INVALID_ARGUMENT: "invalid argument",
		nvml.ERROR_NOT_SUPPORTED: "not supported", nvml.ERROR_NO_PERMISSION: "no permission",
		nvml.ERROR_NOT_FOUND: "not found", nvml.ERROR_DRIVER_NOT_LOADED: "driver not loaded",
		nvml.ERROR_TIMEOUT: "timeout", nvml.ERROR_LIBRARY_NOT_FOUND: "library not found",
		nvml.ERROR_FUNCTION_NOT_FOUND: "function not found", nvml.ERROR_GPU_IS_LOST: "card lost",
		nvml.ERROR_OPERATING_SYSTEM: "refused by the operating system", nvml.ERROR_NO_DATA: "no data",
		nvml.ERROR_LIB_RM_VERSION_MISMATCH: "library and driver differ in version",
		nvml.ERROR_UNKNOWN:                 "unknown error",
	}
	if name, ok := names[ret]; ok {
		return name
	}
	return fmt.Sprintf("code %d", int(ret))
}

func (c *nvmlCard) Sample(Sensor, Scope) (Sample, error) { return Sample{}, ErrAbsent }

func (c *nvmlCard) Samples(time.Time) ([]Sample, error) { return nil, ErrAbsent }
