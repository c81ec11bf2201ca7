//go:build cgo && linux

package power

import (
	"fmt"
	"strconv"
	"strings"

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
