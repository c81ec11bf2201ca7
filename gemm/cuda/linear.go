package cuda

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// Element is the type of a matrix's elements on the card.
type Element int

// The element types of products on the card.
const (
	BF16 Element = iota
	FP16
	FP32
)

// Bytes returns the size of an element in bytes.
func (e Element) Bytes() int {
	if e == FP32 {
		return 4
	}
	return 2
}

// String returns the element's name.
func (e Element) String() string { return [...]string{"BF16", "FP16", "FP32"}[e] }

// code returns the element's cudaDataType.
func (e Element) code() int32 { return [...]int32{r16BF, r16F, r32F}[e] }

// LinearShape describes y[M,N] = x[M,K]·wᵀ for matrices on the card. Sums are in float32, without TF32.
type LinearShape struct {
	M, N, K int
	In, Out Element // types of x and w, and of y
	// If Transposed is true, w is stored as [K,N] instead of [N,K]. If TransposedX is true, x is stored as [K,M]
	// instead of [M,K].
	Transposed, TransposedX bool
	// StrideX, StrideW and StrideY are the distances between rows, in elements. A StrideW of 0 means that w has no
	// gaps.
	StrideX, StrideW, StrideY int
	// Aligned is the alignment of x, w and y in bytes, a power of two up to 256.
	Aligned int
}

// Linear is a product that is ready to launch.
type Linear struct {
	description
	shape   LinearShape
	kernels []heuristic // the first kernel is launched
	tuned   bool
}

var errNoShape = errors.New("a product needs at least one row, column and input")

// NewLinear describes a product to cuBLASLt. It must be called within [Device.Do].
func (d *Device) NewLinear(s LinearShape) (*Linear, error) {
	if s.M < 1 || s.N < 1 || s.K < 1 {
		return nil, fmt.Errorf("product of %d×%d×%d: %w", s.M, s.N, s.K, errNoShape)
	}
	l := &Linear{description: description{device: d}, shape: s}
	if err := l.describe(); err != nil {
		l.Close()
		return nil, fmt.Errorf("product of %d×%d×%d in %v on %s with cuBLASLt %s: %w", s.M, s.N, s.K, s.In, d.info.Name, d.info.CublasLt, err)
	}
	return l, nil
}

// describe describes the product in column-major order: yᵀ[N,M] = w·xᵀ. w is transposed unless it is stored as [K,N]. x
// is transposed if it is stored as [K,M].
func (l *Linear) describe() error {
	s := l.shape
	op, rows, cols := uint32(opT), s.K, s.N
	if s.Transposed {
		op, rows, cols = opN, s.N, s.K
	}
	opX, rowsX, colsX := uint32(opN), s.K, s.M
	if s.TransposedX {
		opX, rowsX, colsX = opT, s.M, s.K
	}
	mask := uint64(anyImplementation)
	if s.In == FP32 {
		mask = noTensorCores
	}
	return first(
		func() error { return l.create(compute32F, r32F) },
		func() error { return l.set(descTransA, binary.LittleEndian.AppendUint32(nil, op)) },
		func() error { return l.set(descTransB, binary.LittleEndian.AppendUint32(nil, opX)) },
		func() error { return l.layout(&l.slotA, s.In.code(), rows, cols, max(rows, s.StrideW)) },
		func() error { return l.layout(&l.slotB, s.In.code(), rowsX, colsX, s.StrideX) },
		func() error { return l.layout(&l.slotD, s.Out.code(), s.N, s.M, s.StrideY) },
		func() (err error) { l.kernels, err = l.offers(mask, s.Aligned); return err },
	)
}

// Launch queues y = x·wᵀ, or y += x·wᵀ if add is true. It must be called within [Device.Do].
func (l *Linear) Launch(y, x, w Address, add bool) error {
	return l.launch(&l.kernels[0], y, x, w, add)
}

func (l *Linear) launch(h *heuristic, y, x, w Address, add bool) error {
	beta := &zero[0]
	if add {
		beta = &ones[r32F][0]
	}
	return l.multiply(h, &ones[r32F][0], beta, uint64(w), uint64(x), uint64(y))
}

// Kernel returns the kernel that Launch runs.
func (l *Linear) Kernel() Kernel {
	return l.device.api.kernel(shape{l.shape.N, l.shape.M, l.shape.K}, compute32F, &l.kernels[0])
}

// tuneRuns is the number of timed launches of each kernel in Tune.
const tuneRuns = 5

// Tune measures the kernels that cuBLASLt offers for these operands and keeps the fastest. It overwrites y and skips
// kernels that do not run. Later calls do nothing. It must be called within [Device.Do], and not while capturing.
func (l *Linear) Tune(y, x, w Address) error {
	if l.tuned || len(l.kernels) == 1 {
		return nil
	}
	l.tuned = true
	best, least := 0, time.Duration(0)
	d := l.device
	for i := range l.kernels {
		h := &l.kernels[i]
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
	l.kernels = []heuristic{l.kernels[best]}
	return nil
}

// Close frees the description. Any thread may call it. It is idempotent.
func (l *Linear) Close() { l.destroy() }
