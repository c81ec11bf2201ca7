package rounding

import (
	"context"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
)

// Measure compares the outputs of q[N,K] with those of w[N,K], under the Hessian h[K,K]. Weights that are not finite
// are left out.
func Measure(ctx context.Context, w, q, h sgemm.Matrix, workers int) (l Loss, err error) {
	if l.Signal, err = Power(ctx, w, sgemm.Matrix{}, h, workers); err != nil {
		return l, err
	}
	l.Error, err = Power(ctx, w, q, h, workers)
	return l, err
}
