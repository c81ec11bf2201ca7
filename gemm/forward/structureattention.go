package forward

// Kinds of layers, as "layer_types" of config.json calls them.
const (
	fullAttention    = "full_attention"
	slidingAttention = "sliding_attention"
)

// attention is a layer's.
func (b *builder) attention(layer int) part {
	data := b.family.attention
	if data.latent != nil {
		return b.latent(layer, data.latent)
	}
	h := heads{queries: b.dims["heads"], kv: b.dims["heads"], size: b.dims["head_dim"], valueSize: b.dims["head_dim"], byHead: data.byHead}
	if kv, grouped := b.dims["kv_heads"]; grouped {
		h.kv = kv
	}
	if h.kv < 1 || h.queries%h.kv != 0 {
		b.failf("%d heads cannot share %d KV heads", h.queries, h.kv)
		h.kv = h.queries
	}
	a := b.mixing(layer, h)
	m := &mixed{mix: a, out: b.linear(data.out, layer)}
	for _, kind := range data.in {
		m.in = append(m.in, b.linear(kind, layer))
	}
	if data.qNorm != "" {
		queries, keys := a.columns()
		m.norms = []spanNorm{b.span(b.norm(layer, data.qNorm), queries, a.size), b.span(b.norm(layer, data.kNorm), keys, a.size)}
	}
	b.fits(m)
	return m
}

// span is a norm of heads from those columns on: of each one's, or of all together.
func (b *builder) span(n norm, columns []int, size int) spanNorm {
	switch n.width {
	case size:
	case size * len(columns):
		columns = columns[:1]
	default:
		b.failf("tensor %q: has %d values, the forward pass needs %d or %d", n.weight, n.width, size, size*len(columns))
	}
	return spanNorm{n, columns}
}

// mixing is what a layer's attention does to heads.
func (b *builder) mixing(layer int, h heads) *attention {
	data, c := b.family.attention, b.config
	window, kind := b.window(layer)
	a := &attention{heads: h, window: window, cap: c.bound(data.cap), scale: float32(defaultScale(h.size))}
	if data.scale.name != "" {
		a.scale = float32(c.factor(data.scale))
	}
	switch {
	case b.biased():
		a.alibi = newALiBi(h.queries, data.alibi.coarse)
	case data.rotary != nil:
		a.rotary = c.rope(data.rotary, kind).rotary(h.size)
	}
	return a
}

// biased reports whether positions are biases of scores.
func (b *builder) biased() bool {
	data := b.family.attention.alibi
	return data != nil && b.config.is(data.used)
}

// window is how many keys a layer's queries see, 0 for all, and the layer's kind.
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
	c.failf("layer_types has no %s and no %s for layer %d", fullAttention, slidingAttention, layer)
	return 0, fullAttention
}
