package rounder

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/transform/rounding"
)

// Rounder is a [rounding.Device] on an NVIDIA GPU.
type Rounder struct {
	device  *cuda.Device
	kernels *kernels

	hessians hessians

	work   sync.Mutex // one computation at a time
	spaces map[string]*space
}

// New compiles the kernels for a GPU and returns a rounder. The rounder must be the only user of the device. Without
// NVRTC the error is a [cuda.ErrNoCompiler].
func New(ctx context.Context, device *cuda.Device) (*Rounder, error) {
	if device == nil {
		return nil, cuda.ErrNoGPU
	}
	k, err := compile(ctx, device)
	if err != nil {
		return nil, err
	}
	return &Rounder{device: device, kernels: k, hessians: hessians{known: map[string]*hessian{}}, spaces: map[string]*space{}}, nil
}

// Hessian implements [rounding.Device].
func (r *Rounder) Hessian(key string, load func(context.Context) (*rounding.Triangle, error)) rounding.DeviceHessian {
	return &handle{r, key, load}
}

// Release frees the card's memory. The rounder may be used again.
func (r *Rounder) Release() error {
	r.work.Lock()
	defer r.work.Unlock()
	return r.device.Release(func() error { return errors.Join(r.freeSpaces(), r.hessians.free()) })
}

// Close frees the memory and the kernels; the device stays open.
func (r *Rounder) Close() error { return errors.Join(r.Release(), r.kernels.module.Close()) }

// space is device memory that computations reuse.
type space struct {
	memory *cuda.Memory
	at     cuda.Address
	bytes  int
}

// space returns memory of at least the given number of bytes, with undefined contents. Calls with the same name return
// the same memory. It must be called within Device.Do.
func (r *Rounder) space(name string, bytes int) (cuda.Address, error) {
	s := r.spaces[name]
	if s == nil {
		s = &space{memory: r.device.NewMemory()}
		r.spaces[name] = s
	}
	if s.bytes >= bytes {
		return s.at, nil
	}
	s.bytes = 0
	err := errors.Join(r.device.Synchronize(), s.memory.Free())
	if err != nil {
		return 0, err
	}
	if s.at, err = s.memory.Alloc(bytes); errors.Is(err, cuda.ErrOutOfMemory) {
		if r.hessians.evict(nil) == nil {
			s.at, err = s.memory.Alloc(bytes)
		}
	}
	if err != nil {
		return 0, fmt.Errorf("rounding on the GPU: %s: %w", name, err)
	}
	s.bytes = bytes
	return s.at, nil
}

func (r *Rounder) freeSpaces() error {
	var errs []error
	for _, s := range r.spaces {
		errs = append(errs, s.memory.Free())
	}
	clear(r.spaces)
	return errors.Join(errs...)
}

// handle is a [rounding.DeviceHessian].
type handle struct {
	*Rounder
	key  string
	load func(context.Context) (*rounding.Triangle, error)
}

// Diagonal implements [rounding.DeviceHessian].
func (h *handle) Diagonal(ctx context.Context) ([]float32, error) {
	on, err := h.hessian(ctx)
	if err != nil {
		return nil, err
	}
	defer on.users.Add(-1)
	return on.diagonal, nil
}
