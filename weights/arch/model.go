package arch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
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

// tensor is a tensorDef whose condition holds, with its lengths.
type tensor struct {
	*tensorDef
	axes     [][]*node
	from, to int // the range of the first variable
}

// shape is what the config says the tensor's shape is.
func (t *tensor) shape() []int {
	shape := make([]int, len(t.axes))
	for i, riders := range t.axes {
		shape[i] = riders[0].length
	}
	return shape
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

// readTensors selects the tensors that apply and fills in their lengths.
func (m *model) readTensors() error {
	total, places := 0, 0
	m.named = map[string][]*tensor{}
	for _, def := range m.family.tensors {
		if !def.when.holds(m.flags) || m.taken(def) {
			continue
		}
		t, err := m.newTensor(def)
		if err == nil {
			err = m.checkRanges(t)
		}
		if err != nil {
			return fmt.Errorf("config.json: %w (for tensor %q)", err, def.Name)
		}
		m.tensors = append(m.tensors, t)
		m.named[t.Name] = append(m.named[t.Name], t)
		if total += m.count(def.pattern.vars); total > maxInstances {
			return fmt.Errorf("config.json: asks for more than %d tensors (such as %q)", maxInstances, def.Name)
		}
		if places += m.places(t); places > maxPlaces {
			return fmt.Errorf("config.json: asks for indices in more than %d places (such as in %q)", maxPlaces, def.Name)
		}
	}
	return nil
}

// places counts where instances of indices stand in all tensors of an entry.
func (m *model) places(t *tensor) int {
	n := 0
	for _, riders := range t.axes {
		for _, leaf := range leavesOf(riders) {
			if leaf.slot >= 0 {
				n += m.count(m.family.inner(leaf.slot))
			}
		}
	}
	return n * m.count(t.pattern.vars)
}

// taken reports whether an earlier entry has the tensor's name for the whole loop.
func (m *model) taken(def *tensorDef) bool {
	return slices.ContainsFunc(m.named[def.Name], func(t *tensor) bool { return t.tensorDef.from == nil && t.tensorDef.to == nil })
}

// checkRanges holds a tensor's range against those of earlier entries of its name: no layer may
// have two.
func (m *model) checkRanges(t *tensor) error {
	for _, other := range m.named[t.Name] {
		if t.meets(other) {
			return fmt.Errorf("its range %d to %d overlaps %d to %d, that of an earlier entry of the same name", t.from, t.to, other.from, other.to)
		}
	}
	return nil
}

// meets reports whether two tensors stand in a layer together, or one of them in all.
func (t *tensor) meets(other *tensor) bool {
	a, b := t.variable(0), other.variable(0)
	return a < 0 || b < 0 || a != b || max(t.from, other.from) < min(t.to, other.to)
}

func (m *model) newTensor(def *tensorDef) (*tensor, error) {
	t := &tensor{tensorDef: def}
	for _, slot := range def.pattern.vars {
		if err := m.measure(slot); err != nil {
			return nil, err
		}
	}
	for _, riders := range def.axes {
		sized, err := m.sizeAxis(riders)
		if err != nil {
			return nil, err
		}
		t.axes = append(t.axes, sized)
	}
	return t, m.setRange(t)
}

// sizeAxis fills in the lengths of an axis' riders, which must agree.
func (m *model) sizeAxis(riders []*node) ([]*node, error) {
	var sized []*node
	var err error
	for _, r := range riders {
		r.leaves(func(n *node) {
			if n.slot >= 0 && err == nil {
				err = m.measure(n.slot)
			}
		})
		if err != nil {
			return nil, err
		}
		s, err := r.withLengths(m)
		if err != nil {
			return nil, fmt.Errorf("axis %q: %w", describe(riders), err)
		}
		sized = append(sized, s)
		if s.length == 0 {
			return nil, fmt.Errorf("axis %q: its length must be at least 1", describe(riders))
		}
		if s.length != sized[0].length {
			return nil, fmt.Errorf("axis %q: the parts joined by \"&\" have lengths %d and %d", describe(riders), sized[0].length, s.length)
		}
	}
	return sized, nil
}

// setRange evaluates the range of the first variable.
func (m *model) setRange(t *tensor) error {
	if len(t.pattern.vars) == 0 {
		return nil
	}
	count := m.size[t.pattern.vars[0]]
	t.to = count
	for _, end := range []struct {
		expr *arith
		at   *int
	}{{t.tensorDef.from, &t.from}, {t.tensorDef.to, &t.to}} {
		if end.expr == nil {
			continue
		}
		v, err := end.expr.eval(m.dims)
		if err != nil {
			return err
		}
		*end.at = v.value
	}
	if t.from > t.to || t.to > count {
		return fmt.Errorf("the range %d to %d does not lie in 0 to %d", t.from, t.to, count)
	}
	return nil
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

// expected calls visit for every tensor that the config asks for, layer by layer, until it
// returns false. coord holds the loops' values by slot, and belongs to expected.
func (m *model) expected(visit func(t *tensor, coord []int) bool) {
	m.expect(m.tensors, 0, make([]int, len(m.size)), visit)
}

// expect runs over tensors whose first depth variables are fixed. Neighbours with the same next
// variable run through it together.
func (m *model) expect(ts []*tensor, depth int, coord []int, visit func(*tensor, []int) bool) bool {
	for len(ts) > 0 {
		slot, n := ts[0].variable(depth), 1
		if slot < 0 {
			if !visit(ts[0], coord) {
				return false
			}
			ts = ts[1:]
			continue
		}
		for n < len(ts) && ts[n].variable(depth) == slot {
			n++
		}
		for v := range m.size[slot] {
			coord[slot] = v
			if !m.expect(inRange(ts[:n], depth, v), depth+1, coord, visit) {
				return false
			}
		}
		ts = ts[n:]
	}
	return true
}

// variable is the slot of the variable at depth; -1 where the name has no more.
func (t *tensor) variable(depth int) int {
	if depth < len(t.pattern.vars) {
		return t.pattern.vars[depth]
	}
	return -1
}

// inRange leaves out the tensors whose first variable does not take the value v.
func inRange(ts []*tensor, depth, v int) []*tensor {
	if depth > 0 {
		return ts
	}
	var in []*tensor
	for _, t := range ts {
		if v >= t.from && v < t.to {
			in = append(in, t)
		}
	}
	return in
}
