package runner

import (
	"context"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/decoder"
)

// latent computes queries, keys and values from low-rank vectors (multi-head latent attention).
type latent struct {
	*decoder.Latent
	heads               decoder.Heads
	down                *linear
	queriesNorm, kvNorm norm
	queriesUp, kvUp     *linear // queriesUp is nil if down computes the queries
}

func (l *loader) latent(ctx context.Context, a *decoder.Attention) (*latent, error) {
	on := &latent{Latent: a.Latent, heads: a.Heads}
	var err error
	if on.down, err = l.linear(ctx, a.Latent.Down[:]...); err != nil {
		return nil, err
	}
	if !a.Latent.Queries.Missing() {
		if on.queriesNorm, on.queriesUp, err = l.raise(ctx, a.Latent.Queries); err != nil {
			return nil, err
		}
	}
	on.kvNorm, on.kvUp, err = l.raise(ctx, a.Latent.KV)
	return on, err
}

func (l *loader) raise(ctx context.Context, r decoder.Raise) (norm, *linear, error) {
	n, err := l.norm(ctx, r.Norm)
	if err != nil {
		return n, nil, err
	}
	up, err := l.linear(ctx, r.Up)
	return n, up, err
}

// run queues the computation of y from x: the query, key and value of every head.
func (l *latent) run(p *pass, y, x cuda.Address) error {
	stride := l.down.outputs
	short, err := p.rowsBuffer("short", stride)
	if err != nil {
		return err
	}
	if err := p.apply(l.down, short, x, p.rows, l.down.inputs, stride, p.act, false); err != nil {
		return err
	}
	queries, queryStride := short, stride
	if l.queriesUp != nil {
		if queries, err = p.raise("queries", l.queriesNorm, l.queriesUp, short, stride); err != nil {
			return err
		}
		queryStride = l.queriesUp.outputs
	}
	behind := short.Plus(l.Down[0].Outputs * p.act.Bytes())
	kv, err := p.raise("kv", l.kvNorm, l.kvUp, behind, stride)
	if err != nil {
		return err
	}
	shared := behind.Plus(l.kvNorm.Width * p.act.Bytes())
	h := l.heads
	return p.kernels.assemble.Launch(cuda.Grid{X: p.rows}, cuda.Grid{X: threads}, y, queries, kv, shared, queryStride, stride,
		h.Queries, h.Size, h.Size-l.Shared, h.ValueSize)
}

// raise queues up(norm(x)) into a buffer.
func (p *pass) raise(name string, n norm, up *linear, x cuda.Address, stride int) (cuda.Address, error) {
	short, err := p.rowsBuffer("normalized", n.Width)
	if err != nil {
		return 0, err
	}
	long, err := p.rowsBuffer(name, up.outputs)
	if err != nil {
		return 0, err
	}
	if err := p.normalize(n, short, x, n.Width, stride, false, 1); err != nil {
		return 0, err
	}
	return long, p.apply(up, long, short, p.rows, up.inputs, up.outputs, p.act, false)
}

// multiply queues the linear layers alone.
func (l *latent) multiply(p *pass, x cuda.Address) error {
	for _, one := range []struct {
		layer    *linear
		from, to string
	}{{l.down, "", "short"}, {l.queriesUp, "normalized", "queries"}, {l.kvUp, "normalized", "kv"}} {
		if one.layer == nil {
			continue
		}
		from := x
		if one.from != "" {
			var err error
			if from, err = p.rowsBuffer(one.from, one.layer.inputs); err != nil {
				return err
			}
		}
		y, err := p.rowsBuffer(one.to, one.layer.outputs)
		if err != nil {
			return err
		}
		if err := p.apply(one.layer, y, from, p.rows, one.layer.inputs, one.layer.outputs, p.act, false); err != nil {
			return err
		}
	}
	return nil
}
