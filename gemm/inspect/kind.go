package inspect

import (
	"math"

	"github.com/lowtoggle/lowtoggle/cost"
)

// Kind has totals and means over the tensors of one kind. A mean is NaN if it is unknown for all tensors. For quantised weights,
// MemoryToggles counts the stored codes, and all other figures are for the matrix that the tensor cores read.
type Kind struct {
	Name          string
	DType         string // "mixed" if there are several; the codes for a quantised weight
	Tensors       int
	Elements      int
	RowToggles    float64 // bits per value that differ from the same column of the row before
	MemoryToggles float64 // bits per value that differ from the value before in the file
	Ones          float64 // set bits per value
	Zeros         float64 // share of the values that are zero
	Relative      float64 // predicted energy relative to random weights, mean over linear layers
}

// Kinds returns the figures of each kind: first unquantised tensors, then quantised weights, in the order of the kinds' first
// tensors or weights. Other tensors of a quantisation are left out, unless their weight's values cannot be read.
func (r *Report) Kinds() []Kind {
	groups := map[string][]figures{}
	var order []string
	for _, t := range r.figures() {
		if groups[t.kind] == nil {
			order = append(order, t.kind)
		}
		groups[t.kind] = append(groups[t.kind], t)
	}
	var list []Kind
	for _, name := range order {
		list = append(list, sum(name, groups[name]))
	}
	return list
}

// Each returns the figures of every tensor and quantised weight, under its name. See [Report.Kinds] for their order.
func (r *Report) Each() (list []Kind) {
	for _, f := range r.figures() {
		list = append(list, sum(f.name, []figures{f}))
	}
	return list
}

// Elements returns the number of weights. It counts values of quantised weights that can be read, and stored elements of all
// other tensors.
func (r *Report) Elements() (n int) {
	for _, f := range r.figures() {
		n += f.elements
	}
	return n
}

// figures are the figures of a tensor or a weight that a Kind adds up.
type figures struct {
	name, kind, dtype string
	elements          int
	*cost.Activity
	packed    *cost.Activity // nil: the elements lie in memory as Activity counts them
	predicted *cost.Estimate
}

func (r *Report) figures() (list []figures) {
	for _, t := range r.Tensors {
		if t.Quantised == "" || !t.read {
			list = append(list, figures{t.Name, t.Kind, t.DType, t.elements, t.Activity, nil, t.Predicted})
		}
	}
	for _, w := range r.Weights {
		list = append(list, figures{w.Name, w.Kind, w.codes, w.Shape[0] * w.Shape[1], w.Activity, w.Packed, w.Predicted})
	}
	return list
}

// mean is a sum with its divisor.
type mean struct{ sum, n float64 }

func (m *mean) add(sum, n float64) { m.sum, m.n = m.sum+sum, m.n+n }

func (m mean) value() float64 {
	if m.n == 0 {
		return math.NaN()
	}
	return m.sum / m.n
}

func sum(name string, list []figures) Kind {
	k := Kind{Name: name, DType: list[0].dtype, Tensors: len(list)}
	var rows, memory, ones, zeros, energy mean
	for _, t := range list {
		k.Elements += t.elements
		if t.dtype != k.DType {
			k.DType = "mixed"
		}
		if a := t.Activity; a != nil {
			rows.add(float64(a.RowToggles.Total()), float64(a.RowPairs()))
			if p := t.packed; p != nil {
				memory.add(float64(p.MemoryToggles.Total()), float64(t.elements))
			} else {
				memory.add(float64(a.MemoryToggles.Total()), float64(a.MemoryPairs()))
			}
			ones.add(float64(a.Ones.Total()), float64(a.Elements))
			zeros.add(float64(a.Zeros), float64(a.Elements))
		}
		if t.predicted != nil {
			energy.add(float64(t.elements)*t.predicted.Relative, float64(t.elements))
		}
	}
	k.RowToggles, k.MemoryToggles, k.Ones, k.Zeros, k.Relative = rows.value(), memory.value(), ones.value(), zeros.value(), energy.value()
	return k
}
