package arch

import (
	"errors"
	"fmt"
	"strings"
)

// maxInstances bounds the number of tensors, and of instances of one index, in a model. Real models have far fewer, and this
// many fit in memory.
const maxInstances = 1 << 18

// maxPlaces bounds the number of axes that carry an instance of an index, counted once for each instance.
const maxPlaces = 1 << 24

// model is a family with the numbers of one config.json filled in.
type model struct {
	family  *Family
	config  config
	flags   map[string]bool
	dims    map[string]dim
	size    []int                // by slot: a loop's count or an index's length; 0 if this model has none
	tensors []*tensor            // tensors of this model, in the family's order
	named   map[string][]*tensor // tensors by name; entries share a name if each has a part of a loop
	space   *space               // with the indices of all required tensors
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

// measure computes the size of a slot, and of the slots in its "per".
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
		return fmt.Errorf("the model would have more than %d instances of index %q", maxInstances, f.slotName(slot))
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

// readDims reads all dims. It stops computing at the first dim without a value, because others depend on it, but still checks the
// fields of all dims.
func (m *model) readDims() error {
	var errs []error
	for i := range m.family.dims {
		d := &m.family.dims[i]
		if _, done := m.dims[d.Name]; done || !d.when.holds(m.flags) {
			continue
		}
		v, err := m.readDim(d, len(errs) > 0)
		if err != nil {
			errs = append(errs, err)
		} else if v.source != "" {
			m.dims[d.Name] = v
		}
	}
	return errors.Join(errs...)
}

// readDim reads a dim from its fields, or computes the dim if no field is present. With fieldsOnly, nothing is computed, and the
// dim has no source.
func (m *model) readDim(d *dimDef, fieldsOnly bool) (dim, error) {
	least := 1
	if d.Min != nil {
		least = *d.Min
	}
	if field, v, ok := m.config.first(d.Fields); ok && d.of == nil {
		n, err := length(field, v, least)
		return dim{n, field}, err
	} else if ok && fieldsOnly {
		_, err := fraction(field, v)
		return dim{}, err
	} else if ok {
		return m.readFraction(d, field, v, least)
	}
	if d.value == nil {
		return dim{}, fmt.Errorf("config.json: %s is missing", strings.Join(d.Fields, " or "))
	}
	if fieldsOnly {
		return dim{}, nil
	}
	v, err := d.value.eval(m.dims)
	if err != nil {
		return dim{}, fmt.Errorf("config.json: %w", err)
	}
	if v.value < least {
		return dim{}, fmt.Errorf("config.json: %s (%s) is %d, less than %d", d.Name, v.source, v.value, least)
	}
	// For a dim that only renames another, the message names the field, because users can change only that.
	if d.value.op != 'a' {
		v.source = d.Name
	}
	return v, nil
}

// readFraction reads a dim that a field gives as a fraction of another number, rounded down.
func (m *model) readFraction(d *dimDef, field string, v any, least int) (dim, error) {
	f, err := fraction(field, v)
	if err != nil {
		return dim{}, err
	}
	whole, err := d.of.eval(m.dims)
	if err != nil {
		return dim{}, fmt.Errorf("config.json: %w", err)
	}
	n := int(f * float64(whole.value))
	if n < least {
		return dim{}, fmt.Errorf("config.json: %s (%s of %s) is %d, less than %d", d.Name, field, whole, n, least)
	}
	return dim{n, d.Name}, nil
}
