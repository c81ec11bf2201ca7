package arch

import (
	"errors"
	"fmt"
	"iter"
	"strings"
)

// checkPartners holds tensors that share an axis by what they are against each other: a linear
// layer's outputs and its bias, a norm's weight and its bias, a norm and the layers that read it.
func (m *model) checkPartners() error {
	var errs []error
	addf := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for _, n := range m.family.norms {
		for _, w := range m.named[n.weight.text] {
			for b := range m.partners(w, n.bias) {
				if b.axis(0) != w.axis(0) {
					addf("norm bias %q: its axis is %q, but the weight's is %q: write the same", b.Name, b.axis(0), w.axis(0))
				}
			}
		}
	}
	for _, t := range m.tensors {
		for b := range m.partners(t, t.tensorDef.bias) {
			if axis := b.axis(len(b.axes) - 1); axis != t.axis(t.Out) {
				addf("bias %q: its axis is %q, but the outputs of %q are %q: write the same", b.Name, axis, t.Name, t.axis(t.Out))
			}
		}
		for w := range m.partners(t, m.family.norms[t.Norm].weight) {
			if !m.reads(t, w) {
				addf("tensor %q: no axis of its inputs goes with %q, the axis of its norm's weight %q, taking - where that takes +", t.Name, w.axis(0), w.Name)
			}
		}
	}
	return errors.Join(errs...)
}

// partners are the tensors of a name that stand in a layer with t.
func (m *model) partners(t *tensor, name pattern) iter.Seq[*tensor] {
	return func(yield func(*tensor) bool) {
		for _, other := range m.named[name.text] {
			if t.meets(other) && !yield(other) {
				return
			}
		}
	}
}

// axis writes one back.
func (t *tensor) axis(i int) string { return describe(t.axes[i]) }

// reads reports whether inputs of t count what the weight of a norm does, and take the inverse of
// what that is scaled by. Signs may pass the norm: the inputs then flip and the weight does not.
func (m *model) reads(t, weight *tensor) bool {
	for i, riders := range t.axes {
		if i == t.Out || unsigned(t.axis(i)) != unsigned(weight.axis(0)) {
			continue
		}
		in, norm := leavesOf(riders), leavesOf(weight.axes[0])
		fits := true
		for j := range in {
			if in[j].slot < 0 {
				continue
			}
			scale := m.family.index(in[j].slot).scale
			if norm[j].sense != 0 || scale != nil && (*scale).holds(m.flags) {
				fits = fits && in[j].sense == -norm[j].sense
			}
		}
		if fits {
			return true
		}
	}
	return false
}

// unsigned is an axis expression without + and -.
func unsigned(axis string) string { return strings.NewReplacer("+", "", "-", "").Replace(axis) }

func leavesOf(riders []*node) (all []*node) {
	for _, r := range riders {
		r.leaves(func(n *node) { all = append(all, n) })
	}
	return all
}
