package measure

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/power"
)

func TestNoGPU(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{cuda.ErrNoGPU, true}, {power.ErrNoNVML, true}, {power.ErrNoCGO, true}, {power.ErrNoCard, true}, {power.ErrMIG, true},
		{nil, false}, {cuda.ErrOutOfMemory, false}, {power.ErrAbsent, false}, {power.ErrCounterStill, false},
		{gemm.ErrNotFinite, false}, {context.Canceled, false},
	} {
		for _, err := range []error{c.err, wrapped(c.err), errors.Join(c.err, errors.New("and closing failed"))} {
			if have := NoGPU(err); have != c.want {
				t.Errorf("NoGPU(%v) is %v", err, have)
			}
		}
	}
}

func wrapped(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("no measurement: %w", err)
}

// TestOpenNoSuchGPU asks for a number that no machine has, with or without GPUs.
func TestOpenNoSuchGPU(t *testing.T) {
	for _, index := range []int{-1, 1 << 20} {
		m, err := Open(index)
		if m != nil || !NoGPU(err) {
			t.Errorf("GPU %d: %v, error %v", index, m, err)
		}
	}
}
