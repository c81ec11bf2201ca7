package forward

import (
	"context"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
)

// Products multiplies by the weights of linear layers.
type Products interface {
	// Mul computes y[M,N] = x[M,K]·wᵀ for w[N,K], or x·w for w[K,N] if transposed is true. y may be columns of a wider
	// matrix. x and w have no gaps between rows. Mul must not keep x, w or y.
	Mul(ctx context.Context, y, x, w sgemm.Matrix, transposed bool) error
}

// CPU multiplies with package sgemm.
type CPU struct {
	Workers int // default 0: one per processor
}

// Mul implements [Products].
func (c CPU) Mul(ctx context.Context, y, x, w sgemm.Matrix, transposed bool) error {
	return sgemm.Mul(ctx, y, x, w, sgemm.Op{TransB: !transposed, Workers: c.Workers})
}
