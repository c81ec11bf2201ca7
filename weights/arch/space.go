package arch

import (
	"strconv"
	"strings"
)

// space holds the instances of a model's indices.
type space struct {
	model *model
	made  [][]*Index // by slot, then by the values of the slots in "per"
}

func newSpace(m *model) *space { return &space{m, make([][]*Index, len(m.size))} }

// at returns the instance at these coordinates, and makes the instance at the first call. Once a Layout is complete, all
// instances exist, and at only reads.
func (s *space) at(slot int, coord []int) *Index {
	def := s.model.family.index(slot)
	if s.made[slot] == nil {
		s.made[slot] = make([]*Index, s.model.count(def.per))
	}
	ordinal := 0
	for _, p := range def.per {
		ordinal = ordinal*s.model.size[p] + coord[p]
	}
	x := s.made[slot][ordinal]
	if x == nil {
		x = s.make(slot, coord)
		s.made[slot][ordinal] = x
	}
	return x
}

func (s *space) make(slot int, coord []int) *Index {
	f := s.model.family
	def := f.index(slot)
	allowed := func(y symmetry) bool { return y != nil && (*y).holds(s.model.flags) }
	var name strings.Builder
	for _, p := range def.per {
		name.WriteString(f.slotName(p))
		if p < len(f.loops) {
			name.WriteByte('s')
		}
		name.WriteString("." + strconv.Itoa(coord[p]) + ".")
	}
	return &Index{
		Name: name.String() + def.Name, Kind: def.Name, Len: s.model.size[slot],
		Permute: allowed(def.permute), Sign: allowed(def.sign), Scale: allowed(def.scale),
		global: len(def.per) == 0,
	}
}

// each calls visit for all instances at a slot whose loops have the values in coord. It also uses coord as scratch space for the
// indices' coordinates.
func (s *space) each(slot int, coord []int, visit func(*Index)) {
	inner := s.model.family.inner(slot)
	var run func(int)
	run = func(i int) {
		if i == len(inner) {
			visit(s.at(slot, coord))
			return
		}
		for c := range s.model.size[inner[i]] {
			coord[inner[i]] = c
			run(i + 1)
		}
	}
	run(0)
}

// inner returns the slots of the indices in "per" of the index at slot.
func (f *Family) inner(slot int) (inner []int) {
	for _, p := range f.index(slot).per {
		if p >= len(f.loops) {
			inner = append(inner, p)
		}
	}
	return inner
}
