package forward

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// builder makes a Decoder of a family, a config and a checkpoint's tensors. Like config it keeps
// the first error.
type builder struct {
	family family
	config *config
	dims   map[string]int
	claims map[module]*arch.Claim
	err    error
}

// module names a tensor by arch.Claim's Kind and Layer.
type module struct {
	kind  string
	layer int
}

func newBuilder(f family, c *config, l *arch.Layout) *builder {
	b := &builder{family: f, config: c, dims: l.Dims, claims: map[module]*arch.Claim{}}
	for _, claim := range l.Claims {
		b.claims[module{claim.Kind, claim.Layer}] = claim
	}
	return b
}

func (b *builder) failf(format string, args ...any) {
	if b.err == nil {
		b.err = fmt.Errorf(format, args...)
	}
}

func (b *builder) decoder() *Decoder {
	f, c := b.family, b.config
	c.refuse(f.must)
	d := &Decoder{
		hidden: b.dims["hidden"],
		vocab:  b.dims["vocab"],
		limit:  b.dims["positions"],
		final:  b.norm(f.final, -1),
		tied:   get(c, f.tied.name, f.tied.value.(bool)),
	}
	d.embedding = b.table(f.embedding, d.vocab)
	attention, ffn := b.attention(), b.ffn()
	if f.positions != "" {
		d.positions, d.positionRows = b.table(f.positions, d.limit), d.limit
	} else {
		d.limit = c.length("max_position_embeddings", 2048)
		attention.rotary = c.rotary(attention.size)
	}
	// Up to the window's length a sliding one makes no difference.
	d.limit = min(d.limit, c.length("sliding_window", d.limit))
	for i := range b.dims["layers"] {
		d.blocks = append(d.blocks, []step{b.step(f.attention, i, attention), b.step(f.ffn, i, ffn)})
	}
	if d.tied {
		d.head = linear{weight: d.embedding, inputs: d.hidden, outputs: d.vocab}
	} else {
		d.head = b.linear(f.head, -1)
	}
	return d
}

func (b *builder) attention() *attention {
	a := &attention{heads: b.dims["heads"], kv: b.dims["heads"], size: b.dims["head_dim"]}
	if kv, grouped := b.dims["kv_heads"]; grouped {
		a.kv = kv
	}
	return a
}

func (b *builder) ffn() *ffn {
	field := b.family.activation
	name := get(b.config, field.name, field.value.(string))
	act, ok := activations[name]
	if !ok {
		b.config.failf("%s is %q; the forward pass knows %s", field.name, name, strings.Join(slices.Sorted(maps.Keys(activations)), ", "))
	}
	return &ffn{neurons: b.dims["neurons"], gated: len(b.family.ffn.in) == 2, act: act}
}

// step finds the tensors of half a block, and holds their sizes against what mixes them.
func (b *builder) step(h half, layer int, mix mixer) step {
	s := step{norm: b.norm(h.norm, layer), mix: mix, out: b.linear(h.out, layer)}
	width := 0
	for _, kind := range h.in {
		l := b.linear(kind, layer)
		width += l.outputs
		s.in = append(s.in, l)
	}
	if in, out := mix.widths(); b.err == nil && (width != in || s.out.inputs != out) {
		b.failf("tensor %q: %d inputs from %d outputs before do not fit config.json, which says %d from %d", s.out.weight, s.out.inputs, width, out, in)
	}
	return s
}

// claim finds a tensor that must have so many dimensions.
func (b *builder) claim(kind string, layer, dimensions int) *arch.Claim {
	c := b.claims[module{kind, layer}]
	switch {
	case c == nil && layer < 0:
		b.failf("the checkpoint has no %s, which the forward pass needs: use one with all of the model", kind)
	case c == nil:
		b.failf("the checkpoint has no %s in layer %d, which the forward pass needs: use one with all of the model", kind, layer)
	case len(c.Axes) != dimensions:
		b.failf("tensor %q: has %d dimensions, the forward pass needs %d", c.Name, len(c.Axes), dimensions)
	default:
		return c
	}
	return nil
}

// table is the name of an embedding with so many rows.
func (b *builder) table(kind string, rows int) string {
	c := b.claim(kind, -1, 2)
	if c == nil {
		return ""
	}
	if r, w := c.Axes[0].Len(), c.Axes[1].Len(); r != rows || w != b.dims["hidden"] {
		b.failf("tensor %q: is %d × %d, the forward pass needs %d × %d", c.Name, r, w, rows, b.dims["hidden"])
	}
	return c.Name
}

func (b *builder) linear(kind string, layer int) linear {
	c := b.claim(kind, layer, 2)
	if c == nil {
		return linear{}
	}
	return linear{weight: c.Name, bias: c.Bias, transposed: c.OutAxis == 1,
		inputs: c.Axes[1-c.OutAxis].Len(), outputs: c.Axes[c.OutAxis].Len()}
}

func (b *builder) norm(kind string, layer int) norm {
	f := b.family
	n := norm{kind: f.norm, width: b.dims["hidden"], epsilon: b.config.positive(f.epsilon.name, f.epsilon.value.(float64))}
	if c := b.claim(kind, layer, 1); c != nil {
		n.weight = c.Name
	}
	if c := b.claims[module{kind + ".bias", layer}]; c != nil {
		n.bias = c.Name
	}
	return n
}
