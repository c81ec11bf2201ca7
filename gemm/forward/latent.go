package forward

import (
	"context"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
)

// latent is multi-head latent attention (DeepSeek-V2). The keys and values of all heads are computed from one
// short vector, and in most models the queries from another. Keys have additional channels for positions,
// which all heads share.
type latent struct {
	down      []linear // to queries or their short vector, and to that of keys and values with the shared channels behind it
	queries   raise    // missing where the first of down gives queries
	kv        raise    // head by head the key's own channels and the value
	shared    int      // channels of a key that heads share, its last
	attention *attention
	out       linear
}

func (l *latent) first() []linear { return l.down }

func (l *latent) rest() []linear {
	if l.queries.missing() {
		return []linear{l.kv.up, l.out}
	}
	return []linear{l.queries.up, l.kv.up, l.out}
}

type loadedLatent struct {
	*latent
	down        []loaded
	queries, kv loadedRaise
	out         loaded
	short       sgemm.Matrix // what down gives
	y, z        sgemm.Matrix
}

func (l *latent) load(ctx context.Context, w Weights, rows int) (loadedPart, error) {
	a := &loadedLatent{latent: l}
	var err error
	if a.down, err = loadAll(ctx, w, l.down); err != nil {
		return nil, err
	}
	if a.queries, err = l.queries.load(ctx, w, rows); err != nil {
		return nil, err
	}
	if a.kv, err = l.kv.load(ctx, w, rows); err != nil {
		return nil, err
	}
	if a.out, err = l.out.load(ctx, w); err != nil {
		return nil, err
	}
	wide, mixed := l.attention.widths()
	a.short = sgemm.Dense(rows, l.down[0].outputs+l.down[1].outputs, nil)
	a.y, a.z = sgemm.Dense(rows, wide, nil), sgemm.Dense(rows, mixed, nil)
	return a, nil
}

func (l *loadedLatent) apply(p *pass, to, x sgemm.Matrix) error {
	short, y, z := l.short.Slice(0, x.Rows, 0, l.short.Cols), l.y.Slice(0, x.Rows, 0, l.y.Cols), l.z.Slice(0, x.Rows, 0, l.z.Cols)
	if err := p.applyAll(p, l.down, short, x); err != nil {
		return err
	}
	queries, behind := short.Slice(0, x.Rows, 0, l.down[0].outputs), short.Slice(0, x.Rows, l.down[0].outputs, short.Cols)
	if !l.queries.missing() {
		var err error
		if queries, err = l.queries.apply(p, queries); err != nil {
			return err
		}
	}
	kv, err := l.kv.apply(p, behind)
	if err != nil {
		return err
	}
	err = p.rows(p, x.Rows, func(i int) {
		l.assemble(y.Row(i), queries.Row(i), kv.Row(i), behind.Row(i)[l.kv.norm.width:])
	})
	if err != nil {
		return err
	}
	if err := l.attention.mix(p, p.Decoder, z, y, p.sequences); err != nil {
		return err
	}
	if err := p.observe(z, l.latent.out); err != nil {
		return err
	}
	return p.Decoder.apply(p, l.out, to, z)
}

// assemble writes every head's query, key and value.
func (l *loadedLatent) assemble(y, queries, kv, shared []float32) {
	h := l.attention.heads
	own := h.size - l.shared
	for i := range h.queries {
		copy(y[h.query(i):], queries[i*h.size:(i+1)*h.size])
		from := kv[i*(own+h.valueSize) : (i+1)*(own+h.valueSize)]
		copy(y[h.key(i):], from[:own])
		copy(y[h.key(i)+own:], shared)
		copy(y[h.value(i):], from[own:])
	}
}

func (b *builder) latent(layer int, data *latentData) *latent {
	c := b.config
	h := heads{queries: b.dims["heads"], kv: b.dims["heads"], byHead: true}
	own, shared := c.length("qk_nope_head_dim", 128), c.length("qk_rope_head_dim", 64)
	h.size, h.valueSize = own+shared, c.length("v_head_dim", 128)
	l := &latent{shared: shared, attention: b.mixing(layer, h), out: b.linear(b.family.attention.out, layer)}
	whole := c.rope(b.family.attention.rotary, fullAttention).whole()
	l.attention.scale = float32(defaultScale(h.size) * whole * whole)
	first := data.q
	if !b.has(layer, data.q) {
		first, l.queries = data.qDown, b.raise(layer, data.qNorm, data.qUp, data.epsilon)
	}
	l.down = []linear{b.linear(first, layer), b.linear(data.kvDown, layer)}
	l.kv = b.raise(layer, data.kvNorm, data.kvUp, data.epsilon)
	queries := l.down[0]
	if !l.queries.missing() {
		queries = l.queries.up
	}
	for _, fit := range []struct {
		tensor      string
		has, needed int
	}{
		{queries.weight, queries.outputs, h.queries * h.size},
		{l.down[1].weight, l.down[1].outputs, l.kv.norm.width + shared},
		{l.kv.up.weight, l.kv.up.outputs, h.kv * (own + h.valueSize)},
		{l.out.weight, l.out.inputs, h.queries * h.valueSize},
	} {
		if fit.has != fit.needed {
			b.failf("tensor %q: has %d channels of heads, config.json says %d", fit.tensor, fit.has, fit.needed)
		}
	}
	return l
}
