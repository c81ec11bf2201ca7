package cuda

import (
	"errors"
	"fmt"
)

// ErrNoGPU marks every reason why this machine cannot multiply on a GPU: no driver, no device, no
// cuBLASLt, an old version, or a platform without CUDA. The text names the reason.
var ErrNoGPU = errors.New("no usable NVIDIA GPU")

// ErrOutOfMemory marks an allocation that exceeds the card's free memory.
var ErrOutOfMemory = errors.New("out of GPU memory")

// ErrNoKernel is the error for a size beyond the limits of the kernels on this card.
var ErrNoKernel = errors.New("no kernel for this size")

var errClosed = errors.New("the GPU was closed")

func noGPU(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrNoGPU, fmt.Errorf(format, args...))
}

// check turns a driver call's result into an error that names the call.
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

// checkLt turns a cuBLASLt call's status into an error that names the call.
func (a *api) checkLt(call string, s status) error {
	if s == 0 {
		return nil
	}
	return fmt.Errorf("%s: %s (%d)", call, a.cublasLtGetStatusString(s), s)
}
