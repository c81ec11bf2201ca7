package arch

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// logical returns tensors with one entry for each quantised weight in place of its tensors. Other tensors of a
// quantisation are left out.
func (r *resolver) logical(tensors []weights.Info) []weights.Info {
	if !r.quantised.Any() {
		return tensors
	}
	tensors = slices.DeleteFunc(slices.Clone(tensors), func(t weights.Info) bool { return r.quantised.Holds(t.Name) })
	for _, w := range r.quantised.Weights {
		tensors = append(tensors, weights.Info{Name: w.Name, DType: w.Tensors[0].DType, Shape: w.Shape})
	}
	return tensors
}

// outputsFirst reports whether a quantised weight is outputs × inputs although the family stores inputs × outputs. GPTQ and AWQ
// store every weight as outputs × inputs.
func outputsFirst(t *tensor, w *quant.Quantised) bool {
	if t.Out != 1 || len(t.axes) != 2 || w.Shape == nil {
		return false
	}
	return strings.HasPrefix(w.Format.Method, "gptq") || w.Format.Method == "awq" || !slices.Equal(w.Shape, t.shape())
}

// holds reports whether a quantised weight has the shape that the family gives a tensor. Padding, and a weight of unknown
// shape, are allowed.
func holds(t *tensor, w *quant.Quantised) bool {
	if w.Shape == nil {
		return true
	}
	want := slices.Clone(t.shape())
	if outputsFirst(t, w) {
		slices.Reverse(want)
	}
	if len(want) != len(w.Shape) {
		return false
	}
	i := len(want) - 1
	padding := w.Shape[i] - want[i]
	return slices.Equal(w.Shape[:i], want[:i]) && padding >= 0 && padding <= w.Padding
}

// IsLinearWeight reports whether a quantised weight belongs to a linear layer. With a nil layout, its name and shape decide.
func (l *Layout) IsLinearWeight(w *quant.Quantised) bool {
	if w == nil {
		return false
	}
	if l == nil {
		return l.IsLinear(weights.Info{Name: w.Name, DType: weights.F32, Shape: w.Shape})
	}
	c := l.Claims[w.Name]
	return c != nil && c.Role == Linear
}

// opaque returns the modules with tensors of an unknown format, and the known part of each format.
func (r *resolver) opaque() map[string]string {
	modules := map[string]string{}
	if r.quantised == nil {
		return modules
	}
	for _, w := range r.quantised.Weights {
		if w.Format.Codes != "" {
			continue
		}
		modules[parent(w.Name)] = w.Format.String()
		for _, t := range w.Tensors {
			modules[parent(t.Name)] = w.Format.String()
		}
	}
	return modules
}

// blockQuantised blocks the indices of quantised weights whose codes cannot follow an exact change. A weight of unknown shape
// that the family does not list may share every index of the whole model.
func (r *resolver) blockQuantised(l *Layout) {
	if r.quantised == nil {
		return
	}
	for _, w := range r.quantised.Weights {
		if l.Claims[w.Name] == nil && w.Shape == nil {
			l.blockHiddenStates(fmt.Sprintf("weight %q is quantised, and is not in the catalogue", w.Name))
		}
	}
	for _, x := range l.Indices {
		for _, u := range x.Uses {
			if why := r.fixed(l.Claims[u.Tensor]); why != "" {
				x.block("weight %q is quantised, and no exact change of its codes is possible: %s", u.Tensor, why)
			}
		}
	}
}

// fixed returns the reason why no exact change of a quantised weight's axes is possible; empty if one is possible.
func (r *resolver) fixed(c *Claim) string {
	if c.Quantised == "" {
		return ""
	}
	w, ok := r.quantised.Weight(c.Name)
	switch {
	case !ok || w.CanRead() != nil:
		return "lowtoggle does not read its values"
	case len(c.Axes) != 2 || c.OutAxis != 0:
		return "the weight is not a matrix of outputs × inputs"
	case c.Axes[0].Len() != w.Shape[0] || c.Axes[1].Len() != w.Shape[1]:
		return "its last inputs are padding"
	}
	return ""
}

// unknown returns the tensors and quantised weights that the family does not list. They may share indices with listed
// tensors.
func (r *resolver) unknown() (list []weights.Info) {
	for _, name := range r.unclaimed {
		list = append(list, *r.names[name])
	}
	if r.quantised == nil {
		return list
	}
	for _, w := range r.quantised.Weights {
		if !r.claimed[w.Name] {
			list = append(list, weights.Info{Name: w.Name, Shape: w.Shape})
		}
	}
	for _, t := range r.quantised.Others {
		list = append(list, t.Info)
	}
	return list
}
