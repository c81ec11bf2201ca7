package forward

import (
	"context"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
)

// latent is multi-head latent attention (DeepSeek-V2): keys and values of all heads are made of one
// short vector, and in most models queries of another. Keys have further channels, for positions,
// which all heads share.
type latent struct {
	down      []linear // queries or what makes them, and what makes keys and values with the shared channels
	qNorm     norm     // missing where the first of down gives queries
	qUp       linear
	kvNorm    norm
	kvUp      linear // head by head the own channels of the key, and the value
	shared    int    // channels of a key that heads share, its last
	attention *attention
	out       linear
}

func (l *latent) first() []linear { return l.down }

func (l *latent) rest() []linear {
	if l.qUp.weight == "" {
		return []linear{l.kvUp, l.out}
	}
	return []linear{l.qUp, l.kvUp, l.out}
}

type loadedLatent struct {
	*latent
	down              []loaded
	qNorm, kvNorm     loadedNorm
	qUp, kvUp, out    loaded
	short             sgemm.Matrix // what down gives
	qShort, kvShort   sgemm.Matrix // normalised
	queries, kv, y, z sgemm.Matrix
}

func (l *latent) load(ctx context.Context, w Weights, rows int) (loadedPart, error) {
	a := &loadedLatent{latent: l}
	var err error
	if a.down, err = loadAll(ctx, w, l.down); err != nil {
		return nil, err
	}
	if l.qUp.weight != "" {
		if a.qNorm, err = l.qNorm.load(ctx, w); err != nil {
			return nil, err
		}
		if a.qUp, err = l.qUp.load(ctx, w); err != nil {
			return nil, err
		}
	}
	if a.kvNorm, err = l.kvNorm.load(ctx, w); err != nil {
		return nil, err
	}
	if a.kvUp, err = l.kvUp.load(ctx, w); err != nil {
		return nil, err
	}
	if a.out, err = l.out.load(ctx, w); err != nil {
		return nil, err
	}
	dense := func(width int) sgemm.Matrix { return sgemm.Dense(rows, width, nil) }
	wide, mixed := l.attention.widths()
	a.short = dense(l.down[0].outputs + l.down[1].outputs)
	a.qShort, a.kvShort = dense(l.qNorm.width), dense(l.kvNorm.width)
	a.queries, a.kv = dense(l.attention.queries*l.attention.size), dense(l.kvUp.outputs)
	a.y, a.z = dense(wide), dense(mixed)
	return a, nil
}

func (l *loadedLatent) apply(p *pass, to, x sgemm.Matrix) error {
	rows := func(m sgemm.Matrix) sgemm.Matrix { return m.Slice(0, x.Rows, 0, m.Cols) }
	short, queries, kv, y, z := rows(l.short), rows(l.queries), rows(l.kv), rows(l.y), rows(l.z)
	if err := p.applyAll(p, l.down, short, x); err != nil {
		return err
	}
	first := l.down[0].outputs
	if l.qUp.weight == "" {
		queries = short.Slice(0, x.Rows, 0, first)
	} else if err := l.raise(p, l.qNorm, l.qUp, queries, rows(l.qShort), short); err != nil {
		return err
	}
	behind := short.Slice(0, x.Rows, first, short.Cols)
	if err := l.raise(p, l.kvNorm, l.kvUp, kv, rows(l.kvShort), behind); err != nil {
		return err
	}
	err := p.rows(p, x.Rows, func(i int) {
		l.assemble(y.Row(i), queries.Row(i), kv.Row(i), behind.Row(i)[l.kvNorm.width:])
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

// raise makes long vectors of short ones, which are the first columns of x.
func (l *loadedLatent) raise(p *pass, norm loadedNorm, up loaded, y, room, x sgemm.Matrix) error {
	if err := p.normalize(p, norm, room, x.Slice(0, x.Rows, 0, norm.width)); err != nil {
		return err
	}
	if err := p.observe(room, up.linear); err != nil {
		return err
	}
	return p.Decoder.apply(p, up, y, room)
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
	if b.has(layer, data.q) {
		l.down = append(l.down, b.linear(data.q, layer))
	} else {
		l.down = append(l.down, b.linear(data.qDown, layer))
		l.qNorm, l.qUp = b.norm(layer, data.qNorm), b.linear(data.qUp, layer)
	}
	l.down = append(l.down, b.linear(data.kvDown, layer))
	l.kvNorm, l.kvUp = b.norm(layer, data.kvNorm), b.linear(data.kvUp, layer)
	l.qNorm.epsilon, l.kvNorm.epsilon = data.epsilon, data.epsilon
	queries := l.qUp
	if queries.weight == "" {
		queries = l.down[0]
	}
	for _, fit := range []struct {
		tensor    string
		has, says int
	}{
		{queries.weight, queries.outputs, h.queries * h.size},
		{l.down[1].weight, l.down[1].outputs, l.kvNorm.width + shared},
		{l.kvUp.weight, l.kvUp.outputs, h.kv * (own + h.valueSize)},
		{l.out.weight, l.out.inputs, h.queries * h.valueSize},
	} {
		if fit.has != fit.says {
			b.failf("tensor %q: %d channels of heads do not fit config.json, which says %d", fit.tensor, fit.has, fit.says)
		}
	}
	return l
}
