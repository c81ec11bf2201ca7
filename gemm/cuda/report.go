package cuda

import (
	"context"
	"fmt"

	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
)

// Passes returns the number of passes through all products and traffic in one replay.
func (b *Batch) Passes() int { return b.passes }

// Copies returns the number of copies of all weights that the replays use in turn. It is 1 unless Options.Cold is set.
func (b *Batch) Copies() int { return b.copies }

// WeightBytes returns the size of all copies of all weights in bytes, without padding.
func (b *Batch) WeightBytes() int64 {
	var sum int64
	for _, l := range b.layers {
		sum += int64(l.W.Stored())
	}
	return sum * int64(b.copies*b.stack)
}

// Ops returns the number of multiplications and additions of one replay, without padding. Traffic is not counted.
func (b *Batch) Ops() float64 {
	var sum float64
	for _, l := range b.layers {
		sum += l.problem.Ops()
	}
	return sum * float64(b.passes)
}

// Kernels returns the kernels of the products, in order.
func (b *Batch) Kernels() []Kernel {
	var k []Kernel
	for _, l := range b.layers {
		k = append(k, l.kernel)
	}
	return k
}

// Check runs every product once, outside the graph but with the same kernels, operands and result memory. All results
// must be finite. The first product of every [gemm.Problem] is compared with the reference ([gemm.Compare]). Check
// returns the deviations in the products' order, up to the first failure. A product that was not compared has a
// deviation of zero.
func (b *Batch) Check(ctx context.Context) ([]gemm.Deviation, error) {
	if ctx == nil {
		return nil, parallel.ErrNoContext
	}
	var found []gemm.Deviation
	seen := map[gemm.Problem]bool{}
	for _, l := range b.layers {
		if err := ctx.Err(); err != nil {
			return found, err
		}
		deviation, err := b.check(l, !seen[l.Problem])
		found = append(found, deviation)
		if err != nil {
			return found, fmt.Errorf("batch %s: %s: %w", b.name, l.Name, err)
		}
		seen[l.Problem] = true
	}
	return found, nil
}

// check runs one product, checks that its result is finite, and compares the result if compare is true.
func (b *Batch) check(l *layer, compare bool) (gemm.Deviation, error) {
	var raw []byte
	err := b.device.thread.do(func() (err error) {
		raw, err = b.device.compute(l.product, l.problem, l.x, l.w[0], l.y)
		return err
	})
	if err != nil {
		return gemm.Deviation{}, err
	}
	s := l.product.sizes()
	y := gemm.Matrix{DType: l.Problem.Type.Output(), Rows: s.n, Cols: s.m, Data: raw}
	if _, ok := y.DType.Format(); ok { // integers are always finite
		if err := y.Finite(); err != nil {
			return gemm.Deviation{}, fmt.Errorf("product %v: y is %w", l.problem, err)
		}
	}
	if !compare {
		return gemm.Deviation{}, nil
	}
	return gemm.Compare(l.Problem, l.X, l.W, lastCopy(s.result(l.problem, raw), l.Problem, b.stack))
}

// lastCopy returns y[M,N] of the last copy of stacked weights.
func lastCopy(y []float64, p gemm.Problem, stack int) []float64 {
	if stack == 1 {
		return y
	}
	last := make([]float64, 0, p.M*p.N)
	for i := range p.M {
		last = append(last, y[(i*stack+stack-1)*p.N:][:p.N]...)
	}
	return last
}
