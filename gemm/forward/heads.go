package forward

import (
	"context"

	"github.com/lowtoggle/lowtoggle/gemm/decoder"
	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
)

// heads are the layers that compute queries, keys and values, with the norms of their outputs.
type heads struct {
	in    linears
	norms []spanNorm
}

func loadHeads(ctx context.Context, w Weights, d *decoder.Attention) (h heads, err error) {
	if h.in, err = loadLinears(ctx, w, d.In); err != nil {
		return h, err
	}
	for _, n := range d.Norms {
		norm, err := loadNorm(ctx, w, n.Norm)
		if err != nil {
			return h, err
		}
		h.norms = append(h.norms, spanNorm{norm, n.Columns})
	}
	return h, nil
}

func (h heads) apply(p *pass, y, x sgemm.Matrix) error {
	if err := h.in.apply(p, y, x); err != nil {
		return err
	}
	for _, n := range h.norms {
		if err := n.apply(p, y); err != nil {
			return err
		}
	}
	return nil
}

// spanNorm normalises spans of columns. A span begins at each of columns and has the norm's width.
type spanNorm struct {
	norm
	columns []int
}

func (n spanNorm) apply(p *pass, y sgemm.Matrix) error {
	return p.rows(y.Rows, func(i int) {
		row := y.Row(i)
		for _, c := range n.columns {
			x := row[c : c+n.Width]
			n.row(x, x)
		}
	})
}
