package arch

import (
	"errors"
	"fmt"
)

// maxInstances bounds how many tensors, and how many instances of one index, a config.json may
// ask for: a number that is far beyond every model and that memory can bear.
const maxInstances = 1 << 18

// maxPlaces bounds in how many places of tensors instances of indices may stand, all in all.
const maxPlaces = 1 << 24

// model is a family with the numbers of one config.json filled in.
type model struct {
	family  *Family
	config  config
	flags   map[string]bool
	dims    map[string]dim
	size    []int                // by slot: a loop's count or an index's length; 0 where there is nothing to count
	tensors []*tensor            // those that apply, in the family's order
	named   map[string][]*tensor // the same by name: several share one where they have parts of a loop
	space   *space               // with the indices of all that must be there
}

// read fills in a family's numbers.
func (f *Family) read(configJSON []byte) (*model, error) {
	c, err := readConfig(configJSON)
	if err != nil {
		return nil, err
	}
	m := &model{family: f, config: c, flags: map[string]bool{}, dims: map[string]dim{},
		size: make([]int, len(f.loops)+len(f.indices))}
	if err := errors.Join(m.readFlags(), m.readDims()); err != nil {
		return nil, err
	}
	if err := m.readTensors(); err != nil {
		return nil, err
	}
	m.space = newSpace(m)
	return m, errors.Join(m.checkPartners(), m.checkUses())
}

func (m *model) readFlags() error {
	var errs []error
	for i := range m.family.flags {
		f := &m.family.flags[i]
		v, err := m.config.flag(f)
		m.flags[f.Name] = v
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// measure evaluates a slot's size, and that of the slots it is counted per.
func (m *model) measure(slot int) error {
	if m.size[slot] > 0 {
		return nil
	}
	f := m.family
	isLoop := slot < len(f.loops)
	var expr *arith
	if isLoop {
		expr = f.loops[slot].count
	} else {
		expr = f.index(slot).length
	}
	d, err := expr.eval(m.dims)
	if err != nil {
		return err
	}
	if isLoop && d.value < 1 {
		return fmt.Errorf("%s: the count of %q must be at least 1", d, f.slotName(slot))
	}
	if isLoop && d.value > maxInstances {
		return fmt.Errorf("%s is more than %d", d, maxInstances)
	}
	m.size[slot] = d.value
	if isLoop {
		return nil
	}
	for _, p := range f.index(slot).per {
		if err := m.measure(p); err != nil {
			return err
		}
	}
	if m.count(f.index(slot).per) > maxInstances {
		return fmt.Errorf("asks for more than %d instances of index %q", maxInstances, f.slotName(slot))
	}
	return nil
}

// count multiplies sizes, stopping beyond maxInstances.
func (m *model) count(slots []int) int {
	n := 1
	for _, s := range slots {
		if n *= m.size[s]; n > maxInstances {
			return maxInstances + 1
		}
	}
	return n
}
