package decoder

import "math"

// Kinds of layers, as "layer_types" of config.json calls them.
const (
	fullAttention    = "full_attention"
	slidingAttention = "sliding_attention"
)

// attention returns the description of a layer's attention.
func (b *builder) attention(layer int) *Attention {
	data := b.family.attention
	if data.latent != nil {
		return b.latent(layer, data.latent)
	}
	h := Heads{Queries: b.dims["heads"], KV: b.dims["heads"], Size: b.dims["head_dim"], ValueSize: b.dims["head_dim"], ByHead: data.byHead}
	if kv, grouped := b.dims["kv_heads"]; grouped {
		h.KV = kv
	}
	if h.KV < 1 || h.Queries%h.KV != 0 {
		b.failf("%d query heads cannot share %d KV heads: the first number must be a multiple of the second", h.Queries, h.KV)
		h.KV = h.Queries
	}
	a := b.scores(layer, h)
	a.Out = b.linear(data.out, layer)
	for _, kind := range data.in {
		a.In = append(a.In, b.linear(kind, layer))
	}
	if data.qNorm != "" {
		queries, keys := h.Columns()
		a.Norms = []SpanNorm{b.span(b.norm(layer, data.qNorm), queries, h.Size), b.span(b.norm(layer, data.kNorm), keys, h.Size)}
	}
	b.fits(a.In, h.Width(), a.Out, h.Queries*h.ValueSize)
	return a
}

// span returns a norm of the heads that begin at columns. It applies to each head by itself, or to all heads together.
func (b *builder) span(n Norm, columns []int, size int) SpanNorm {
	switch n.Width {
	case size:
	case size * len(columns):
		columns = columns[:1]
	default:
		b.failf("tensor %q: has %d values, but the forward pass needs %d or %d", n.Weight, n.Width, size, size*len(columns))
	}
	return SpanNorm{n, columns}
}

// scores returns a layer's attention without its linear layers: heads, scale, cap, positions and window.
func (b *builder) scores(layer int, h Heads) *Attention {
	data, c := b.family.attention, b.config
	window, kind := b.window(layer)
	a := &Attention{Heads: h, Window: window, Cap: c.bound(data.cap), Scale: float32(defaultScale(h.Size))}
	if data.scale.name != "" {
		a.Scale = float32(c.factor(data.scale))
	}
	switch {
	case b.biased():
		a.ALiBi = newALiBi(h.Queries, data.alibi.coarse)
	case data.rotary != nil:
		a.Rotary = c.rope(data.rotary, kind).rotary(h.Size)
	}
	return a
}

// defaultScale returns the scale of scores for heads with size channels.
func defaultScale(size int) float64 { return 1 / math.Sqrt(float64(size)) }

// biased reports whether positions enter as biases of scores (ALiBi).
func (b *builder) biased() bool {
	data := b.family.attention.alibi
	return data != nil && b.config.is(data.used)
}

// window returns the number of keys that a layer's queries see, 0 for all, and the layer's kind.
func (b *builder) window(layer int) (size int, kind string) {
	data, c := b.family.attention.window, b.config
	if data.size.name == "" || data.used.name != "" && !c.is(data.used) {
		return 0, fullAttention
	}
	size = toLength(c.bound(data.size))
	first, period := 0, 0
	if data.first.name != "" {
		first = int(get(c, data.first.name, data.first.value.(float64)))
	}
	if data.period.value != nil {
		period = c.count(data.period)
	}
	kind = slidingAttention
	if layer < first || period > 0 && (layer+1)%period == 0 {
		kind = fullAttention
	}
	if list, ok := c.lookup("layer_types").([]any); data.listed && ok {
		kind = ""
		if layer < len(list) {
			kind, _ = list[layer].(string)
		}
	}
	switch kind {
	case slidingAttention:
		return size, kind
	case fullAttention:
		return 0, kind
	}
	c.failf("layer_types is neither %s nor %s for layer %d", fullAttention, slidingAttention, layer)
	return 0, fullAttention
}
