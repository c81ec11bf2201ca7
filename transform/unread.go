package transform

import (
	"slices"

	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// pruneUnread zeroes outputs that no layer reads any more: where an index runs only through linear
// layers and their biases, and all that read a label have its inputs pruned, the weights of those
// that write it are free.
func (p *planner) pruneUnread() error {
	pruned := map[string]map[int]bool{} // tensor → inputs
	for _, s := range p.plan.Steps {
		if s.Prune != nil {
			pruned[s.Tensor] = map[int]bool{}
			for _, k := range s.Prune.Inputs {
				pruned[s.Tensor][k] = true
			}
		}
	}
	if p.layout == nil || len(pruned) == 0 {
		return nil
	}
	outputs := map[string][]int{}
	for _, ix := range p.layout.Indices {
		readers, writers := p.readers(ix)
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
	for _, info := range p.model.Infos() {
		if list := outputs[info.Name]; len(list) > 0 {
			p.zeroOutputs(info.Name, list)
		}
	}
	return nil
}

// place is where an index's labels are along an axis.
type place struct {
	tensor    string
	positions [][]int
}

// readers and writers of an index; none where anything else than linear layers and biases has it, or
// may have it.
func (p *planner) readers(ix *arch.Index) (readers, writers []place) {
	if ix.Blocked != "" {
		return nil, nil
	}
	for _, u := range ix.Uses {
		claim := p.layout.Claims[u.Tensor]
		at := place{u.Tensor, claim.Axes[u.Axis].Positions(ix.Name)}
		switch {
		case claim.Role == arch.Bias: // what it adds to an output that nobody reads does not matter
		case claim.Role != arch.Linear || len(claim.Axes) != 2:
			return nil, nil
		case u.Axis == claim.OutAxis:
			writers = append(writers, at)
		default:
			readers = append(readers, at)
		}
	}
	return readers, writers
}

// zeroOutputs adds outputs to a layer's step.
func (p *planner) zeroOutputs(tensor string, outputs []int) {
	slices.Sort(outputs)
	outputs = slices.Compact(outputs)
	for i, s := range p.plan.Steps {
		if s.Tensor == tensor && s.Prune != nil {
			// A copy: the step may be one of many that are still being chosen from.
			whole := *s
			whole.Prune = &Prune{s.Prune.Inputs, outputs}
			p.plan.Steps[i] = &whole
			return
		}
	}
	p.plan.Steps = append(p.plan.Steps, &Step{Pass: prunePass.Name, Tensor: tensor, Prune: &Prune{Outputs: outputs}})
}
