//go:build cgo && linux && !nogpu

package power

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// Open opens a card through NVML by its index ("0"), its UUID ("GPU-…") or its PCI bus ID ("0000:1b:00.0"). Prefer the
// UUID or the bus ID: NVML counts cards in the order of the bus and ignores CUDA_VISIBLE_DEVICES.
//
// Open fails with ErrNoNVML if there is no library or driver, with ErrNoCard if there is no such card, and with ErrMIG
// for a MIG slice of a card.
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

// initError returns an error with advice if the library fails to start.
func initError(ret nvml.Return) error {
	switch ret {
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		return fmt.Errorf("%w: libnvidia-ml.so.1 is not on the loader's path: install NVIDIA's driver, or give the container the utility capability", ErrNoNVML)
	case nvml.ERROR_DRIVER_NOT_LOADED:
		return fmt.Errorf("%w: NVIDIA's driver is not loaded: load the driver, and check that nvidia-smi lists a card", ErrNoNVML)
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		return fmt.Errorf("%w: libnvidia-ml.so.1 and the loaded driver differ in version: reboot after a driver update", ErrNoNVML)
	case nvml.ERROR_NO_PERMISSION:
		return fmt.Errorf("%w: no permission to open the driver: check the permissions of /dev/nvidia*", ErrNoNVML)
	}
	return fmt.Errorf("%w: libnvidia-ml.so.1 does not start (%s): check that nvidia-smi lists a card", ErrNoNVML, returnName(ret))
}

// unreadable is an error that errors.Is takes for an [ErrNoCard].
type unreadable struct{ error }

func (e unreadable) Is(target error) bool { return target == ErrNoCard }

func noCard(format string, args ...any) error { return unreadable{fmt.Errorf(format, args...)} }

// find looks up a card.
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
			return nil, noCard("no card %q (%s): run nvidia-smi -q to list the cards", id, returnName(ret))
		}
		return dev, nil
	}
	index, err := strconv.Atoi(id)
	if err != nil {
		return nil, noCard("no card %q: give an index such as 0, a UUID such as GPU-…, or a bus ID such as 0000:1b:00.0", id)
	}
	count, ret := lib.DeviceGetCount()
	if ret == nvml.SUCCESS && (index < 0 || index >= count) {
		return nil, noCard("no card %d: the number of cards is %d, and indices start at 0", index, count)
	}
	dev, ret := lib.DeviceGetHandleByIndex(index)
	switch ret {
	case nvml.SUCCESS:
		return dev, nil
	case nvml.ERROR_NO_PERMISSION:
		return nil, noCard("no permission to read card %d: check the permissions of /dev/nvidia%d", index, index)
	}
	return nil, noCard("card %d cannot be read (%s): check that nvidia-smi lists this card", index, returnName(ret))
}

// wholeCard returns an error for MIG slices and for cards with slices.
func wholeCard(dev nvml.Device, id string) error {
	if slice, ret := dev.IsMigDeviceHandle(); ret == nvml.SUCCESS && slice {
		return fmt.Errorf("%q: %w", id, ErrMIG)
	}
	if mode, _, ret := dev.GetMigMode(); ret == nvml.SUCCESS && mode == nvml.DEVICE_MIG_ENABLE {
		return fmt.Errorf("card %q is divided into MIG slices: %w", id, ErrMIG)
	}
	return nil
}
