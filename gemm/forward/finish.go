package forward

import (
	"context"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
)

// finished is a part whose output is normalised and scaled before it is added to the residual stream.
type finished struct {
	part
	norm  norm // missing: none
	scale float32
}

type loadedFinished struct {
	loadedPart
	norm  loadedNorm
	scale float32
}

func (f finished) load(ctx context.Context, w Weights, rows int) (loadedPart, error) {
	part, err := f.part.load(ctx, w, rows)
	if err != nil {
		return nil, err
	}
	norm, err := f.norm.load(ctx, w)
	return loadedFinished{part, norm, f.scale}, err
}

func (f loadedFinished) apply(p *pass, y, x sgemm.Matrix) error {
	if err := f.loadedPart.apply(p, y, x); err != nil {
		return err
	}
	return p.rows(p, y.Rows, func(i int) {
		if !f.norm.missing() {
			f.norm.apply(y.Row(i), y.Row(i))
		}
		scale(y.Row(i), f.scale)
	})
}

// scale multiplies by a number.
func scale(x []float32, by float32) {
	if by == 1 {
		return
	}
	for i := range x {
		x[i] *= by
	}
}
