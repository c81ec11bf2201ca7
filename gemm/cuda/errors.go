package cuda

import (
	"errors"
	"fmt"
)

// ErrNoGPU is wrapped by every error of a machine that cannot multiply on a GPU: no driver, no device, no cuBLASLt, a
// version that is too old, or a platform without CUDA. The error's text gives the reason.
var ErrNoGPU = errors.New("no usable NVIDIA GPU")

// ErrOutOfMemory is the error of an allocation that exceeds the card's free memory.
var ErrOutOfMemory = errors.New("out of GPU memory")

// ErrNoKernel is the error for a size beyond the limits of all kernels on this card.
var ErrNoKernel = errors.New("no kernel for this size")

var errClosed = errors.New("the GPU was closed")

func noGPU(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrNoGPU, fmt.Errorf(format, args...))
}

// check returns the error of a driver call, with the call's name; nil on success.
func (a *api) check(call string, r result) error {
	if r == success {
		return nil
	}
	var name, text *byte
	a.cuGetErrorName(r, &name)
	a.cuGetErrorString(r, &text)
	err := fmt.Errorf("%s: %s (%d): %s", call, cString(name), r, cString(text))
	if r == errorOutOfMemory {
		return fmt.Errorf("%w: %w", ErrOutOfMemory, err)
	}
	return err
}

// checkLt returns the error of a cuBLASLt call, with the call's name; nil on success.
func (a *api) checkLt(call string, s status) error {
	if s == 0 {
		return nil
	}
	return fmt.Errorf("%s: %s (%d)", call, a.cublasLtGetStatusString(s), s)
}
