package arch

import (
	"errors"
	"fmt"
	"strings"
)

// readDims stops at the first dim that has no value, since others depend on it, but looks at the
// fields of all.
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

// readDim reads a dim from its fields or computes it; fieldsOnly leaves out the computing, and
// returns no source then.
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
	// A plain renaming keeps the name of the field, which is what the reader can change.
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
