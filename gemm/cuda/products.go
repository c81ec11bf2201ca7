package cuda

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
)

// Products multiplies matrices of the host in float32 on CUDA cores, because TF32 is too imprecise for a forward pass.
// Every product uploads its operands and downloads its result. Device memory is kept between products and grows with
// the largest product. Methods may be called from any goroutine and run one at a time.
//
// Results are computed in float32, but are not bit-identical to the CPU's results. cuBLASLt selects the order of
// additions by the shape, so even the bits of one row depend on the number of rows.
type Products struct {
	device  *Device
	matmuls map[gemm.Problem]*matmul
	x, w, y buffer
	host    []float32 // transposed weights, or a result whose rows have no gaps yet
}

// NewProducts returns a Products that multiplies on d. Close frees its memory.
func (d *Device) NewProducts() *Products {
	return &Products{device: d, matmuls: map[gemm.Problem]*matmul{}}
}

// Mul writes y[M,N] = x[M,K]·wᵀ for w[N,K], or x·w for w[K,N] if transposed is true. Dimensions are at least 1. y may
// be columns of a wider matrix. x and w must have no gaps between rows, and must not overlap y. Mul panics if the
// shapes do not match. If the card has too little free memory, the error is an [ErrOutOfMemory]. If ctx ends, Mul
// returns ctx's error after uploading at most 16 MiB.
func (p *Products) Mul(ctx context.Context, y, x, w sgemm.Matrix, transposed bool) error {
	n, k := w.Rows, w.Cols
	if transposed {
		n, k = k, n
	}
	if x.Cols != k || y.Rows != x.Rows || y.Cols != n || x.Stride != x.Cols || w.Stride != w.Cols {
		panic(fmt.Sprintf("cuda: y of %dx%d, x of %dx%d with stride %d, w of %dx%d with stride %d do not fit with transposed %v",
			y.Rows, y.Cols, x.Rows, x.Cols, x.Stride, w.Rows, w.Cols, w.Stride, transposed))
	}
	problem := gemm.Problem{M: x.Rows, N: n, K: k, Type: arith.FP32}
	if err := problem.Validate(); err != nil {
		return err
	}
	if err := p.device.thread.do(func() error { return p.multiply(ctx, problem, y, x, w, transposed) }); err != nil {
		return fmt.Errorf("product %v: %w", problem, err)
	}
	return nil
}

func (p *Products) multiply(ctx context.Context, problem gemm.Problem, y, x, w sgemm.Matrix, transposed bool) error {
	upload := p.upload
	if transposed {
		upload = p.uploadTransposed
	}
	d, size := p.device, 4*y.Rows*y.Cols
	var m *matmul
	return first(
		func() (err error) { m, err = p.prepare(problem); return err },
		func() error { return p.x.grow(d, 4*x.Rows*x.Cols) },
		func() error { return p.w.grow(d, 4*w.Rows*w.Cols) },
		func() error { return p.y.grow(d, size) },
		func() error { return p.upload(ctx, p.x.address, x) },
		func() error { return upload(ctx, p.w.address, w) },
		ctx.Err,
		func() error { return d.poison(p.y.address, size) },
		func() error { return m.launch(problem, p.x.address, p.w.address, p.y.address) },
		func() error { return p.download(y) },
	)
}

// prepare returns the prepared product of a problem. It keeps the product, because a forward pass repeats a few shapes.
func (p *Products) prepare(problem gemm.Problem) (*matmul, error) {
	if m, ok := p.matmuls[problem]; ok {
		return m, nil
	}
	m, err := p.device.prepare(problem, scales{})
	if err == nil {
		p.matmuls[problem] = m
	}
	return m, err
}

// upload copies a matrix without gaps to the card.
func (p *Products) upload(ctx context.Context, to uint64, m sgemm.Matrix) error {
	for data := bytesOf(m.Data[:m.Rows*m.Cols]); len(data) > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		piece := data[:min(len(data), stagingBytes)]
		if err := p.device.upload(to, piece); err != nil {
			return err
		}
		to, data = to+uint64(len(piece)), data[len(piece):]
	}
	return nil
}

// uploadTransposed uploads w[K,N] as [N,K], the layout of all products (see the package's documentation).
func (p *Products) uploadTransposed(ctx context.Context, to uint64, w sgemm.Matrix) error {
	band := max(1, stagingBytes/4/w.Rows) // number of columns that are transposed at a time
	for from := 0; from < w.Cols; from += band {
		columns := w.Slice(0, w.Rows, from, min(from+band, w.Cols))
		t := p.scratch(columns.Cols, columns.Rows)
		transpose(t, columns)
		if err := p.upload(ctx, to+uint64(4*from*w.Rows), t); err != nil {
			return err
		}
	}
	return nil
}

// transpose writes w[K,N] to t[N,K]. It processes a cache line of columns at a time.
func transpose(t, w sgemm.Matrix) {
	const line = 16
	for from := 0; from < w.Cols; from += line {
		for k := range w.Rows {
			for j, v := range w.Row(k)[from:min(from+line, w.Cols)] {
				t.Data[(from+j)*t.Stride+k] = v
			}
		}
	}
}

// download copies the result to y, which may have gaps between its rows.
func (p *Products) download(y sgemm.Matrix) error {
	if y.Stride == y.Cols {
		return p.device.download(bytesOf(y.Data[:y.Rows*y.Cols]), p.y.address)
	}
	dense := p.scratch(y.Rows, y.Cols)
	if err := p.device.download(bytesOf(dense.Data), p.y.address); err != nil {
		return err
	}
	for i := range y.Rows {
		copy(y.Row(i), dense.Row(i))
	}
	return nil
}

// scratch returns a matrix on the host, which is valid until the next call.
func (p *Products) scratch(rows, cols int) sgemm.Matrix {
	if len(p.host) < rows*cols {
		p.host = make([]float32, rows*cols)
	}
	return sgemm.Dense(rows, cols, p.host[:rows*cols])
}

// Close frees the memory. No Mul may be running. Close is idempotent, and the device stays open.
func (p *Products) Close() error {
	for _, m := range p.matmuls { // descriptors are host memory, which any thread may free
		m.destroy()
	}
	clear(p.matmuls)
	p.host = nil
	d := p.device
	return d.release(func() error { return errors.Join(p.x.free(d), p.w.free(d), p.y.free(d)) })
}

// buffer is device memory that grows on demand. Every use overwrites it. Its methods must be called on the device's
// thread.
type buffer struct {
	address uint64
	bytes   int // 0: no memory
}

// grow makes the buffer at least bytes large. The contents are lost.
func (b *buffer) grow(d *Device, bytes int) error {
	if bytes <= b.bytes {
		return nil
	}
	if err := b.free(d); err != nil { // free first, because the old and the new memory might not fit together
		return err
	}
	address, err := d.alloc(bytes)
	if err == nil {
		*b = buffer{address, bytes}
	}
	return err
}

func (b *buffer) free(d *Device) error {
	if b.bytes == 0 {
		return nil
	}
	address := b.address
	*b = buffer{}
	return d.free(address)
}

// bytesOf returns the memory of at least one float32 as bytes. The card reads the same byte order, because this
// package's platforms are little-endian.
func bytesOf(v []float32) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), 4*len(v)) }
