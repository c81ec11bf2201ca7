package cuda

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lowtoggle/lowtoggle/internal/parallel"
)

// bounceBytes is the size of a rotation's buffer. It is large enough for copies at the memory's full speed.
const bounceBytes = 64 << 20

// Rotate moves the contents of each memory to the next one, and the contents of the last to the first, after all queued
// work. All memories must have allocations of the same sizes in the same order. If ctx ends or a copy fails, the
// contents are undefined. Rotate must be called within [Device.Do].
func (d *Device) Rotate(ctx context.Context, memories ...*Memory) (err error) {
	if ctx == nil {
		return parallel.ErrNoContext
	}
	largest := 0
	for _, m := range memories {
		if !slices.Equal(m.sizes, memories[0].sizes) {
			return fmt.Errorf("memory of %d allocations (%d bytes in all) cannot be exchanged with memory of %d allocations (%d bytes): the sizes must be equal", len(m.sizes), m.bytes, len(memories[0].sizes), memories[0].bytes)
		}
	}
	if len(memories) < 2 || len(memories[0].sizes) == 0 {
		return nil
	}
	for _, size := range memories[0].sizes {
		largest = max(largest, size)
	}
	bounce := arena{device: d}
	defer func() { err = errors.Join(err, d.sync(), bounce.free()) }()
	buffer, err := bounce.alloc(min(largest, bounceBytes))
	if err != nil {
		return err
	}
	for i, size := range memories[0].sizes {
		if err := ctx.Err(); err != nil {
			return err
		}
		for from := 0; from < size; from += bounceBytes {
			n := min(bounceBytes, size-from)
			at := func(m *Memory) Address { return Address(m.addresses[i]).Plus(from) }
			last := len(memories) - 1
			if err := d.CopyWithin(Address(buffer), at(memories[last]), n); err != nil {
				return err
			}
			for k := last; k > 0; k-- {
				if err := d.CopyWithin(at(memories[k]), at(memories[k-1]), n); err != nil {
					return err
				}
			}
			if err := d.CopyWithin(at(memories[0]), Address(buffer), n); err != nil {
				return err
			}
		}
	}
	return nil
}
