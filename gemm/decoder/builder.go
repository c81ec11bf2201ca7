package decoder

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// builder makes a Decoder from a family, a config and a checkpoint's tensors. Like config, it keeps the first error.
type builder struct {
	family family
	config *config
	dims   map[string]int
	claims map[module][]*arch.Claim // experts in order of their numbers
	err    error
}

// module identifies tensors by the Kind and Layer of arch.Claim. All experts of a layer have the same module.
type module struct {
	kind  string
	layer int
}

func newBuilder(f family, c *config, l *arch.Layout) *builder {
	b := &builder{family: f, config: c, dims: l.Dims, claims: map[module][]*arch.Claim{}}
	for _, claim := range l.Claims {
		if claim.Role == 0 { // an adapter's tensor; only the base is computed
			continue
		}
		m := module{claim.Kind, claim.Layer}
		b.claims[m] = append(b.claims[m], claim)
	}
	for _, all := range b.claims {
		slices.SortFunc(all, func(a, b *arch.Claim) int { return cmp.Compare(lastNumber(a.Name), lastNumber(b.Name)) })
	}
	return b
}

// lastNumber returns the last number among the words of a name, which is the number of an expert if there are experts.
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

// has reports whether the checkpoint has a module.
func (b *builder) has(layer int, kind string) bool { return len(b.claims[module{kind, layer}]) > 0 }

func (b *builder) hasAny(layer int, kinds []string) bool {
	return slices.ContainsFunc(kinds, func(kind string) bool { return b.has(layer, kind) })
}

// claim returns the claim of a tensor, which must have the given number of dimensions.
func (b *builder) claim(kind string, layer, dimensions int) *arch.Claim {
	all := b.claims[module{kind, layer}]
	switch {
	case len(all) == 0 && layer < 0:
		b.failf("the checkpoint has no %s, which the forward pass needs: use a complete checkpoint", kind)
	case len(all) == 0:
		b.failf("the checkpoint has no %s in layer %d, which the forward pass needs: use a complete checkpoint", kind, layer)
	case len(all[0].Axes) != dimensions:
		b.failf("tensor %q: has %d dimensions, but the forward pass needs %d", all[0].Name, len(all[0].Axes), dimensions)
	default:
		return all[0]
	}
	return nil
}

// table returns the name of an embedding, which must have the given number of rows.
func (b *builder) table(kind string, rows int) string {
	c := b.claim(kind, -1, 2)
	if c == nil {
		return ""
	}
	if r, w := c.Axes[0].Len(), c.Axes[1].Len(); r != rows || w != b.dims["hidden"] {
		b.failf("tensor %q: is %d × %d, but the forward pass needs %d × %d", c.Name, r, w, rows, b.dims["hidden"])
	}
	return c.Name
}

func (b *builder) linear(kind string, layer int) Linear {
	c := b.claim(kind, layer, 2)
	if c == nil {
		return Linear{}
	}
	return newLinear(c)
}

func newLinear(c *arch.Claim) Linear {
	return Linear{Weight: c.Name, Bias: c.Bias, Transposed: c.OutAxis == 1,
		Inputs: c.Axes[1-c.OutAxis].Len(), Outputs: c.Axes[c.OutAxis].Len()}
}

// norm returns the first of the norms kinds that the checkpoint has. It is an error if it has none, unless kinds is empty.
func (b *builder) norm(layer int, kinds ...string) Norm {
	if len(kinds) == 0 || kinds[0] == "" {
		return Norm{}
	}
	i := max(0, slices.IndexFunc(kinds, func(kind string) bool { return b.has(layer, kind) }))
	f := b.family
	n := Norm{Kind: f.norm, Width: b.dims["hidden"], Epsilon: b.config.positive(f.epsilon.name, f.epsilon.value.(float64))}
	if f.weighted.name != "" && !b.config.is(f.weighted) {
		return n
	}
	if c := b.claim(kinds[i], layer, 1); c != nil {
		n.Weight, n.Width = c.Name, c.Axes[0].Len()
	}
	if all := b.claims[module{kinds[i] + ".bias", layer}]; len(all) > 0 {
		n.Bias = all[0].Name
	}
	return n
}
