package decoder

// latent returns a layer's multi-head latent attention.
func (b *builder) latent(layer int, data *latentData) *Attention {
	c := b.config
	h := Heads{Queries: b.dims["heads"], KV: b.dims["heads"], ByHead: true}
	own, shared := c.length("qk_nope_head_dim", 128), c.length("qk_rope_head_dim", 64)
	h.Size, h.ValueSize = own+shared, c.length("v_head_dim", 128)
	a := b.scores(layer, h)
	a.Out = b.linear(b.family.attention.out, layer)
	whole := c.rope(b.family.attention.rotary, fullAttention).whole()
	a.Scale = float32(defaultScale(h.Size) * whole * whole)
	l := &Latent{Shared: shared}
	a.Latent = l
	first := data.q
	if !b.has(layer, data.q) {
		first, l.Queries = data.qDown, b.raise(layer, data.qNorm, data.qUp, data.epsilon)
	}
	l.Down = [2]Linear{b.linear(first, layer), b.linear(data.kvDown, layer)}
	l.KV = b.raise(layer, data.kvNorm, data.kvUp, data.epsilon)
	queries := l.Down[0]
	if !l.Queries.Missing() {
		queries = l.Queries.Up
	}
	for _, fit := range []struct {
		tensor      string
		has, needed int
	}{
		{queries.Weight, queries.Outputs, h.Queries * h.Size},
		{l.Down[1].Weight, l.Down[1].Outputs, l.KV.Norm.Width + shared},
		{l.KV.Up.Weight, l.KV.Up.Outputs, h.KV * (own + h.ValueSize)},
		{a.Out.Weight, a.Out.Inputs, h.Queries * h.ValueSize},
	} {
		if fit.has != fit.needed {
			b.failf("tensor %q: has %d channels, but the heads in config.json need %d", fit.tensor, fit.has, fit.needed)
		}
	}
	return a
}

func (b *builder) raise(layer int, norm, up string, epsilon float64) Raise {
	r := Raise{b.norm(layer, norm), b.linear(up, layer)}
	r.Norm.Epsilon = epsilon
	if r.Norm.Width != r.Up.Inputs {
		b.failf("tensor %q: has %d inputs, but its norm has %d values", r.Up.Weight, r.Up.Inputs, r.Norm.Width)
	}
	return r
}
