package decoder

import (
	"maps"
	"math"
	"slices"
	"strings"
)

// decoder returns the description of the whole model.
func (b *builder) decoder() *Decoder {
	f, c := b.family, b.config
	c.refuse(f.must)
	d := &Decoder{
		Hidden:    b.dims["hidden"],
		Vocab:     b.dims["vocab"],
		Limit:     math.MaxInt32,
		Embedding: b.embedding(),
		Head: Head{
			Norm:  b.norm(-1, f.final),
			Tied:  c.is(f.head.tied),
			Scale: float32(c.factor(f.head.scale)),
			Cap:   c.bound(f.head.cap),
		},
	}
	if e := d.Embedding; e.Positions != "" {
		d.Limit = e.PositionRows - e.Offset
	}
	if r := f.attention.rotary; r != nil && !b.biased() {
		d.Limit = c.length(r.limit.name, int(r.limit.value.(float64)))
	}
	if f.attention.window.size.name == "" {
		// For sequences up to the window's length, the window has no effect.
		d.Limit = min(d.Limit, c.length("sliding_window", d.Limit))
	}
	for i := range b.dims["layers"] {
		d.Blocks = append(d.Blocks, b.block(i))
	}
	if d.Head.Tied {
		d.Head.Linear = Linear{Weight: d.Embedding.Tokens, Inputs: d.Hidden, Outputs: d.Vocab}
	} else {
		d.Head.Linear = b.linear(f.head.name, -1)
	}
	return d
}

func (b *builder) embedding() Embedding {
	data := b.family.embedding
	e := Embedding{Tokens: b.table(data.tokens, b.dims["vocab"]), Scale: float32(b.config.factor(data.scale))}
	if data.positions != "" {
		e.PositionRows, e.Offset = b.dims["positions"], data.offset
		e.Positions = b.table(data.positions, e.PositionRows)
	}
	e.Norm = b.norm(-1, data.norm)
	return e
}

// block returns the description of a block: two steps, or one step if attention and FFN read the same stream.
func (b *builder) block(layer int) Block {
	f := b.family
	attention := Branch{b.norm(layer, f.attention.norm...), []Part{b.finish(layer, Part{Attention: b.attention(layer)}, f.attention.post)}}
	parts := b.ffn(layer)
	for i := range parts {
		parts[i] = b.finish(layer, parts[i], f.ffn.post)
	}
	if slices.ContainsFunc(f.parallel, b.config.is) {
		if !b.hasAny(layer, f.ffn.norm) {
			attention.Parts = append(attention.Parts, parts...)
			return Block{{attention}}
		}
		return Block{{attention, {b.norm(layer, f.ffn.norm...), parts}}}
	}
	return Block{{attention}, {{b.norm(layer, f.ffn.norm...), parts}}}
}

// finish adds the norm and the scale of a part's output.
func (b *builder) finish(layer int, p Part, norm string) Part {
	p.Norm, p.Scale = b.norm(layer, norm), float32(b.config.factor(b.family.residual))
	return p
}

// ffn returns the parts of an FFN: neurons, or routed experts and shared experts.
func (b *builder) ffn(layer int) []Part {
	f := b.family.ffn
	if e := f.experts; e != nil && b.has(layer, e.router) {
		parts := []Part{{Experts: b.experts(layer, e)}}
		if e.shared.out != "" && b.has(layer, e.shared.out) {
			parts = append(parts, Part{FFN: b.neurons(layer, e.shared)})
		}
		return parts
	}
	return []Part{{FFN: b.neurons(layer, f.neuronsData)}}
}

func (b *builder) neurons(layer int, data neuronsData) *FFN {
	out := b.linear(data.out, layer)
	var in []Linear
	for _, kind := range data.in {
		in = append(in, b.linear(kind, layer))
	}
	return b.newFFN(in, data.gated, out)
}

func (b *builder) newFFN(in []Linear, gated bool, out Linear) *FFN {
	f := &FFN{In: in, Gated: gated, Activation: b.activation(), Out: out}
	width := f.Neurons()
	if gated {
		width *= 2
	}
	b.fits(in, width, out, f.Neurons())
	return f
}

// activations has the activations by their names in config.json.
var activations = map[string]Activation{
	"gelu":              GELU,
	"gelu_fast":         GELUTanh,
	"gelu_new":          GELUTanh,
	"gelu_pytorch_tanh": GELUTanh,
	"relu":              ReLU,
	"silu":              SiLU,
	"swish":             SiLU,
}

func (b *builder) activation() Activation {
	field := b.family.ffn.activation
	name := get(b.config, field.name, field.value.(string))
	act, ok := activations[name]
	if !ok {
		b.config.failf("%s is %q; the forward pass supports %s", field.name, name, strings.Join(slices.Sorted(maps.Keys(activations)), ", "))
	}
	return act
}

// fits records an error unless the first layers of a part together have width outputs, and the last layer has inputs inputs.
func (b *builder) fits(first []Linear, width int, last Linear, inputs int) {
	sum := 0
	for _, l := range first {
		sum += l.Outputs
	}
	if b.err == nil && (sum != width || last.Inputs != inputs) {
		b.failf("tensor %q: the layer has %d inputs, and the layers before it have %d outputs; the forward pass needs %d inputs and %d outputs", last.Weight, last.Inputs, sum, inputs, width)
	}
}
