package forward

import (
	"context"

	"github.com/lowtoggle/lowtoggle/gemm/decoder"
	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
)

// raise is an up-projection from a low-rank vector: up(norm(x)).
type raise struct {
	norm norm
	up   linear
	x, y sgemm.Matrix
}

// loadRaise loads an up-projection, and allocates buffers for batches of rows rows.
func loadRaise(ctx context.Context, w Weights, d decoder.Raise, rows int) (r raise, err error) {
	if r.norm, err = loadNorm(ctx, w, d.Norm); err != nil {
		return r, err
	}
	r.up, err = loadLinear(ctx, w, d.Up)
	r.x, r.y = sgemm.Dense(rows, d.Up.Inputs, nil), sgemm.Dense(rows, d.Up.Outputs, nil)
	return r, err
}

// apply reads the first columns of x. Its result is valid until the next call.
func (r raise) apply(p *pass, x sgemm.Matrix) (sgemm.Matrix, error) {
	short, long := r.x.Slice(0, x.Rows, 0, r.x.Cols), r.y.Slice(0, x.Rows, 0, r.y.Cols)
	if err := r.norm.apply(p, short, x.Slice(0, x.Rows, 0, short.Cols)); err != nil {
		return long, err
	}
	if err := p.observe(short, r.up.Linear); err != nil {
		return long, err
	}
	return long, r.up.apply(p, long, short)
}
