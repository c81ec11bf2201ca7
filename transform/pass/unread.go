package pass

import (
	"slices"

	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// zeroUnreadOutputs zeroes the outputs that no layer reads after pruning. The index of such an output must run only
// through linear layers and their biases, and all layers that read the label must have pruned the label's inputs.
func zeroUnreadOutputs(m *Model, steps []*plan.Step) ([]*plan.Step, error) {
	pruned := map[string]map[int]bool{} // tensor → inputs
	for _, s := range steps {
		if s.Pass != pruneName {
			continue
		}
		d, err := plan.Data[Pruned](s)
		if err != nil {
			return nil, err
		}
		pruned[s.Tensor] = map[int]bool{}
		for _, k := range d.Inputs {
			pruned[s.Tensor][k] = true
		}
	}
	if m.Layout == nil || len(pruned) == 0 {
		return steps, nil
	}
	outputs := map[string][]int{}
	for _, ix := range m.Layout.Indices {
		readers, writers := m.readers(ix)
		if len(readers) == 0 {
			continue
		}
		for label := range ix.Len {
			unread := !slices.ContainsFunc(readers, func(r place) bool {
				return slices.ContainsFunc(r.positions[label], func(k int) bool { return !pruned[r.tensor][k] })
			})
			for _, w := range writers {
				if unread {
					outputs[w.tensor] = append(outputs[w.tensor], w.positions[label]...)
				}
			}
		}
	}
	steps = slices.Clone(steps)
	for _, w := range m.Weights.All {
		if list := outputs[w.Name]; len(list) > 0 {
			slices.Sort(list)
			steps = zeroOutputs(steps, w.Name, slices.Compact(list))
		}
	}
	return steps, nil
}

// place is an axis along which an index's labels run.
type place struct {
	tensor    string
	positions [][]int
}

// readers returns the layers that read and write an index. Both are nil if other tensors than linear layers and
// biases have, or may have, the index.
func (m *Model) readers(ix *arch.Index) (readers, writers []place) {
	if ix.Blocked != "" {
		return nil, nil
	}
	for _, u := range ix.Uses {
		claim := m.Layout.Claims[u.Tensor]
		at := place{u.Tensor, claim.Axes[u.Axis].Positions(ix.Name)}
		switch {
		case claim.Role == arch.Bias: // adding a bias to an unread output has no effect
		case claim.Role != arch.Linear || len(claim.Axes) != 2 || claim.Quantised != "":
			return nil, nil
		case u.Axis == claim.OutAxis:
			writers = append(writers, at)
		default:
			readers = append(readers, at)
		}
	}
	return readers, writers
}

// Freed returns the number of weights in other layers that become zero if one input of this layer is pruned. These are
// the weights of the outputs that write the input, if no other layer reads the input.
func (m *Model) Freed(tensor string) float64 {
	if m.Layout == nil {
		return 0
	}
	claim := m.Layout.Claims[tensor]
	if claim == nil || len(claim.Axes) != 2 {
		return 0
	}
	n := 0.0
	for _, name := range claim.Axes[1-claim.OutAxis].Indices() {
		readers, writers := m.readers(m.Layout.Index(name))
		if len(readers) != 1 || len(readers[0].positions) == 0 || len(readers[0].positions[0]) != 1 {
			continue // one input alone frees nothing
		}
		for _, w := range writers {
			t, _ := m.Weights.Weight(w.tensor)
			axes := m.Layout.Claims[w.tensor]
			n += float64(t.Rows*t.Cols) / float64(axes.Axes[axes.OutAxis].Len())
		}
	}
	return n
}

// zeroOutputs adds outputs to a layer's step. It copies the step, because the given steps may belong to several
// candidates.
func zeroOutputs(steps []*plan.Step, tensor string, outputs []int) []*plan.Step {
	for i, s := range steps {
		if s.Tensor == tensor && s.Pass == pruneName {
			d, _ := plan.Data[Pruned](s) // decoding succeeded before
			steps[i] = &plan.Step{Pass: pruneName, Tensor: tensor, Data: Pruned{d.Inputs, outputs}}
			return steps
		}
	}
	return append(steps, &plan.Step{Pass: pruneName, Tensor: tensor, Data: Pruned{Outputs: outputs}})
}
