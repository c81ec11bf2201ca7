package arch

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/weights"
)

// block marks the indices that an unknown tensor, which the family does not list, may share:
//
//   - Every index of the whole model that is as long as one of the tensor's dimensions. An adapter or a vision projector on the
//     residual stream is such a tensor.
//   - All indices of a known tensor of the same module. The scales of a quantised weight are in the module of the weight.
//   - If the module has no known tensor, the layer's indices of the known tensors of the same block. A norm on q and k, and an
//     additional expert, are in such a block.
func block(l *Layout, unknown []weights.Info, known []*found) {
	if len(unknown) == 0 {
		return
	}
	b := newBlocker(l, known)
	for _, t := range unknown {
		for _, x := range b.global {
			if slices.Contains(t.Shape, x.Len) {
				x.block("tensor %q is not in the catalogue and has a dimension of %d, the index's length", t.Name, x.Len)
			}
		}
		at := parent(t.Name)
		for at != "" && !b.neighbours(t.Name, at) {
			at = parent(at)
		}
	}
}

// blocker holds the known tensors by module, block and layer.
type blocker struct {
	global          []*Index
	modules, blocks map[string][]*Claim
}

func newBlocker(l *Layout, known []*found) *blocker {
	b := &blocker{modules: map[string][]*Claim{}, blocks: map[string][]*Claim{}}
	for _, x := range l.Indices {
		if x.global {
			b.global = append(b.global, x)
		}
	}
	for _, f := range known {
		c := l.Claims[f.info.Name]
		module := parent(c.Name)
		b.modules[c.Name] = append(b.modules[c.Name], c)
		b.modules[module] = append(b.modules[module], c)
		// A block lies within a layer: "model.layers.0.mlp" is one, "model.layers" is not.
		if inner := f.pattern.afterVariable(); inner >= 2 {
			b.blocks[parent(module)] = append(b.blocks[parent(module)], c)
		}
	}
	return b
}

// neighbours blocks the indices that an unclaimed tensor may share with the known tensors at a place. It returns false if the
// place has no known tensors. A second call for the same place blocks nothing more.
func (b *blocker) neighbours(unclaimed, place string) bool {
	module, isModule := b.modules[place]
	for _, c := range module {
		c.each(func(x *Index) {
			x.block("tensor %q is not in the catalogue and belongs to the same module as %q", unclaimed, c.Name)
		})
	}
	within, isBlock := b.blocks[place]
	for _, c := range within {
		c.each(func(x *Index) {
			if !x.global {
				x.block("tensor %q is not in the catalogue and belongs to the same block as %q", unclaimed, c.Name)
			}
		})
	}
	if isModule {
		b.modules[place] = nil
	}
	if isBlock {
		b.blocks[place] = nil
	}
	return isModule || isBlock
}

// each calls visit with the indices of all axes.
func (c *Claim) each(visit func(*Index)) {
	for _, a := range c.Axes {
		a.each(func(_ *node, x *Index) { visit(x) })
	}
}

// block sets the reason why the index is blocked, unless it has one already.
func (x *Index) block(format string, args ...any) {
	if x.Blocked == "" {
		x.Blocked = fmt.Sprintf(format, args...)
	}
}

// parent returns a name without its last part; empty if the name has one part only.
func parent(name string) string { return name[:max(0, strings.LastIndexByte(name, '.'))] }

// afterVariable returns the number of parts after the first variable; 0 if there is no variable.
func (p pattern) afterVariable() int {
	for i, part := range p.parts {
		if part.slot >= 0 {
			return len(p.parts) - 1 - i
		}
	}
	return 0
}

// Doubt returns a reason why nothing may be added to a claimed tensor or folded into it; empty if there is none. One reason
// is an unclaimed tensor in the same module, such as the scales of a quantised weight. Another is an unclaimed tensor that
// may read a norm's output.
func (l *Layout) Doubt(tensor string) string {
	if why := l.kept[tensor]; why != "" {
		return why
	}
	module := parent(tensor) + "."
	i, _ := slices.BinarySearch(l.Unclaimed, module)
	if i < len(l.Unclaimed) && strings.HasPrefix(l.Unclaimed[i], module) {
		return fmt.Sprintf("tensor %q is not in the catalogue and belongs to the same module as %q", l.Unclaimed[i], tensor)
	}
	c := l.Claims[tensor]
	if c != nil && c.Quantised != "" {
		return fmt.Sprintf("weight %q is quantised: %s", tensor, c.Quantised)
	}
	if c == nil || c.Role != Norm {
		return ""
	}
	for _, axis := range c.Axes {
		for _, name := range axis.Indices() {
			x := l.byName[name]
			if !slices.ContainsFunc(x.Uses, func(u Use) bool { return u.Tensor == tensor && u.Signed }) {
				continue
			}
			if x.Blocked != "" {
				return x.Blocked
			}
			if name := l.QuantisedOf(x); name != "" {
				return fmt.Sprintf("weight %q is quantised: %s", name, l.Claims[name].Quantised)
			}
		}
	}
	return ""
}

// QuantisedOf returns the name of a quantised weight that has the index; empty if there is none.
func (l *Layout) QuantisedOf(x *Index) string {
	if x == nil {
		return ""
	}
	i := slices.IndexFunc(x.Uses, func(u Use) bool { return l.Claims[u.Tensor].Quantised != "" })
	if i < 0 {
		return ""
	}
	return x.Uses[i].Tensor
}

// blockHiddenStates blocks the indices of the whole model, such as the residual stream, for a reason.
func (l *Layout) blockHiddenStates(why string) {
	for _, x := range l.Indices {
		if x.global {
			x.block("%s", why)
		}
	}
}

// Blocked is a group of indices that stay unchanged for the same reason.
type Blocked struct {
	Indices []string `json:"indices"`
	Why     string   `json:"why"` // the reason for the first of the Indices
}

// String returns a sentence for messages: the indices that are not changed, and the reason.
func (b Blocked) String() string {
	var which string
	switch len(b.Indices) {
	case 0:
		which = "no index is changed"
	case 1:
		which = "index " + b.Indices[0] + " is not changed"
	case 2, 3:
		which = "indices " + strings.Join(b.Indices, ", ") + " are not changed"
	default:
		which = fmt.Sprintf("%d indices (%s, …) are not changed", len(b.Indices), b.Indices[0])
	}
	return which + ": " + b.Why
}

// BlockedIndices returns the blocked indices, grouped by reason, in the order of Indices.
func (l *Layout) BlockedIndices() (list []Blocked) {
	place := map[string]int{}
	for _, x := range l.Indices {
		if x.Blocked == "" {
			continue
		}
		reason := weights.Outline(x.Blocked)
		i, seen := place[reason]
		if !seen {
			i = len(list)
			place[reason] = i
			list = append(list, Blocked{Why: x.Blocked})
		}
		list[i].Indices = append(list[i].Indices, x.Name)
	}
	return list
}
