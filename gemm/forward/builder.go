package forward

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// builder makes a Decoder of a family, a config and a checkpoint's tensors. Like config it keeps
// the first error.
type builder struct {
	family family
	config *config
	dims   map[string]int
	claims map[module][]*arch.Claim // experts in their order
	err    error
}

// module names a tensor by arch.Claim's Kind and Layer, experts of one layer alike.
type module struct {
	kind  string
	layer int
}

func newBuilder(f family, c *config, l *arch.Layout) *builder {
	b := &builder{family: f, config: c, dims: l.Dims, claims: map[module][]*arch.Claim{}}
	for _, claim := range l.Claims {
		m := module{claim.Kind, claim.Layer}
		b.claims[m] = append(b.claims[m], claim)
	}
	for _, all := range b.claims {
		slices.SortFunc(all, func(a, b *arch.Claim) int { return cmp.Compare(lastNumber(a.Name), lastNumber(b.Name)) })
	}
	return b
}

// lastNumber is the last word of a name that is a number: an expert's, where there are experts.
func lastNumber(name string) int {
	for _, word := range slices.Backward(strings.Split(name, ".")) {
		if n, err := strconv.Atoi(word); err == nil {
			return n
		}
	}
	return 0
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
	if f.norm.weight == "" && f.scale == 1 {
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

func (b *builder) activation() func(float32) float32 {
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
		b.failf("tensor %q: %d inputs from %d outputs before do not fit its config.json, which says %d from %d", m.out.weight, m.out.inputs, width, out, in)
	}
}

// has reports whether the checkpoint has a module.
func (b *builder) has(layer int, kind string) bool { return len(b.claims[module{kind, layer}]) > 0 }

func (b *builder) hasAny(layer int, kinds []string) bool {
	return slices.ContainsFunc(kinds, func(kind string) bool { return b.has(layer, kind) })
}

// claim finds a tensor that must have so many dimensions.
func (b *builder) claim(kind string, layer, dimensions int) *arch.Claim {
	all := b.claims[module{kind, layer}]
	switch {
	case len(all) == 0 && layer < 0:
		b.failf("the checkpoint has no %s, which the forward pass needs: use one with all of the model", kind)
	case len(all) == 0:
		b.failf("the checkpoint has no %s in layer %d, which the forward pass needs: use one with all of the model", kind, layer)
	case len(all[0].Axes) != dimensions:
		b.failf("tensor %q: has %d dimensions, the forward pass needs %d", all[0].Name, len(all[0].Axes), dimensions)
	default:
		return all[0]
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

// positions are learned ones, where the family has them.
func (b *builder) positions() positions {
	data := b.family.embedding
	if data.positions == "" {
		return positions{}
	}
	rows := b.dims["positions"]
	return positions{b.table(data.positions, rows), rows, data.offset}
}

func (b *builder) linear(kind string, layer int) linear {
	c := b.claim(kind, layer, 2)
	if c == nil {
		return linear{}
	}
	return newLinear(c)
}

func newLinear(c *arch.Claim) linear {
	return linear{weight: c.Name, bias: c.Bias, transposed: c.OutAxis == 1,
		inputs: c.Axes[1-c.OutAxis].Len(), outputs: c.Axes[c.OutAxis].Len()}
}

// norm is the first of kinds that the checkpoint has, which must have one of them; none where none are
// listed.
func (b *builder) norm(layer int, kinds ...string) norm {
	if len(kinds) == 0 || kinds[0] == "" {
		return norm{}
	}
	i := max(0, slices.IndexFunc(kinds, func(kind string) bool { return b.has(layer, kind) }))
	f := b.family
	n := norm{kind: f.norm, epsilon: b.config.positive(f.epsilon.name, f.epsilon.value.(float64))}
	if c := b.claim(kinds[i], layer, 1); c != nil {
		n.weight, n.width = c.Name, c.Axes[0].Len()
	}
	if all := b.claims[module{kinds[i] + ".bias", layer}]; len(all) > 0 {
		n.bias = all[0].Name
	}
	return n
}
