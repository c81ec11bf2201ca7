package arch

import (
	"fmt"
	"slices"

	"github.com/lowtoggle/lowtoggle/weights"
)

// logical replaces the tensors of quantised weights by the weights themselves. Other tensors of a quantisation
// are left out.
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

// fitsQuantised reports whether the values of a quantised weight may have a shape that differs from the tensor's
// in an unquantised checkpoint: one that is not known, or outputs × inputs where the family stores inputs ×
// outputs.
func fitsQuantised(t *tensor, shape []int) bool {
	want := slices.Clone(t.shape())
	if t.Out == 1 && len(want) == 2 {
		slices.Reverse(want)
	}
	return shape == nil || slices.Equal(shape, want)
}

// opaque are the modules with tensors of an unknown format, each with what is known of it.
func (r *resolver) opaque() map[string]string {
	modules := map[string]string{}
	if r.quantised == nil {
		return modules
	}
	for _, w := range r.quantised.Weights {
		if w.Format.Codes != "" {
			continue
		}
		for _, t := range w.Tensors {
			modules[parent(t.Name)] = w.Format.String()
		}
	}
	return modules
}

// blockQuantised blocks all indices of quantised weights: their tensors do not follow what is done to an index.
// A weight of unknown shape that the family does not know may share every index of the whole model.
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
			if c := l.Claims[u.Tensor]; c.Quantised != "" {
				x.block("weight %q is quantised and copied unchanged", c.Name)
			}
		}
	}
}

// unknown are the tensors and quantised weights that the family does not claim, which may share an index in a way
// that it does not know.
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
