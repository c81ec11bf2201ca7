package cuda

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm"
)

// Device is an open GPU, with its own CUDA context on its own thread. Methods may be called from any
// goroutine; they run one at a time.
type Device struct {
	api    *api
	thread *thread
	info   Info
	index  int  // CUDA's number
	shared bool // uses the primary context of the device ordinal

	ordinal int32

	context, stream, lt uintptr
	workspace           uint64
	one                 uint64 // float32 1, the scale of FP8 operands
	staging             []byte // host memory for copies; nil until it is needed
	locked              *byte  // staging, if the driver has allocated it
	timeline            timeline
	dequantisers        dequantisers
	pacing, traffic     onceModule

	mu      sync.Mutex
	current *run // the latest run, which may have ended
	closed  bool
	drain   time.Duration // longest wait of Close for queued work
}

// drainTime is the longest wait of Close for queued work: a prefill of a long prompt takes several seconds.
const drainTime = 800 * time.Millisecond

// Open opens the GPU with CUDA's number index, from 0. The error is an [ErrNoGPU] if no usable GPU has that number. A card that
// is in exclusive use or out of memory gives another error.
func Open(index int) (*Device, error) {
	a, err := libraries()
	if err != nil {
		return nil, err
	}
	return open(a, index, false)
}

// OpenShared is [Open] in the card's primary context, which it shares with other libraries of the process, such as NCCL in a
// [Group]. Only one device at a time may use the primary context.
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

// setUp creates everything in order. After a failure, tearDown frees what was created.
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

// enter makes a context current: the primary one, or a new one.
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

// leave frees the device's own context, or releases the primary context, which stays while another library uses it.
func (d *Device) leave() error {
	if !d.shared {
		return d.api.check("cuCtxDestroy", d.api.cuCtxDestroy(d.context))
	}
	return d.api.check("cuDevicePrimaryCtxRelease", d.api.cuDevicePrimaryCtxRelease(d.ordinal))
}

// tearDown destroys the context, and all memory and events with it.
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

// Close ends a running batch, graph or sequence, and frees the context and all of its memory. It waits for queued work,
// but less than a second. After that the context is freed once the card is done, or when the process ends. Batches, graphs
// and sequences of a closed device can only be closed. Close is idempotent.
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

// FreeMemory returns the card's free memory in bytes, over all processes.
func (d *Device) FreeMemory() (free int64, err error) {
	err = d.thread.do(func() (err error) { free, err = d.freeMemory(); return err })
	return free, err
}

// Multiply returns y[M,N] row-major. An element that the kernel did not write is NaN, or −1 for INT8. Operands with scales or
// codes are an error; they need a batch. Multiply waits for the queued work of a running batch or sequence, which then pauses
// until Multiply returns.
func (d *Device) Multiply(p gemm.Problem, x, w gemm.Matrix) (y []float64, err error) {
	if err := p.Fits(x, w); err != nil {
		return nil, err
	}
	if x.Scales != nil || w.Scales != nil || w.Codes != nil {
		return nil, fmt.Errorf("product %v: operands with scales or codes need a batch", p)
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

// multiplier is a product that is ready to launch. Its methods must be called on the device's thread, except destroy.
type multiplier interface {
	// launch queues the product of operands at addresses of the card.
	launch(p gemm.Problem, x, w, y uint64) error
	sizes() shape
	// destroy frees the library's memory.
	destroy()
}

// compute runs m once into memory filled with NaNs and downloads D.
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
