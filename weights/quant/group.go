package quant

import (
	"github.com/lowtoggle/lowtoggle/weights"
)

// Set is all weights of a model.
type Set struct {
	// All lists the weights in the file order of their first parts, Parts[0]; the adapter's weights come last.
	All     []*Weight
	tensors [][]Place // by shard
	named   map[string]*Weight
}

// Place is a tensor's place in its weight: it is Weight.Parts[Part].
type Place struct {
	Weight *Weight
	Part   int
}

// Tensor returns the tensor in this place. It panics for a place outside its weight.
func (p Place) Tensor() weights.Tensor {
	return p.Weight.Parts[p.Part].Tensor
}

// Group returns the weights of a model and of its adapter. Every tensor belongs to exactly one weight. Group reads headers only.
// The tensors of a quantised weight of d are one weight if its values can be read (see [Quantised.CanRead]), and otherwise one
// weight each. d may be nil. A nil model has no weights.
func Group(m *weights.Model, d *Description) *Set {
	s := &Set{named: map[string]*Weight{}}
	if m == nil {
		return s
	}
	logical := logicalParts(d)
	for shard, f := range m.Files() {
		var places []Place
		for _, info := range f.Tensors {
			p, ok := logical[info.Name]
			if !ok || p.Weight.Parts[p.Part].Shard != shard || f == m.Adapter {
				t, _ := f.Tensor(info.Name)
				p = Place{plain(t, shard), 0}
				p.Weight.Adapter = f == m.Adapter
			}
			if p.Part == 0 {
				s.add(p.Weight)
			}
			places = append(places, p)
		}
		s.tensors = append(s.tensors, places)
	}
	return s
}

func (s *Set) add(w *Weight) {
	s.All = append(s.All, w)
	if s.named[w.Name] == nil {
		s.named[w.Name] = w
	}
}

// logicalParts returns the places of the tensors of all quantised weights that can be read, by tensor name.
func logicalParts(d *Description) map[string]Place {
	places := map[string]Place{}
	if d == nil {
		return places
	}
	for _, q := range d.Weights {
		if q.CanRead() != nil {
			continue
		}
		w := logical(q)
		for i, p := range w.Parts {
			places[p.Name] = Place{w, i}
		}
	}
	return places
}

// Tensors returns the place of every tensor of a file in its weight, in the order of the file's data. shard is the file's
// place in [weights.Model.Files].
func (s *Set) Tensors(shard int) []Place { return s.tensors[shard] }

// Weight returns the weight of a name, from the model or else from the adapter; false if there is none.
func (s *Set) Weight(name string) (*Weight, bool) {
	w, ok := s.named[name]
	return w, ok
}
