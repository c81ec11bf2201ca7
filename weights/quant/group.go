package quant

import (
	"github.com/lowtoggle/lowtoggle/weights"
)

// Set is all weights of a model.
type Set struct {
	// All lists them in the order in which their first parts lie in the files, those of an adapter
	// beside the model last.
	All     []*Weight
	tensors [][]Place // by shard
	named   map[string]*Weight
}

// Place is a tensor's place in its weight: it is Weight.Parts[Part].
type Place struct {
	Weight *Weight
	Part   int
}

// Tensor is the tensor that stands in this place.
func (p Place) Tensor() weights.Tensor { return p.Weight.Parts[p.Part].Tensor }

// Group finds the weights of a model and of an adapter beside it. Every tensor belongs to exactly one
// of them. It looks at headers only.
func Group(m *weights.Model) *Set {
	s := &Set{named: map[string]*Weight{}}
	for shard, f := range m.Files() {
		var places []Place
		for _, info := range f.Tensors {
			t, _ := f.Tensor(info.Name)
			w := plain(t, shard)
			w.Adapter = f == m.Adapter
			s.All = append(s.All, w)
			if s.named[w.Name] == nil {
				s.named[w.Name] = w
			}
			places = append(places, Place{w, 0})
		}
		s.tensors = append(s.tensors, places)
	}
	return s
}

// Tensors lists what the tensors of a file belong to, in the order of its data. shard is the file's
// place in [weights.Model.Files].
func (s *Set) Tensors(shard int) []Place { return s.tensors[shard] }

// Weight finds a weight by its name, one of the adapter's behind the model's.
func (s *Set) Weight(name string) (*Weight, bool) {
	w, ok := s.named[name]
	return w, ok
}
