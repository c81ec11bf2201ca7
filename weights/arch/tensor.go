package arch

import (
	"fmt"
	"slices"
)

// tensor is a tensorDef whose condition holds, with its lengths.
type tensor struct {
	*tensorDef
	axes     [][]*node
	from, to int // the range of the first variable
}

// shape returns the tensor's shape by config.json.
func (t *tensor) shape() []int {
	shape := make([]int, len(t.axes))
	for i, riders := range t.axes {
		shape[i] = riders[0].length
	}
	return shape
}

// readTensors selects the tensors whose conditions hold, and fills in their lengths.
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
			return fmt.Errorf("config.json: the model would have more than %d tensors (counted up to %q)", maxInstances, def.Name)
		}
		if places += m.places(t); places > maxPlaces {
			return fmt.Errorf("config.json: the model would have indices in more than %d places (counted up to tensor %q)", maxPlaces, def.Name)
		}
	}
	return nil
}

// places returns the number of axes that carry an instance of an index, over all tensors of an entry. An axis counts once for
// each instance.
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

// checkRanges returns an error if a tensor's range overlaps the range of an earlier entry of the same name.
func (m *model) checkRanges(t *tensor) error {
	for _, other := range m.named[t.Name] {
		if t.overlaps(other) {
			return fmt.Errorf("the range %d to %d (\"from\", \"to\") overlaps the range %d to %d of an earlier entry with the same name", t.from, t.to, other.from, other.to)
		}
	}
	return nil
}

// overlaps reports whether the ranges of two tensors share a layer. A tensor without a range is in all layers.
func (t *tensor) overlaps(other *tensor) bool {
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

// setRange computes the range of the first variable.
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
		return fmt.Errorf("the range %d to %d (\"from\", \"to\") is not within 0 to %d", t.from, t.to, count)
	}
	return nil
}

// variable returns the slot of the name's variable at depth; -1 if the name has fewer variables.
func (t *tensor) variable(depth int) int {
	if depth < len(t.pattern.vars) {
		return t.pattern.vars[depth]
	}
	return -1
}
