package forward

import (
	"context"

	"github.com/lowtoggle/lowtoggle/gemm/decoder"
	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
)

// part is a part of a branch with its weights. Its output is normalised and scaled before it is added to the residual
// stream.
type part struct {
	experts *experts    // nil if inner is set
	inner   interface { // attention or ffn
		// apply computes y[tokens, hidden] from x[tokens, hidden]. The observer has already received x as the input of
		// the first layers.
		apply(p *pass, y, x sgemm.Matrix) error
	}
	norm  norm
	scale float32
}

// loadPart loads a part, and allocates buffers for batches of rows rows.
func loadPart(ctx context.Context, w Weights, d decoder.Part, rows int) (part, error) {
	l := part{scale: d.Scale}
	var err error
	switch {
	case d.Attention != nil:
		l.inner, err = loadAttention(ctx, w, d.Attention, rows)
	case d.FFN != nil:
		l.inner, err = loadFFN(ctx, w, d.FFN, newNeurons(d.FFN, rows))
	default:
		l.experts, err = loadExperts(ctx, w, d.Experts, rows)
	}
	if err != nil {
		return l, err
	}
	l.norm, err = loadNorm(ctx, w, d.Norm)
	return l, err
}

func (l part) apply(p *pass, y, x sgemm.Matrix) error {
	if err := l.inner.apply(p, y, x); err != nil {
		return err
	}
	return l.complete(p, y)
}

// complete normalises and scales the output.
func (l part) complete(p *pass, y sgemm.Matrix) error {
	if l.norm.Missing() && l.scale == 1 {
		return nil
	}
	return p.rows(y.Rows, func(i int) {
		if !l.norm.Missing() {
			l.norm.row(y.Row(i), y.Row(i))
		}
		scale(y.Row(i), l.scale)
	})
}
