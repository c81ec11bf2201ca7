package arch

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// embedderName is the file of sentence-transformers. A folder with this file is an embedder, even if config.json names a
// head.
const embedderName = "modules.json"

// Resolve returns the role and axes of every tensor of a model and of an adapter in its folder. With a nil family, [Detect]
// chooses the family. The error is [ErrUnknownFamily] if no family matches, and [ErrConfig] if config.json cannot be read. Every
// other error means that the model contradicts its family (see [Family.Resolve]), or that a quantised checkpoint contradicts
// itself (see [quant.Describe]).
//
// A quantised weight has a claim under its name in an unquantised checkpoint. If its codes cannot follow a change of an
// index, the index is blocked.
func Resolve(m *weights.Model, family *Family) (*Layout, error) {
	q, err := quant.Describe(m)
	if err != nil {
		return nil, err
	}
	return ResolveDescribed(m, family, q)
}

// ResolveDescribed is [Resolve] for a model that is described already: q is the result of [quant.Describe], or nil for a
// model without quantised weights.
func ResolveDescribed(m *weights.Model, family *Family, q *quant.Description) (*Layout, error) {
	if m == nil {
		return nil, weights.ErrNoModel
	}
	if family == nil {
		if m.Config == nil {
			return nil, marked{fmt.Errorf("%s has no config.json", m.Dir), ErrUnknownFamily}
		}
		var err error
		family, err = Detect(m.Config)
		if errors.Is(err, ErrUnknownFamily) {
			return nil, fmt.Errorf("%w; describe the architecture in FILE, and pass --arch FILE", err)
		}
		if err != nil {
			return nil, weights.FileErrorf(m.Dir, "%w", err)
		}
	}
	l, err := family.resolve(m.Config, m.Infos(), q)
	if err != nil {
		return nil, weights.FileErrorf(m.Dir, "does not fit the family %s: %w", family.Name, err)
	}
	if slices.Contains(m.Others, embedderName) {
		l.blockHiddenStates(embedderName + " makes the model's hidden states its outputs")
	}
	if m.Adapter != nil {
		l = l.Adapt(m.AdapterConfig, m.Adapter.Tensors)
	}
	return l, nil
}

// ResolveIfKnown is [Resolve] for callers that can work without a family. If the family is unknown, layout and error are nil. The
// methods [Layout.IsLinear], [Layout.Kind] and [Layout.OutAxis] of a nil layout use a tensor's name and shape.
func ResolveIfKnown(m *weights.Model, family *Family) (*Layout, error) {
	l, err := Resolve(m, family)
	if errors.Is(err, ErrUnknownFamily) {
		err = nil
	}
	return l, err
}

// marked is an error that matches kind in errors.Is and has a text of its own.
type marked struct {
	error
	kind error
}

func (m marked) Is(target error) bool { return target == m.kind }

func (m marked) Unwrap() error { return m.error }

// Resolve returns the role and axes of every tensor of a checkpoint, from the names and shapes in its headers. tensors are the
// tensors of all its files, in any order.
//
// Resolve returns an error if config.json lacks a number or has an impossible one; if a tensor is missing, is listed twice,
// belongs to a layer that config.json does not have, or differs in shape from config.json; or if the family contradicts itself,
// for example by an index on more axes than the family states. The error lists the first problems, one line each, with the
// tensor's name. An unclaimed tensor is not an error: Layout.Unclaimed lists the tensor, and the indices that the tensor may
// share are blocked (Index.Blocked).
func (f *Family) Resolve(configJSON []byte, tensors []weights.Info) (*Layout, error) {
	return f.resolve(configJSON, tensors, nil)
}

func (f *Family) resolve(configJSON []byte, tensors []weights.Info, q *quant.Description) (*Layout, error) {
	m, err := f.read(configJSON)
	if err != nil {
		return nil, err
	}
	r := &resolver{model: m, space: m.space, names: map[string]*weights.Info{}, quantised: q}
	tensors = r.logical(tensors)
	for i := range tensors {
		t := &tensors[i]
		if r.names[t.Name] != nil {
			r.addf("tensor %q: is listed twice", t.Name)
		}
		r.names[t.Name] = t
	}
	r.choosePrefix()
	r.match()
	r.findMissing()
	if len(r.problems) > 0 {
		return nil, errors.Join(r.problems...)
	}
	l := r.layout()
	r.blockQuantised(l)
	block(l, r.unknown(), r.found)
	return l, nil
}

// maxProblems is the largest number of problems that an error lists.
const maxProblems = 8

// resolver is the state of one call of Resolve.
type resolver struct {
	model     *model
	space     *space
	names     map[string]*weights.Info
	prefix    prefix
	patterns  map[string][]*tensor // by outline of the name
	found     []*found
	place     map[*tensor]int
	claimed   map[string]bool
	unclaimed []string
	problems  []error
	quantised *quant.Description
}

// found is a tensor of the checkpoint that the family knows.
type found struct {
	*tensor
	info      *weights.Info
	order     int   // place in the family file
	coord     []int // the loops' values by slot
	quantised *quant.Quantised
	format    string // see Claim.Quantised
}

func (r *resolver) addf(format string, args ...any) {
	switch n := len(r.problems); {
	case n < maxProblems:
		r.problems = append(r.problems, fmt.Errorf(format, args...))
	case n == maxProblems:
		r.problems = append(r.problems, errors.New("and more problems"))
	}
}

// choosePrefix chooses the prefix under which most names are known, and the earlier of two equal prefixes.
func (r *resolver) choosePrefix() {
	best := -1
	zeros := make([]int, len(r.model.size))
	outlines := map[string]int{} // number of names by outline
	for name := range r.names {
		outlines[weights.Outline(name)]++
	}
	for _, prefix := range r.model.family.prefixes {
		patterns := map[string][]*tensor{}
		for _, t := range r.model.tensors {
			o := weights.Outline(t.pattern.name(prefix, zeros))
			patterns[o] = append(patterns[o], t)
		}
		known := 0
		for outline, names := range outlines {
			if patterns[outline] != nil {
				known += names
			}
		}
		if known > best {
			best, r.prefix, r.patterns = known, prefix, patterns
		}
	}
}

// match looks up every tensor of the checkpoint in the family.
func (r *resolver) match() {
	r.place = map[*tensor]int{}
	for i, t := range r.model.tensors {
		r.place[t] = i
	}
	r.claimed = map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(r.names)) {
		t, coord := r.lookup(name)
		if t == nil {
			if _, ok := r.quantised.Weight(name); !ok {
				r.unclaimed = append(r.unclaimed, name)
			}
			continue
		}
		r.checkShape(t, r.names[name])
		w, format := (*quant.Quantised)(nil), ""
		if found, ok := r.quantised.Weight(name); ok {
			w, format = found, found.Format.String()
		}
		r.find(t, r.names[name], coord, w, format)
	}
}

func (r *resolver) find(t *tensor, info *weights.Info, coord []int, quantised *quant.Quantised, format string) {
	r.claimed[info.Name] = true
	r.found = append(r.found, &found{t, info, r.place[t], coord, quantised, format})
}

// lookup returns the family's tensor of a name; nil if there is none. It records a problem if the name belongs to a layer that
// config.json does not have.
func (r *resolver) lookup(name string) (*tensor, []int) {
	for _, t := range r.patterns[weights.Outline(name)] {
		coord := make([]int, len(r.model.size))
		if !t.pattern.match(r.prefix, name, coord) {
			continue
		}
		for _, slot := range t.pattern.vars {
			if count := r.model.size[slot]; coord[slot] >= count {
				loop := r.model.family.loops[slot]
				if loop.beyond {
					return nil, nil
				}
				d, _ := loop.count.eval(r.model.dims)
				r.addf("tensor %q: belongs to %s %d, but config.json says %s (0 to %d)", name, loop.name, coord[slot], d, count-1)
				return nil, nil
			}
		}
		if first := t.variable(0); first < 0 || coord[first] >= t.from && coord[first] < t.to {
			return t, coord
		}
	}
	return nil, nil
}

func (r *resolver) checkShape(t *tensor, info *weights.Info) {
	name, has, ok := info.Name, "has", slices.Equal(info.Shape, t.shape())
	if w, is := r.quantised.Weight(info.Name); is {
		name, has, ok = w.Tensors[0].Name, "holds a weight of", holds(t, w)
	}
	if t.role == Buffer || ok {
		return
	}
	axes := ""
	for i, riders := range t.axes {
		if i > 0 {
			axes += " × "
		}
		axes += describe(riders)
	}
	r.addf("tensor %q: %s shape %v, but config.json says %v (%s)", name, has, info.Shape, t.shape(), axes)
}

// findMissing records a problem for every required tensor that is missing. The weights of a module that is quantised in an
// unknown way are assumed to be present.
func (r *resolver) findMissing() {
	opaque := r.opaque()
	r.model.expected(func(t *tensor, coord []int) bool {
		switch name := t.pattern.name(r.prefix, coord); {
		case t.Optional || r.claimed[name]:
		case opaque[parent(name)] != "":
			r.find(t, &weights.Info{Name: name, Shape: t.shape()}, slices.Clone(coord), nil, opaque[parent(name)])
		default:
			r.addf("tensor %q: is missing, but config.json requires it", name)
		}
		return len(r.problems) <= maxProblems
	})
}

// layout makes the claims and, from their axes, the indices, in the order of the family file.
func (r *resolver) layout() *Layout {
	slices.SortFunc(r.found, func(a, b *found) int {
		return cmp.Or(cmp.Compare(a.order, b.order), slices.Compare(a.coord, b.coord))
	})
	l := &Layout{Family: r.model.family.Name, Dims: map[string]int{}, Claims: map[string]*Claim{},
		Unclaimed: r.unclaimed, Quantised: r.quantised, byName: map[string]*Index{}}
	for name, d := range r.model.dims {
		l.Dims[name] = d.value
	}
	for _, f := range r.found {
		c := r.claim(f)
		l.Claims[c.Name] = c
		for i, a := range c.Axes {
			a.each(func(leaf *node, x *Index) { x.use(c.Name, i, leaf.sense != 0) })
		}
	}
	for _, instances := range r.space.made {
		for _, x := range instances {
			if x != nil {
				l.Indices = append(l.Indices, x)
				l.byName[x.Name] = x
			}
		}
	}
	r.markCached(l)
	return l
}

// use records an axis that carries the index. All occurrences on one axis are recorded one after the other.
func (x *Index) use(tensor string, axis int, signed bool) {
	if n := len(x.Uses); n > 0 && x.Uses[n-1].Tensor == tensor && x.Uses[n-1].Axis == axis {
		x.Uses[n-1].Signed = x.Uses[n-1].Signed || signed
		return
	}
	x.Uses = append(x.Uses, Use{tensor, axis, signed})
}

func (r *resolver) claim(f *found) *Claim {
	c := &Claim{Name: f.info.Name, Kind: f.pattern.kind(r.model.family.prefixes[0]), Layer: -1, Role: f.role, OutAxis: f.Out, Softmax: f.Softmax, NormKind: f.normKind, Quantised: f.format}
	if first := f.variable(0); first >= 0 {
		c.Layer = f.coord[first]
	}
	if f.role == Buffer {
		for _, n := range f.info.Shape {
			plain := &node{op: 'a', slot: -1, text: fmt.Sprint(n), length: n}
			c.Axes = append(c.Axes, &Axis{riders: []*node{plain}})
		}
		return c
	}
	for _, riders := range f.axes {
		c.Axes = append(c.Axes, &Axis{riders, r.space, f.coord})
	}
	if f.quantised != nil && outputsFirst(f.tensor, f.quantised) {
		slices.Reverse(c.Axes)
		c.OutAxis = 0
	}
	c.Bias = r.present(f.tensorDef.bias, f.coord)
	if f.tensorDef.Norm != "" {
		n := r.model.family.norms[f.tensorDef.Norm]
		if weight := r.present(n.weight, f.coord); weight != "" {
			c.Norm = &NormRef{n.kind, weight, r.present(n.bias, f.coord)}
		}
	}
	return c
}

// present returns the name of a tensor if the checkpoint has the tensor; empty otherwise.
func (r *resolver) present(p pattern, coord []int) string {
	if name := p.name(r.prefix, coord); r.claimed[name] {
		return name
	}
	return ""
}
