package inspect

import "math"

// Kind sums up the tensors of one kind. A mean is NaN if it is known for none of the tensors.
type Kind struct {
	Name          string
	DType         string // "mixed" if there are several
	Tensors       int
	Elements      int
	RowToggles    float64 // bits per value that differ from the same column of the row before
	MemoryToggles float64 // bits per value that differ from the value before in the file
	Ones          float64 // set bits per value
	Zeros         float64 // share of the values that are zero
	Relative      float64 // predicted energy relative to random weights, mean over linear layers
}

// Kinds sums up the tensors by kind. Kinds are in the order of their first tensors.
func (r *Report) Kinds() []Kind {
	groups := map[string][]Tensor{}
	var order []string
	for _, t := range r.Tensors {
		if groups[t.Kind] == nil {
			order = append(order, t.Kind)
		}
		groups[t.Kind] = append(groups[t.Kind], t)
	}
	var list []Kind
	for _, name := range order {
		list = append(list, sum(name, groups[name]))
	}
	return list
}

// Summary returns the figures of this tensor, under its name.
func (t Tensor) Summary() Kind { return sum(t.Name, []Tensor{t}) }

// mean is a sum and what it is divided by.
type mean struct{ sum, n float64 }

func (m *mean) add(sum, n float64) { m.sum, m.n = m.sum+sum, m.n+n }

func (m mean) value() float64 {
	if m.n == 0 {
		return math.NaN()
	}
	return m.sum / m.n
}

func sum(name string, tensors []Tensor) Kind {
	k := Kind{Name: name, DType: tensors[0].DType, Tensors: len(tensors)}
	var rows, memory, ones, zeros, energy mean
	for _, t := range tensors {
		k.Elements += t.elements
		if t.DType != k.DType {
			k.DType = "mixed"
		}
		if a := t.Activity; a != nil {
			rows.add(float64(a.RowToggles.Total()), float64(a.RowPairs()))
			memory.add(float64(a.MemoryToggles.Total()), float64(a.MemoryPairs()))
			ones.add(float64(a.Ones.Total()), float64(a.Elements))
			zeros.add(float64(a.Zeros), float64(a.Elements))
		}
		if t.Predicted != nil {
			energy.add(float64(t.elements)*t.Predicted.Relative, float64(t.elements))
		}
	}
	k.RowToggles, k.MemoryToggles, k.Ones, k.Zeros, k.Relative = rows.value(), memory.value(), ones.value(), zeros.value(), energy.value()
	return k
}
