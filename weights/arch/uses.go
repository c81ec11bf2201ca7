package arch

import (
	"errors"
	"fmt"
)

// tally is where an instance of an index stands.
type tally struct {
	axes        int // of linear and embedding tensors
	last        int // the axis that was counted last
	plus, minus int // places with its signs and scales, by +1 and by -1
}

// checkUses holds the places where every instance of an index stands against what the family
// says: a tensor that the family forgot, or an axis that forgot an index, shows here. Signs and
// scales that nothing cancels in this model are found, too.
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

// checkInstances reports the first instance at a slot that does not stand where it should.
func (m *model) checkInstances(slot int, instances []*Index, tallies map[*Index]*tally) error {
	for _, x := range instances {
		if x == nil {
			continue
		}
		y := tallies[x]
		switch {
		case x.Scale && (y.plus == 0 || y.minus == 0):
			return fmt.Errorf("index %s: its scale finds no axis with +%s and one with -%[2]s in this model: mend its axes or its condition", x.Name, x.Kind)
		case x.Sign && y.plus+y.minus < 2:
			return fmt.Errorf("index %s: its sign finds fewer than two axes with +%s or -%[2]s in this model: mend its axes or its condition", x.Name, x.Kind)
		}
		uses := m.family.index(slot).uses
		if uses == nil {
			continue
		}
		want, err := uses.eval(m.dims)
		if err != nil {
			return fmt.Errorf("config.json: %w (for the uses of index %q)", err, x.Kind)
		}
		if y.axes != want.value {
			return fmt.Errorf("index %s: stands on %d axes of linear and embedding tensors, but the family says %s: mend its axes or its uses", x.Name, y.axes, want)
		}
	}
	return nil
}
