//go:build cgo && linux && !nogpu

package power

import (
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// queryError returns the error of a query; nil for success. It wraps ErrAbsent if the card does not provide the value.
func queryError(what string, ret nvml.Return) error {
	switch ret {
	case nvml.SUCCESS:
		return nil
	case nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_NO_DATA, nvml.ERROR_NOT_FOUND,
		nvml.ERROR_INVALID_ARGUMENT, nvml.ERROR_FUNCTION_NOT_FOUND:
		return fmt.Errorf("%s (%s): %w", what, returnName(ret), ErrAbsent)
	case nvml.ERROR_NO_PERMISSION:
		return fmt.Errorf("%s: no permission: run as a user who may read the card's sensors", what)
	case nvml.ERROR_GPU_IS_LOST:
		return fmt.Errorf("%s: %w", what, ErrLost)
	}
	return fmt.Errorf("%s: NVML: %s", what, returnName(ret))
}

// returnName returns the name of a return code. It does not call the library, which may be missing.
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
