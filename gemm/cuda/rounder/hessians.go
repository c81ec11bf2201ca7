package rounder

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
)

// hessians are the Hessians on the card.
type hessians struct {
	mu    sync.Mutex
	known map[string]*hessian
	room  int64 // largest total size in bytes; 0: not known yet
	clock int64 // counts uses
}

// share limits the Hessians to 1/share of the card's free memory. The remaining memory is for a model that runs at the
// same time.
const share = 3

// hessian is the upper triangle of a Hessian on the card.
type hessian struct {
	loading  sync.Mutex // held while the Hessian is loaded
	memory   *cuda.Memory
	at       cuda.Address // 0: not on the card
	width    int
	diagonal []float32
	used     int64        // the last use
	users    atomic.Int32 // number of goroutines that may be using at
}

func (h *hessian) bytes() int64 { return 2 * int64(h.width) * int64(h.width+1) }

// hessian returns the handle's Hessian on the card, and loads it if needed. The caller must decrement users after use.
func (h *handle) hessian(ctx context.Context) (*hessian, error) {
	all := &h.hessians
	all.mu.Lock()
	on := all.known[h.key]
	if on == nil {
		on = &hessian{}
		all.known[h.key] = on
	}
	all.clock++
	on.used = all.clock
	on.users.Add(1)
	all.mu.Unlock()
	on.loading.Lock()
	defer on.loading.Unlock()
	if on.at != 0 {
		return on, nil
	}
	t, err := h.load(ctx)
	if err == nil {
		err = t.Check()
	}
	if err == nil {
		on.width, on.diagonal = t.Width, t.Diagonal()
		err = h.device.Do(func() error { return h.put(on, t.Data) })
	}
	if err != nil {
		on.users.Add(-1)
		return nil, err
	}
	return on, nil
}

// put uploads a Hessian. It must be called within Device.Do.
func (r *Rounder) put(on *hessian, data []float32) error {
	all := &r.hessians
	if all.room == 0 {
		free, err := r.device.Free()
		if err != nil {
			return err
		}
		all.room = free / share
	}
	if err := all.evict(on); err != nil {
		return err
	}
	memory := r.device.NewMemory()
	at, err := memory.Alloc(4 * len(data))
	if errors.Is(err, cuda.ErrOutOfMemory) && all.evict(nil) == nil {
		at, err = memory.Alloc(4 * len(data))
	}
	if err == nil {
		err = r.device.Upload(at, bytesOf(data))
	}
	if err != nil {
		_ = memory.Free() // the first error is returned
		return fmt.Errorf("rounding on the GPU: Hessian of %d inputs: %w", on.width, err)
	}
	on.memory, on.at = memory, at
	return nil
}

// evict frees unused Hessians, the least recently used first, until next fits into memory. If next is nil, it frees all
// unused Hessians. It must be called within Device.Do.
func (all *hessians) evict(next *hessian) error {
	all.mu.Lock()
	defer all.mu.Unlock()
	for {
		var sum int64
		var oldest *hessian
		for _, h := range all.known {
			if h.memory == nil {
				continue
			}
			sum += h.bytes()
			if h.users.Load() == 0 && (oldest == nil || h.used < oldest.used) {
				oldest = h
			}
		}
		if oldest == nil || next != nil && sum+next.bytes() <= all.room {
			return nil
		}
		if err := oldest.free(); err != nil {
			return err
		}
	}
}

func (h *hessian) free() error {
	memory := h.memory
	h.memory, h.at = nil, 0
	if memory == nil {
		return nil
	}
	return memory.Free()
}

// free frees all Hessians.
func (all *hessians) free() error {
	all.mu.Lock()
	defer all.mu.Unlock()
	var errs []error
	for _, h := range all.known {
		errs = append(errs, h.free())
	}
	clear(all.known)
	all.room = 0
	return errors.Join(errs...)
}

// bytesOf returns the memory of v as bytes.
func bytesOf[T any](v []T) []byte {
	if len(v) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), len(v)*int(unsafe.Sizeof(v[0])))
}
