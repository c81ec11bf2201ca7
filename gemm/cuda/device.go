package cuda

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm"
)

// Device is an open GPU with its own CUDA context on its own thread. Methods may be called from any goroutine and run
// one at a time.
type Device struct {
	api    *api
	thread *thread
	info   Info
	index  int  // index in CUDA's order
	shared bool // whether the device uses the primary context of its ordinal

	ordinal int32

	context, stream, lt uintptr
	workspace           uint64
	one                 uint64 // float32 1, the scale of FP8 operands
	staging             []byte // host memory for copies; nil until first use
	locked              *byte  // staging, if the driver has allocated it
	timeline            timeline
	dequantisers        dequantisers
	pacing, traffic     onceModule

	mu      sync.Mutex
	current *run // the latest run, which may have ended
	closed  bool
	drain   time.Duration // longest wait of Close for queued work
}

// drainTime is the default of drain. A prefill of a long prompt takes several seconds, for which Close does not wait.
const drainTime = 800 * time.Millisecond

// Open opens the GPU with the given CUDA index, from 0. The error is an [ErrNoGPU] if there is no usable GPU with that
// index. A card in exclusive use or without free memory gives a different error.
func Open(index int) (*Device, error) {
	a, err := libraries()
	if err != nil {
		return nil, err
	}
	return open(a, index, false)
}

// OpenShared is [Open] in the card's primary context. This context is shared with other libraries of the process, such
// as NCCL in a [Group]. Only one device at a time may use the primary context.
func OpenShared(index int) (*Device, error) {
	a, err := libraries()
	if err != nil {
		return nil, err
	}
	return open(a, index, true)
}

func open(a *api, index int, shared bool) (*Device, error) {
	d := &Device{api: a, thread: startThread(), drain: drainTime, index: index, shared: shared}
	if err := d.thread.do(func() error { return d.setUp(index) }); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// setUp creates all resources in order. After a failure, tearDown frees the resources that were created.
func (d *Device) setUp(index int) error {
	info, device, err := d.api.info(index)
	if err != nil {
		return err
	}
	d.info = info
	return first(
		func() error { return d.enter(device) },
		func() error { return d.api.check("cuStreamCreate", d.api.cuStreamCreate(&d.stream, streamNonBlocking)) },
		func() error { return d.api.checkLt("cublasLtCreate", d.api.cublasLtCreate(&d.lt)) },
		func() (err error) { d.workspace, err = d.alloc(workspaceBytes); return err },
		func() (err error) { d.one, err = d.alloc(4); return err },
		func() error { return d.upload(d.one, ones[r32F]) },
		func() error { return d.timeline.begin(d) },
	)
}

// enter makes a context current: the primary context, or a new one.
func (d *Device) enter(device int32) error {
	if !d.shared {
		return d.api.check("cuCtxCreate", d.api.cuCtxCreate(&d.context, contextAuto, device))
	}
	d.ordinal = device
	if err := d.api.check("cuDevicePrimaryCtxRetain", d.api.cuDevicePrimaryCtxRetain(&d.context, device)); err != nil {
		return err
	}
	return d.api.check("cuCtxSetCurrent", d.api.cuCtxSetCurrent(d.context))
}

// leave destroys the device's own context or releases the primary context, which exists while another library uses it.
func (d *Device) leave() error {
	if !d.shared {
		return d.api.check("cuCtxDestroy", d.api.cuCtxDestroy(d.context))
	}
	return d.api.check("cuDevicePrimaryCtxRelease", d.api.cuDevicePrimaryCtxRelease(d.ordinal))
}

// tearDown destroys the context with all its memory and events.
func (d *Device) tearDown() error {
	var errs []error
	if d.lt != 0 {
		errs = append(errs, d.api.checkLt("cublasLtDestroy", d.api.cublasLtDestroy(d.lt)))
	}
	if d.locked != nil {
		errs = append(errs, d.api.check("cuMemFreeHost", d.api.cuMemFreeHost(d.locked)))
		d.locked, d.staging = nil, nil
	}
	if d.stream != 0 {
		errs = append(errs, d.api.check("cuStreamDestroy", d.api.cuStreamDestroy(d.stream)))
	}
	if d.context != 0 {
		errs = append(errs, d.leave())
	}
	return errors.Join(errs...)
}

// Close ends a running batch, graph or sequence, and frees the context and all its memory. It waits less than a second
// for queued work. If the work takes longer, the context is freed when the work is done, or when the process ends.
// Batches, graphs and sequences of a closed device can only be closed. Close is idempotent.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	running := d.current
	if running == nil {
		return d.thread.end(d.tearDown)
	}
	running.cancel()
	freed := make(chan error, 1)
	go func() {
		<-running.done
		freed <- d.thread.end(d.tearDown)
	}()
	select {
	case err := <-freed:
		return err
	case <-time.After(d.drain):
		return nil
	}
}

// Info returns a description of the card.
func (d *Device) Info() Info { return d.info }

// FreeMemory returns the card's free memory in bytes. Memory of all processes counts as used.
func (d *Device) FreeMemory() (free int64, err error) {
	err = d.thread.do(func() (err error) { free, err = d.freeMemory(); return err })
	return free, err
}

// Multiply returns y[M,N] row-major. An element that the kernel did not write is NaN, or −1 for INT8. Operands with
// scales or codes are an error, because they need a batch. A running batch or sequence pauses: Multiply waits for its
// queued work. The batch or sequence continues when Multiply returns.
func (d *Device) Multiply(p gemm.Problem, x, w gemm.Matrix) (y []float64, err error) {
	if err := p.Fits(x, w); err != nil {
		return nil, err
	}
	if x.Scales != nil || w.Scales != nil || w.Codes != nil {
		return nil, fmt.Errorf("product %v: operands with scales or codes can only be multiplied in a batch", p)
	}
	if err := d.thread.do(func() (err error) { y, err = d.multiply(p, x, w); return err }); err != nil {
		return nil, fmt.Errorf("product %v: %w", p, err)
	}
	return y, nil
}

func (d *Device) multiply(p gemm.Problem, x, w gemm.Matrix) (y []float64, err error) {
	m, err := d.prepare(p, scales{})
	if err != nil {
		return nil, err
	}
	defer m.destroy()
	memory := &arena{device: d}
	defer func() { err = errors.Join(err, memory.free()) }()
	xRows, wRows := m.shape.rowsOf(p)
	xAt, err := memory.operand(x, xRows, m.shape.k)
	if err != nil {
		return nil, err
	}
	wAt, err := memory.operand(w, wRows, m.shape.k)
	if err != nil {
		return nil, err
	}
	yAt, err := memory.alloc(m.shape.outputBytes(p.Type))
	if err != nil {
		return nil, err
	}
	raw, err := d.compute(m, p, xAt, wAt, yAt)
	if err != nil {
		return nil, err
	}
	return m.shape.result(p, raw), nil
}

// multiplier is a product that is ready to launch. All methods but destroy must be called on the device's thread.
type multiplier interface {
	// launch queues the product of operands at addresses of the card.
	launch(p gemm.Problem, x, w, y uint64) error
	sizes() shape
	// destroy frees the memory of the library.
	destroy()
}

// compute runs m once into memory filled with NaNs, and downloads the result D.
func (d *Device) compute(m multiplier, p gemm.Problem, x, w, y uint64) ([]byte, error) {
	raw := make([]byte, m.sizes().outputBytes(p.Type))
	if err := first(
		func() error { return d.poison(y, len(raw)) },
		func() error { return m.launch(p, x, w, y) },
		func() error { return d.download(raw, y) },
	); err != nil {
		return nil, err
	}
	return raw, nil
}
