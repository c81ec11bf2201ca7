package forward

import (
	"maps"
	"math"
	"slices"
	"strings"
)

// decoder puts a model together.
func (b *builder) decoder() *Decoder {
	f, c := b.family, b.config
	c.refuse(f.must)
	d := &Decoder{
		hidden:     b.dims["hidden"],
		vocab:      b.dims["vocab"],
		limit:      math.MaxInt32,
		embedding:  b.table(f.embedding.tokens, b.dims["vocab"]),
		scale:      float32(c.factor(f.embedding.scale)),
		positions:  b.positions(),
		entry:      b.norm(-1, f.embedding.norm),
		final:      b.norm(-1, f.final),
		tied:       c.is(f.head.tied),
		logitScale: float32(c.factor(f.head.scale)),
		logitCap:   c.bound(f.head.cap),
	}
	if d.positions.table != "" {
		d.limit = d.positions.rows - d.positions.first
	}
	if r := f.attention.rotary; r != nil && !b.biased() {
		d.limit = c.length(r.limit.name, int(r.limit.value.(float64)))
	}
	if f.attention.window.size.name == "" {
		// Up to its length a window makes no difference, whether the model heeds it or not.
		d.limit = min(d.limit, c.length("sliding_window", d.limit))
	}
	for i := range b.dims["layers"] {
		d.blocks = append(d.blocks, b.block(i))
	}
	if d.tied {
		d.head = linear{weight: d.embedding, inputs: d.hidden, outputs: d.vocab}
	} else {
		d.head = b.linear(f.head.name, -1)
	}
	return d
}

// block is two steps, or one in which attention and FFN read the same.
func (b *builder) block(layer int) []step {
	f := b.family
	attention := branch{b.norm(layer, f.attention.norm...), []part{b.finish(layer, b.attention(layer), f.attention.post)}}
	parts := b.ffn(layer)
	for i := range parts {
		parts[i] = b.finish(layer, parts[i], f.ffn.post)
	}
	if slices.ContainsFunc(f.parallel, b.config.is) {
		if !b.hasAny(layer, f.ffn.norm) {
			attention.parts = append(attention.parts, parts...)
			return []step{{attention}}
		}
		return []step{{attention, {b.norm(layer, f.ffn.norm...), parts}}}
	}
	return []step{{attention}, {{b.norm(layer, f.ffn.norm...), parts}}}
}

// finish adds what happens to a part's output.
func (b *builder) finish(layer int, p part, norm string) part {
	f := finished{p, b.norm(layer, norm), float32(b.config.factor(b.family.residual))}
	if f.norm.missing() && f.scale == 1 {
		return p
	}
	return f
}

// ffn are the parts of an FFN: neurons, or routed experts and those that all tokens share.
func (b *builder) ffn(layer int) []part {
	f := b.family.ffn
	if e := f.experts; e != nil && b.has(layer, e.router) {
		parts := []part{b.experts(layer, e)}
		if e.shared.out != "" && b.has(layer, e.shared.out) {
			parts = append(parts, b.neurons(layer, e.shared))
		}
		return parts
	}
	return []part{b.neurons(layer, f.neuronsData)}
}

func (b *builder) neurons(layer int, data neuronsData) *mixed {
	m := &mixed{out: b.linear(data.out, layer)}
	for _, kind := range data.in {
		m.in = append(m.in, b.linear(kind, layer))
	}
	m.mix = &ffn{neurons: m.out.inputs, gated: data.gated, act: b.activation()}
	b.fits(m)
	return m
}

func (b *builder) activation() func(to, from []float32) {
	field := b.family.ffn.activation
	name := get(b.config, field.name, field.value.(string))
	act, ok := activations[name]
	if !ok {
		b.config.failf("%s is %q; the forward pass knows %s", field.name, name, strings.Join(slices.Sorted(maps.Keys(activations)), ", "))
	}
	return act
}

// fits holds a part's layers against what mixes them.
func (b *builder) fits(m *mixed) {
	width := 0
	for _, l := range m.in {
		width += l.outputs
	}
	if in, out := m.mix.widths(); b.err == nil && (width != in || m.out.inputs != out) {
		b.failf("tensor %q: %d inputs from %d outputs before do not fit, the forward pass needs %d from %d", m.out.weight, m.out.inputs, width, out, in)
	}
}
