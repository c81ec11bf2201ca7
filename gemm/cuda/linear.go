package cuda

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// Element is the type of a matrix's elements on the card.
type Element int

// The elements of products.
const (
	BF16 Element = iota
	FP16
	FP32
)

// Bytes is an element's size.
func (e Element) Bytes() int {
	if e == FP32 {
		return 4
	}
	return 2
}

// String is the element's name.
func (e Element) String() string { return [...]string{"BF16", "FP16", "FP32"}[e] }

// code is the element's cudaDataType.
func (e Element) code() int32 { return [...]int32{r16BF, r16F, r32F}[e] }

// LinearShape describes y[M,N] = x[M,K]·wᵀ of matrices on the card, with sums in float32 and no TF32.
type LinearShape struct {
	M, N, K int
	In, Out Element // of x and w, and of y
	// Transposed: w is stored [K,N] instead of [N,K]. TransposedX: x is stored [K,M] instead of [M,K].
	Transposed, TransposedX bool
	// StrideX, StrideW and StrideY are the elements from one row to the next. A StrideW of 0: w has no gaps.
	StrideX, StrideW, StrideY int
	// Aligned is the alignment of x, w and y in bytes: a power of two, at most 256.
	Aligned int
}

// Linear is a product that is ready to launch.
type Linear struct {
	device           *Device
	shape            LinearShape
	desc             uintptr
	slotA, slotB, yd uintptr     // layouts
	offers           []heuristic // the first is launched
	tuned            bool
}

var errNoShape = errors.New("a product needs at least one row, column and input")

// NewLinear describes a product to cuBLASLt. It must be called within [Device.Do].
func (d *Device) NewLinear(s LinearShape) (*Linear, error) {
	if s.M < 1 || s.N < 1 || s.K < 1 {
		return nil, fmt.Errorf("product of %d×%d×%d: %w", s.M, s.N, s.K, errNoShape)
	}
	l := &Linear{device: d, shape: s}
	if err := l.describe(); err != nil {
		l.Close()
		return nil, fmt.Errorf("product of %d×%d×%d in %v on %s with cuBLASLt %s: %w", s.M, s.N, s.K, s.In, d.info.Name, d.info.CublasLt, err)
	}
	return l, nil
}

// describe writes the product column-major: yᵀ[N,M] = w·xᵀ, with w transposed unless it is stored [K,N], and x transposed
// where it is stored [K,M].
func (l *Linear) describe() error {
	api, s := l.device.api, l.shape
	layout := func(to *uintptr, e Element, rows, cols, stride int) func() error {
		return func() error {
			return api.checkLt("cublasLtMatrixLayoutCreate", api.cublasLtLayoutCreate(to, e.code(), uint64(rows), uint64(cols), int64(stride)))
		}
	}
	op, rows, cols := uint32(opT), s.K, s.N
	if s.Transposed {
		op, rows, cols = opN, s.N, s.K
	}
	opX, rowsX, colsX := uint32(opN), s.K, s.M
	if s.TransposedX {
		opX, rowsX, colsX = opT, s.M, s.K
	}
	set := func(attribute int32, value uint32) func() error {
		data := binary.LittleEndian.AppendUint32(nil, value)
		return func() error {
			return api.checkLt("cublasLtMatmulDescSetAttribute", api.cublasLtMatmulDescSet(l.desc, attribute, &data[0], 4))
		}
	}
	mask := uint64(anyImplementation)
	if s.In == FP32 {
		mask = noTensorCores
	}
	return first(
		func() error {
			return api.checkLt("cublasLtMatmulDescCreate", api.cublasLtMatmulDescCreate(&l.desc, compute32F, r32F))
		},
		set(descTransA, op),
		set(descTransB, opX),
		layout(&l.slotA, s.In, rows, cols, max(rows, s.StrideW)),
		layout(&l.slotB, s.In, rowsX, colsX, s.StrideX),
		layout(&l.yd, s.Out, s.N, s.M, s.StrideY),
		func() (err error) {
			l.offers, err = l.device.offers(l.desc, l.slotA, l.slotB, l.yd, mask, s.Aligned)
			return err
		},
	)
}

// Launch queues y = x·wᵀ, or y += x·wᵀ if add is set. It must be called within [Device.Do].
func (l *Linear) Launch(y, x, w Address, add bool) error { return l.launch(&l.offers[0], y, x, w, add) }

func (l *Linear) launch(h *heuristic, y, x, w Address, add bool) error {
	beta := &zero[0]
	if add {
		beta = &ones[r32F][0]
	}
	d := l.device
	return d.api.checkLt("cublasLtMatmul", d.api.cublasLtMatmul(d.lt, l.desc,
		&ones[r32F][0], uint64(w), l.slotA, uint64(x), l.slotB,
		beta, uint64(y), l.yd, uint64(y), l.yd,
		&h.algo, d.workspace, workspaceBytes, d.stream))
}

// Kernel describes the kernel that Launch runs.
func (l *Linear) Kernel() Kernel {
	return l.device.api.kernel(shape{l.shape.N, l.shape.M, l.shape.K}, compute32F, &l.offers[0])
}

// tuneRuns is the number of timed launches of each kernel in Tune.
const tuneRuns = 5

// Tune times the kernels that cuBLASLt offers for these operands and keeps the fastest. It overwrites y. A kernel that
// does not run is skipped. Later calls do nothing. It must be called within [Device.Do], and not while capturing.
func (l *Linear) Tune(y, x, w Address) error {
	if l.tuned || len(l.offers) == 1 {
		return nil
	}
	l.tuned = true
	best, least := 0, time.Duration(0)
	d := l.device
	for i := range l.offers {
		h := &l.offers[i]
		if err := l.launch(h, y, x, w, false); err != nil {
			continue // the kernel does not run
		}
		took, err := d.timed(func() error {
			for range tuneRuns {
				if err := l.launch(h, y, x, w, false); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		if least == 0 || took < least {
			best, least = i, took
		}
	}
	l.offers = []heuristic{l.offers[best]}
	return nil
}

// Close frees the descriptors. They are host memory of cuBLASLt, so any thread may call Close. It is idempotent.
func (l *Linear) Close() {
	api := l.device.api
	for _, layout := range []*uintptr{&l.slotA, &l.slotB, &l.yd} {
		if *layout != 0 {
			api.cublasLtLayoutDestroy(*layout)
			*layout = 0
		}
	}
	if l.desc != 0 {
		api.cublasLtMatmulDescDestroy(l.desc)
		l.desc = 0
	}
}
