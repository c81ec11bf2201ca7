package cuda

import (
	"context"
	"fmt"

	"github.com/lowtoggle/lowtoggle/gemm"
)

// Name is what the batch was called.
func (b *Batch) Name() string { return b.name }

// Passes is how often one replay goes through all products.
func (b *Batch) Passes() int { return b.passes }

// Copies is how many copies of all weights the replays use in turn; 1 unless Cold.
func (b *Batch) Copies() int { return b.copies }

// WeightBytes is the memory of all copies of all weights, padding aside.
func (b *Batch) WeightBytes() int64 {
	var sum int64
	for _, l := range b.layers {
		sum += int64(len(l.W.Data))
	}
	return sum * int64(b.copies)
}

// Ops is the number of operations of one replay, padding aside.
func (b *Batch) Ops() float64 {
	var sum float64
	for _, l := range b.layers {
		sum += l.Problem.Ops()
	}
	return sum * float64(b.passes)
}

// Kernels says what runs for each product, in their order.
func (b *Batch) Kernels() []Kernel {
	var k []Kernel
	for _, l := range b.layers {
		k = append(k, l.kernel)
	}
	return k
}

// Check runs every product once, outside the graph but with the same kernels, operands and result
// memory. All results must be finite; the first of every [gemm.Problem] is held against the
// reference ([gemm.Compare]). The deviations come in the products' order, up to the one that
// failed; those of products that were not compared are zero.
func (b *Batch) Check(ctx context.Context) ([]gemm.Deviation, error) {
	var found []gemm.Deviation
	seen := map[gemm.Problem]bool{}
	for i := range b.layers {
		l := &b.layers[i]
		if err := ctx.Err(); err != nil {
			return found, err
		}
		var y []float64
		err := b.device.thread.do(func() (err error) {
			y, err = b.device.compute(l.matmul, l.Problem, l.x, l.w[0], b.y)
			return err
		})
		var deviation gemm.Deviation
		switch {
		case err != nil:
		case seen[l.Problem]:
			err = gemm.FiniteResult(l.Problem, y)
			found = append(found, deviation)
		default:
			deviation, err = gemm.Compare(l.Problem, l.X, l.W, y)
			found = append(found, deviation)
		}
		seen[l.Problem] = true
		if err != nil {
			return found, fmt.Errorf("batch %s: %s: %w", b.name, l.Name, err)
		}
	}
	return found, nil
}
