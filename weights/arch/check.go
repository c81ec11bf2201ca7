package arch

import (
	"errors"
	"fmt"
	"iter"
	"strings"
)

// tally counts the axes that carry an instance of an index.
type tally struct {
	axes        int // axes of linear and embedding tensors that carry the instance
	last        int // the axis that was counted last
	plus, minus int // places with + and with - on the index
}

// checkUses compares the number of axes of every index with the number that the family gives. This finds tensors and axes that
// the family file lacks, and signs and scales that do not cancel in this model.
func (m *model) checkUses() error {
	tallies, axis := map[*Index]*tally{}, 0
	m.expected(func(t *tensor, coord []int) bool {
		if t.Optional {
			return true
		}
		for _, riders := range t.axes {
			axis++
			a := Axis{riders, m.space, coord}
			a.each(func(leaf *node, x *Index) {
				y := tallies[x]
				if y == nil {
					y = &tally{}
					tallies[x] = y
				}
				if y.last != axis && (t.role == Linear || t.role == Embedding) {
					y.axes, y.last = y.axes+1, axis
				}
				switch leaf.sense {
				case 1:
					y.plus++
				case -1:
					y.minus++
				}
			})
		}
		return true
	})
	var errs []error
	for slot, instances := range m.space.made {
		errs = append(errs, m.checkInstances(slot, instances, tallies))
	}
	return errors.Join(errs...)
}

// checkInstances returns an error for the first instance at a slot whose axes differ from the family's uses.
func (m *model) checkInstances(slot int, instances []*Index, tallies map[*Index]*tally) error {
	for _, x := range instances {
		if x == nil {
			continue
		}
		y := tallies[x]
		switch {
		case x.Scale && (y.plus == 0 || y.minus == 0):
			return fmt.Errorf("index %s: scales cannot cancel, because this model has no axis with +%s or none with -%[2]s: fix the axes, or the condition \"scale\"", x.Name, x.Kind)
		case x.Sign && y.plus+y.minus < 2:
			return fmt.Errorf("index %s: signs cannot cancel, because this model has fewer than two axes with +%s or -%[2]s: fix the axes, or the condition \"sign\"", x.Name, x.Kind)
		}
		uses := m.family.index(slot).uses
		if uses == nil {
			continue
		}
		want, err := uses.eval(m.dims)
		if err != nil {
			return fmt.Errorf("config.json: %w (in \"uses\" of index %q)", err, x.Kind)
		}
		if y.axes != want.value {
			return fmt.Errorf("index %s: is on %d axes of linear and embedding tensors, but \"uses\" is %s: fix the axes, or \"uses\"", x.Name, y.axes, want)
		}
	}
	return nil
}

// checkPartners compares the axes of tensors that must share an axis: a linear layer's outputs and its bias, a norm's weight
// and its bias, a norm and the layers that read it.
func (m *model) checkPartners() error {
	var errs []error
	addf := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for _, n := range m.family.norms {
		for _, w := range m.named[n.weight.text] {
			for b := range m.partners(w, n.bias) {
				if b.axis(0) != w.axis(0) {
					addf("norm bias %q: its axis is %q, but the weight's axis is %q: give both the same axis", b.Name, b.axis(0), w.axis(0))
				}
			}
		}
	}
	for _, t := range m.tensors {
		for b := range m.partners(t, t.tensorDef.bias) {
			if axis := b.axis(len(b.axes) - 1); axis != t.axis(t.Out) {
				addf("bias %q: its axis is %q, but the output axis of %q is %q: give both the same axis", b.Name, axis, t.Name, t.axis(t.Out))
			}
		}
		for w := range m.partners(t, m.family.norms[t.Norm].weight) {
			if !m.reads(t, w) {
				addf("tensor %q: needs an input axis like %q, the axis of its norm's weight %q, but with - in place of +", t.Name, w.axis(0), w.Name)
			}
		}
	}
	return errors.Join(errs...)
}

// partners yields the tensors of a name that are in the same layer as t.
func (m *model) partners(t *tensor, name pattern) iter.Seq[*tensor] {
	return func(yield func(*tensor) bool) {
		for _, other := range m.named[name.text] {
			if t.overlaps(other) && !yield(other) {
				return
			}
		}
	}
}

// axis returns the expression of axis i.
func (t *tensor) axis(i int) string { return describe(t.axes[i]) }

// reads reports whether t has an input axis like that of a norm's weight, with the inverse scales. Signs may pass the norm:
// they then apply to the inputs and not to the norm's weight.
func (m *model) reads(t, weight *tensor) bool {
	axis := unsigned(weight.axis(0))
	for i, riders := range t.axes {
		if i == t.Out || unsigned(t.axis(i)) != axis {
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

// unsigned returns an axis expression without + and -.
func unsigned(axis string) string { return withoutSigns.Replace(axis) }

var withoutSigns = strings.NewReplacer("+", "", "-", "")

func leavesOf(riders []*node) (all []*node) {
	for _, r := range riders {
		r.leaves(func(n *node) { all = append(all, n) })
	}
	return all
}
