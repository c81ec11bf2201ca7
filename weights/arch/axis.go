package arch

import (
	"fmt"
	"slices"
)

// Axis maps the positions along one dimension of a tensor to labels of indices. Positions and labels are those of the source
// model. The methods take a function that looks an index up by name, such as "residual" or "layers.3.kv.1.v". For an index
// that does not change, the function returns nil. Otherwise it returns a slice with one entry per label; another length
// panics.
type Axis struct {
	riders []*node // the first decides the order; all have the same length
	space  *space
	coord  []int // the loops' values by slot
}

// Len returns the number of positions.
func (a *Axis) Len() int { return a.riders[0].length }

// String returns the axis' expression, as family files write it.
func (a *Axis) String() string { return describe(a.riders) }

// Indices returns the names of the axis' indices, each once, from left to right.
func (a *Axis) Indices() []string {
	var names []string
	seen := map[*Index]bool{}
	a.each(func(_ *node, x *Index) {
		if !seen[x] {
			seen[x], names = true, append(names, x.Name)
		}
	})
	return names
}

// Gather returns the source position of every position of the result. perm(index)[i] is the source label that moves to place
// i. Gather returns nil if perm returns nil for every index of the axis.
func (a *Axis) Gather(perm func(index string) []int) []int {
	if !a.reached(false, func(index string) bool { return perm(index) != nil }) {
		return nil
	}
	out := make([]int, 0, a.Len())
	w := newWalk(a, func(x *Index) []int { return sized(x, perm(x.Name)) })
	w.order = func(s step[[]int]) []int { return s.data }
	w.run(a.riders[0], func(source int) { out = append(out, source) })
	return out
}

// Signs reports, for every source position, whether the position is multiplied by -1. flip(index)[label] is true for a label that
// is flipped. Signs returns nil if no flip applies to this axis.
func (a *Axis) Signs(flip func(index string) []bool) []bool {
	if !a.reached(true, func(index string) bool { return flip(index) != nil }) {
		return nil
	}
	out := make([]bool, a.Len())
	for _, r := range a.riders {
		w := newWalk(a, func(x *Index) []bool { return sized(x, flip(x.Name)) })
		w.run(r, func(source int) {
			for _, s := range w.trail {
				if s.leaf.sense != 0 && s.data != nil && s.data[s.label] {
					out[source] = !out[source]
				}
			}
		})
	}
	return out
}

// Exps returns, for every source position, the exponent k of its factor 2^k. exp(index)[label] is the exponent of a label;
// "-" in the axis expression negates the exponent. Exps returns nil if no exponent applies to this axis.
func (a *Axis) Exps(exp func(index string) []int) []int {
	if !a.reached(true, func(index string) bool { return exp(index) != nil }) {
		return nil
	}
	out := make([]int, a.Len())
	for _, r := range a.riders {
		w := newWalk(a, func(x *Index) []int { return sized(x, exp(x.Name)) })
		w.run(r, func(source int) {
			for _, s := range w.trail {
				if s.leaf.sense != 0 && s.data != nil {
					out[source] += s.leaf.sense * s.data[s.label]
				}
			}
		})
	}
	return out
}

// reached reports whether touched is true for an index of the axis. If signed is true, only indices with + or - count.
func (a *Axis) reached(signed bool, touched func(index string) bool) bool {
	yes := false
	a.each(func(leaf *node, x *Index) {
		yes = yes || (leaf.sense != 0 || !signed) && touched(x.Name)
	})
	return yes
}

// sized checks that a caller's slice has an entry per label.
func sized[T any](x *Index, s []T) []T {
	if s != nil && len(s) != x.Len {
		panic(fmt.Sprintf("arch: %d entries for index %s, which has %d labels", len(s), x.Name, x.Len))
	}
	return s
}

// Positions lists, for each label of an index, the label's source positions in ascending order. It returns nil if the axis does
// not have the index.
func (a *Axis) Positions(index string) [][]int {
	for _, r := range a.riders {
		var out [][]int
		w := newWalk(a, func(x *Index) bool { return x.Name == index })
		w.run(r, func(source int) {
			for _, s := range w.trail {
				if !s.data {
					continue
				}
				if out == nil {
					out = make([][]int, s.leaf.length)
				}
				out[s.label] = append(out[s.label], source)
			}
		})
		if out != nil {
			return out
		}
	}
	return nil
}

// each calls visit for every occurrence of an index, left to right; an index that occurs in two
// places is visited twice.
func (a *Axis) each(visit func(leaf *node, x *Index)) {
	coord := slices.Clone(a.coord)
	for _, r := range a.riders {
		r.leaves(func(leaf *node) {
			if leaf.slot >= 0 {
				a.space.each(leaf.slot, coord, func(x *Index) { visit(leaf, x) })
			}
		})
	}
}

// walk visits the positions of an axis, with the indices' labels at each position.
type walk[T any] struct {
	axis   *Axis
	coord  []int
	lookup func(*Index) T
	order  func(step[T]) []int // the labels in the order of the visit; nil for 0, 1, 2, …
	trail  []step[T]
}

// step is one index on the way to a position; data is what lookup returned for it.
type step[T any] struct {
	leaf  *node
	label int
	data  T
}

func newWalk[T any](a *Axis, lookup func(*Index) T) *walk[T] {
	return &walk[T]{axis: a, coord: slices.Clone(a.coord), lookup: lookup}
}

// run calls visit with every source position of n.
func (w *walk[T]) run(n *node, visit func(source int)) { w.node(n, 0, visit) }

// node visits the positions of n within position outer of the enclosing node.
func (w *walk[T]) node(n *node, outer int, visit func(int)) {
	base := outer * n.length
	switch {
	case n.op == '*':
		w.product(n.parts, outer, visit)
	case n.op == '|':
		for _, p := range n.parts {
			start := base
			w.node(p, 0, func(inner int) { visit(start + inner) })
			base += p.length
		}
	case n.slot < 0:
		for i := range n.length {
			visit(base + i)
		}
	default:
		w.labels(n, base, visit)
	}
}

func (w *walk[T]) product(parts []*node, outer int, visit func(int)) {
	if len(parts) == 1 {
		w.node(parts[0], outer, visit)
		return
	}
	w.node(parts[0], outer, func(at int) { w.product(parts[1:], at, visit) })
}

// labels visits the labels of an index.
func (w *walk[T]) labels(n *node, base int, visit func(int)) {
	x := w.axis.space.at(n.slot, w.coord)
	depth := len(w.trail)
	w.trail = append(w.trail, step[T]{leaf: n, data: w.lookup(x)})
	var order []int
	if w.order != nil {
		order = w.order(w.trail[depth])
	}
	for i := range n.length {
		label := i
		if order != nil {
			label = order[i]
		}
		w.trail[depth].label, w.coord[n.slot] = label, label
		visit(base + label)
	}
	w.trail = w.trail[:depth]
}
