package forward

import (
	"context"

	"github.com/lowtoggle/lowtoggle/gemm/decoder"
	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
)

// latent computes queries, keys and values from short vectors.
type latent struct {
	down    linears
	queries *raise // nil: the first layer of down computes the queries
	kv      raise
	heads   decoder.Heads
	shared  int          // number of key channels that all heads share, at the end of a key
	short   sgemm.Matrix // outputs of down
}

// loadLatent loads the layers, and allocates buffers for batches of rows rows.
func loadLatent(ctx context.Context, w Weights, d *decoder.Latent, h decoder.Heads, rows int) (*latent, error) {
	l := &latent{heads: h, shared: d.Shared, short: sgemm.Dense(rows, d.Down[0].Outputs+d.Down[1].Outputs, nil)}
	var err error
	if l.down, err = loadLinears(ctx, w, d.Down[:]); err != nil {
		return nil, err
	}
	if !d.Queries.Missing() {
		queries, err := loadRaise(ctx, w, d.Queries, rows)
		if err != nil {
			return nil, err
		}
		l.queries = &queries
	}
	l.kv, err = loadRaise(ctx, w, d.KV, rows)
	return l, err
}

func (l *latent) apply(p *pass, y, x sgemm.Matrix) error {
	short := l.short.Slice(0, x.Rows, 0, l.short.Cols)
	if err := l.down.apply(p, short, x); err != nil {
		return err
	}
	middle := l.down[0].Outputs
	queries, behind := short.Slice(0, x.Rows, 0, middle), short.Slice(0, x.Rows, middle, short.Cols)
	if l.queries != nil {
		var err error
		if queries, err = l.queries.apply(p, queries); err != nil {
			return err
		}
	}
	kv, err := l.kv.apply(p, behind)
	if err != nil {
		return err
	}
	return p.rows(x.Rows, func(i int) {
		l.assemble(y.Row(i), queries.Row(i), kv.Row(i), behind.Row(i)[l.kv.norm.Width:])
	})
}

// assemble writes every head's query, key and value.
func (l *latent) assemble(y, queries, kv, shared []float32) {
	h := l.heads
	own := h.Size - l.shared
	for i := range h.Queries {
		copy(y[h.Query(i):], queries[i*h.Size:(i+1)*h.Size])
		from := kv[i*(own+h.ValueSize) : (i+1)*(own+h.ValueSize)]
		copy(y[h.Key(i):], from[:own])
		copy(y[h.Key(i)+own:], shared)
		copy(y[h.Value(i):], from[own:])
	}
}
