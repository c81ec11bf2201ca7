package cuda

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/weights"
)

// The functions in this file must be called on the device's thread. Copies and fills use the null stream, and each of
// them waits for its own end. Replays on the device's own stream continue meanwhile.

// alloc allocates at least 16 bytes and returns their address, a multiple of 256.
func (d *Device) alloc(bytes int) (address uint64, err error) {
	err = d.api.check("cuMemAlloc", d.api.cuMemAlloc(&address, uint64(max(bytes, 16))))
	if errors.Is(err, ErrOutOfMemory) {
		free, _ := d.freeMemory()
		err = fmt.Errorf("%.1f MiB were requested, and %.1f MiB of the card's %.1f MiB are free: %w", mib(bytes), mib(free), mib(d.info.Memory), err)
	}
	return address, err
}

func mib[T int | int64](bytes T) float64 { return float64(bytes) / (1 << 20) }

func (d *Device) free(address uint64) error {
	return d.api.check("cuMemFree", d.api.cuMemFree(address))
}

func (d *Device) sync() error { return d.api.check("cuCtxSynchronize", d.api.cuCtxSynchronize()) }

// copied waits for the null stream, but not for other streams.
func (d *Device) copied() error {
	return d.api.check("cuStreamSynchronize", d.api.cuStreamSynchronize(0))
}

func (d *Device) freeMemory() (int64, error) {
	var free, total uint64
	err := d.api.check("cuMemGetInfo", d.api.cuMemGetInfo(&free, &total))
	return int64(free), err
}

// stage returns page-locked host memory, which the card reads and writes several times as fast as ordinary memory. If
// the driver refuses page-locked memory, stage returns ordinary memory.
func (d *Device) stage() []byte {
	if d.staging == nil {
		if d.api.cuMemAllocHost(&d.locked, stagingBytes) == success {
			d.staging = unsafe.Slice(d.locked, stagingBytes)
		} else {
			d.locked, d.staging = nil, make([]byte, stagingBytes)
		}
	}
	return d.staging
}

// upload copies data to the card. data may lie in a mapped file. It therefore passes through host memory that cannot
// fault while the driver reads it.
func (d *Device) upload(to uint64, data []byte) error {
	for len(data) > 0 {
		part := d.stage()[:min(len(data), stagingBytes)]
		err := first(
			func() error { return copied(part, data[:len(part)]) },
			func() error {
				return d.api.check("cuMemcpyHtoD", d.api.cuMemcpyHtoD(to, &part[0], uint64(len(part))))
			},
			d.copied,
		)
		if err != nil {
			return err
		}
		to, data = to+uint64(len(part)), data[len(part):]
	}
	return nil
}

const (
	stagingBytes = 16 << 20
	// copyBytes is the number of bytes that each goroutine copies.
	copyBytes   = 2 << 20
	copyWorkers = 8
)

// copied copies host memory on several goroutines. from may lie in a mapped file.
func copied(to, from []byte) error {
	return parallel.Run(context.Background(), (len(to)+copyBytes-1)/copyBytes, copyWorkers, func(_ context.Context, i int) error {
		end := min((i+1)*copyBytes, len(to))
		return weights.Guard("an operand", func() error { copy(to[i*copyBytes:end], weights.Need(from[i*copyBytes:end])); return nil })
	})
}

// download copies data from the card, after all queued work.
func (d *Device) download(data []byte, from uint64) error {
	if err := d.sync(); err != nil {
		return err
	}
	for len(data) > 0 {
		part := data[:min(len(data), stagingBytes)]
		through := part
		if len(part) > copyBytes {
			through = d.stage()[:len(part)]
		}
		if err := d.api.check("cuMemcpyDtoH", d.api.cuMemcpyDtoH(&through[0], from, uint64(len(part)))); err != nil {
			return err
		}
		if len(part) > copyBytes {
			if err := copied(part, through); err != nil {
				return err
			}
		}
		data, from = data[len(part):], from+uint64(len(part))
	}
	return nil
}

func (d *Device) duplicate(to, from uint64, bytes int) error {
	if err := d.api.check("cuMemcpyDtoD", d.api.cuMemcpyDtoD(to, from, uint64(bytes))); err != nil {
		return err
	}
	return d.copied()
}

// poison fills memory with NaNs, so that elements that a kernel did not write can be detected.
func (d *Device) poison(address uint64, bytes int) error {
	if err := d.api.check("cuMemsetD8", d.api.cuMemsetD8(address, 0xFF, uint64(bytes))); err != nil {
		return err
	}
	return d.copied()
}

// arena is device memory that is freed all at once.
type arena struct {
	device    *Device
	addresses []uint64
	sizes     []int // in bytes
}

func (a *arena) alloc(bytes int) (uint64, error) {
	address, err := a.device.alloc(bytes)
	if err == nil {
		a.addresses, a.sizes = append(a.addresses, address), append(a.sizes, bytes)
	}
	return address, err
}

// operand uploads m, padded to rows × cols, and returns its address.
func (a *arena) operand(m gemm.Matrix, rows, cols int) (uint64, error) {
	data, err := guardedPadding(m, rows, cols)
	if err != nil {
		return 0, err
	}
	address, err := a.alloc(len(data))
	if err != nil {
		return 0, err
	}
	return address, a.device.upload(address, data)
}

// stacked uploads several copies of m, stacked along the rows and padded to rows × cols, and returns their address.
func (a *arena) stacked(m gemm.Matrix, times, rows, cols int) (uint64, error) {
	if times == 1 {
		return a.operand(m, rows, cols)
	}
	address, err := a.alloc(rows * cols * m.DType.Bits() / 8)
	if err != nil {
		return 0, err
	}
	return address, a.device.stack(address, m, times, rows, cols)
}

// stack uploads several copies of m to an address, stacked along the rows and padded to rows × cols.
func (d *Device) stack(address uint64, m gemm.Matrix, times, rows, cols int) error {
	data, err := guardedPadding(m, m.Rows, cols)
	if err != nil {
		return err
	}
	if err := d.upload(address, data); err != nil {
		return err
	}
	all := times * len(data)
	if err := d.spread(address, len(data), all); err != nil {
		return err
	}
	return d.upload(address+uint64(all), make([]byte, rows*cols*m.DType.Bits()/8-all))
}

// spread repeats the first first bytes at an address until all bytes are filled.
func (d *Device) spread(address uint64, first, all int) error {
	for done := first; done < all; done *= 2 {
		if err := d.duplicate(address+uint64(done), address, min(done, all-done)); err != nil {
			return err
		}
	}
	return nil
}

// guardedPadding is padded for data that may lie in a mapped file.
func guardedPadding(m gemm.Matrix, rows, cols int) (data []byte, err error) {
	err = weights.Guard("an operand", func() error { data = padded(m, rows, cols); return nil })
	return data, err
}

func (a *arena) free() error {
	var errs []error
	for _, address := range a.addresses {
		errs = append(errs, a.device.free(address))
	}
	a.addresses, a.sizes = nil, nil
	return errors.Join(errs...)
}
