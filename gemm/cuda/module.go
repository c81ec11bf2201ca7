package cuda

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"github.com/lowtoggle/lowtoggle/internal/parallel"
)

// Address is an address in the card's memory.
type Address uint64

// Plus returns the address a + bytes.
func (a Address) Plus(bytes int) Address { return a + Address(bytes) }

// Module holds kernels that were compiled at run time. Closing the device frees it.
type Module struct {
	device *Device
	name   string
	handle uintptr
}

// leastCapability is the lowest compute capability for which kernels are compiled, because they use BF16 on tensor
// cores.
const leastCapability = 80

// Compile compiles the CUDA C++ source for this card and loads it. Messages contain name. Defines are macros in the
// form NAME=VALUE.
//
// Without NVRTC, or if the source does not compile for this card, the error is an [ErrNoCompiler]. Compiling takes
// seconds. If ctx ends first, Compile returns ctx's error at once, and the compiler finishes in the background.
func (d *Device) Compile(ctx context.Context, name, source string, defines ...string) (*Module, error) {
	if ctx == nil {
		return nil, parallel.ErrNoContext
	}
	c, err := d.api.compiler()
	if err != nil {
		return nil, err
	}
	if have := d.info.capability; have < leastCapability {
		return nil, fmt.Errorf("%w: %s has compute capability %d.%d, but kernels compiled at run time need %d.%d (Ampere) or later",
			ErrNoCompiler, d.info.Name, have/10, have%10, leastCapability/10, leastCapability%10)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	type compiled struct {
		image []byte
		err   error
	}
	done := make(chan compiled, 1)
	go func() {
		image, err := c.once(name, source, d.info.capability, defines)
		done <- compiled{image, err}
	}()
	var code compiled
	select {
	case code = <-done:
	case <-ctx.Done():
		code.err = ctx.Err()
	}
	if code.err != nil {
		return nil, code.err
	}
	m := &Module{device: d, name: name}
	err = d.Do(func() error {
		return d.api.check("cuModuleLoadData", d.api.cuModuleLoadData(&m.handle, &code.image[0]))
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return m, nil
}

// onceModule is a module that is compiled on first use. Closing the device frees it.
type onceModule struct {
	mu     sync.Mutex
	module *Module
}

// compile returns the module of a source. It must not be called within Do.
func (o *onceModule) compile(ctx context.Context, d *Device, name, source string) (m *Module, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.module == nil {
		o.module, err = d.Compile(ctx, name, source)
	}
	return o.module, err
}

// Close unloads the kernels. It is idempotent.
func (m *Module) Close() error {
	return m.device.release(func() error {
		if m.handle == 0 {
			return nil
		}
		handle := m.handle
		m.handle = 0
		return m.device.api.check("cuModuleUnload", m.device.api.cuModuleUnload(handle))
	})
}

// Function is a kernel of a module. It is freed with the module.
type Function struct {
	device *Device
	name   string
	handle uintptr
	shared int // dynamic shared memory of each launch in bytes
}

// staticShared is the shared memory in bytes that a kernel may use without setting an attribute.
const staticShared = 48 << 10

// Function returns the kernel with the given name. Each launch gets shared bytes of dynamic shared memory. Cards of
// compute capability 8.0 and later have 99 to 227 KiB per block.
func (m *Module) Function(name string, shared int) (*Function, error) {
	f := &Function{device: m.device, name: name, shared: shared}
	err := m.device.Do(func() error {
		a := m.device.api
		if err := a.check("cuModuleGetFunction", a.cuModuleGetFunction(&f.handle, m.handle, cText(name))); err != nil || shared <= staticShared {
			return err
		}
		if err := a.check("cuFuncSetAttribute", a.cuFuncSetAttribute(f.handle, functionMaxDynamicShared, int32(shared))); err != nil {
			return fmt.Errorf("%w on %s: a block needs %d KiB of shared memory: %w", ErrNoKernel, m.device.info.Name, (shared+1023)>>10, err)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s: kernel %s: %w", m.name, name, err)
	}
	return f, nil
}

// Grid is the number of blocks of a kernel, or of threads of a block, in three dimensions. 0 counts as 1.
type Grid struct{ X, Y, Z int }

func (g Grid) sizes() (x, y, z uint32) {
	return uint32(max(1, g.X)), uint32(max(1, g.Y)), uint32(max(1, g.Z))
}

// Launch queues a kernel on the device's stream. The arguments must match the kernel's parameters in number, order and
// type: Address for a pointer, int for int (of 32 bits), float32 for float, float64 for double. Launch checks only that
// an int has 32 bits. It must be called within [Device.Do].
func (f *Function) Launch(blocks, threads Grid, arguments ...any) error {
	values := make([]uint64, len(arguments))
	pointers := make([]unsafe.Pointer, max(1, len(arguments)))
	for i, argument := range arguments {
		at := unsafe.Pointer(&values[i])
		switch v := argument.(type) {
		case Address:
			*(*uint64)(at) = uint64(v)
		case int:
			if int(int32(v)) != v {
				return fmt.Errorf("kernel %s: argument %d is %d, which needs more than the 32 bits of a kernel's int", f.name, i, v)
			}
			*(*int32)(at) = int32(v)
		case float32:
			*(*float32)(at) = v
		case float64:
			*(*float64)(at) = v
		default:
			return fmt.Errorf("kernel %s: argument %d has the unsupported type %T", f.name, i, argument)
		}
		pointers[i] = at
	}
	bx, by, bz := blocks.sizes()
	tx, ty, tz := threads.sizes()
	d := f.device
	err := d.api.check("cuLaunchKernel", d.api.cuLaunchKernel(f.handle, bx, by, bz, tx, ty, tz, uint32(f.shared), d.stream, &pointers[0], 0))
	runtime.KeepAlive(values)
	if err != nil {
		return fmt.Errorf("kernel %s: %w", f.name, err)
	}
	return nil
}

// Do runs f on the thread that owns the card's context. Methods that queue work on the card must be called within Do,
// as their comments say. f must not call any other methods of the device.
func (d *Device) Do(f func() error) error { return d.thread.do(f) }

// Synchronize waits for all queued work. It must be called within [Device.Do].
func (d *Device) Synchronize() error { return d.sync() }

// Upload copies data to the card, after all queued work. data may lie in a mapped file. Upload must be called within
// [Device.Do].
func (d *Device) Upload(to Address, data []byte) error {
	if err := d.sync(); err != nil {
		return err
	}
	return d.upload(uint64(to), data)
}

// Download copies data from the card, after all queued work. It must be called within [Device.Do].
func (d *Device) Download(data []byte, from Address) error {
	if len(data) == 0 {
		return nil
	}
	return d.download(data, uint64(from))
}

// CopyWithin queues a copy within the card's memory. It must be called within [Device.Do].
func (d *Device) CopyWithin(to, from Address, bytes int) error {
	return d.api.check("cuMemcpyDtoDAsync", d.api.cuMemcpyDtoDAsync(uint64(to), uint64(from), uint64(bytes), d.stream))
}

// Clear queues a fill with zeros. bytes must be a multiple of 4. It must be called within [Device.Do].
func (d *Device) Clear(at Address, bytes int) error {
	return d.api.check("cuMemsetD32Async", d.api.cuMemsetD32Async(uint64(at), 0, uint64(bytes/4), d.stream))
}

// Memory is device memory that is freed all at once. Its methods must be called within [Device.Do].
type Memory struct {
	arena
	bytes int64
}

// NewMemory returns an empty Memory. Closing the device frees it.
func (d *Device) NewMemory() *Memory { return &Memory{arena: arena{device: d}} }

// Alloc allocates memory and returns its address, a multiple of 256. If the card has too little free memory, the error
// is an [ErrOutOfMemory].
func (m *Memory) Alloc(bytes int) (Address, error) {
	at, err := m.alloc(bytes)
	if err == nil {
		m.bytes += int64(bytes)
	}
	return Address(at), err
}

// Bytes returns the number of allocated bytes.
func (m *Memory) Bytes() int64 { return m.bytes }

// Free frees all allocations.
func (m *Memory) Free() error {
	m.bytes = 0
	return m.free()
}

// Release runs f, which frees memory, within [Device.Do]. It does nothing on a closed device, because closing frees all
// memory.
func (d *Device) Release(f func() error) error { return d.release(f) }

// Free returns the card's free memory in bytes. It must be called within [Device.Do].
func (d *Device) Free() (int64, error) { return d.freeMemory() }
