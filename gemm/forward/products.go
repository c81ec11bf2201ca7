package forward

import (
	"context"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
)

// Products multiplies by the weights of linear layers.
type Products interface {
	// Mul computes y[M,N] = x[M,K]·wᵀ for w[N,K], or x·w for w[K,N] if transposed is set. y may be columns
	// of a wider matrix; x and w have no gaps between rows. Mul keeps none of the three.
	Mul(ctx context.Context, y, x, w sgemm.Matrix, transposed bool) error
}

// CPU multiplies with package sgemm.
type CPU struct {
	Workers int // default 0: all processors
}

// Mul implements [Products].
func (c CPU) Mul(ctx context.Context, y, x, w sgemm.Matrix, transposed bool) error {
	return sgemm.Mul(ctx, y, x, w, sgemm.Op{TransB: !transposed, Workers: c.Workers})
}
