package forward

import (
	"context"

	"github.com/lowtoggle/lowtoggle/gemm/decoder"
	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
)

// branch is a branch of a step with its weights.
type branch struct {
	norm  norm
	first []decoder.Linear // layers that share the branch's input
	parts []part
	x     sgemm.Matrix // buffer for the norm's output, of the largest batch
}

func loadBranch(ctx context.Context, w Weights, d decoder.Branch, x sgemm.Matrix) (b branch, err error) {
	b = branch{first: d.First(), x: x}
	if b.norm, err = loadNorm(ctx, w, d.Norm); err != nil {
		return b, err
	}
	for _, p := range d.Parts {
		part, err := loadPart(ctx, w, p, x.Rows)
		if err != nil {
			return b, err
		}
		b.parts = append(b.parts, part)
	}
	return b, nil
}

// add adds the outputs of the parts for input x to h. y is a buffer.
func (b branch) add(p *pass, h, y sgemm.Matrix) error {
	x := b.x.Slice(0, h.Rows, 0, h.Cols)
	if err := p.observe(x, b.first...); err != nil {
		return err
	}
	for _, part := range b.parts {
		if err := part.apply(p, y, x); err != nil {
			return err
		}
		if err := p.rows(h.Rows, func(i int) { addTo(h.Row(i), y.Row(i)) }); err != nil {
			return err
		}
	}
	return nil
}
