package transform

import (
	"fmt"

	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// Symmetry is what the exact passes do to one index, in the source's labels. Nil parts do
// nothing.
type Symmetry struct {
	Perm []int  // place i takes the source's label Perm[i]
	Flip []bool // by source label: multiply by −1
	Exp  []int  // by source label: multiply by 2^Exp, the inverse where the family says so
}

// Inverse undoes s. Its labels are places of s's result.
func (s Symmetry) Inverse() Symmetry {
	var inv Symmetry
	place := func(label int) int { return label }
	if s.Perm != nil {
		inv.Perm = make([]int, len(s.Perm))
		for i, label := range s.Perm {
			inv.Perm[label] = i
		}
		place = func(label int) int { return inv.Perm[label] }
	}
	if s.Flip != nil {
		inv.Flip = make([]bool, len(s.Flip))
		for label, f := range s.Flip {
			inv.Flip[place(label)] = f
		}
	}
	if s.Exp != nil {
		inv.Exp = make([]int, len(s.Exp))
		for label, e := range s.Exp {
			inv.Exp[place(label)] = -e
		}
	}
	return inv
}

// axisMap is what all symmetries together do along one axis of a stored matrix. Gather is by
// place, Flip and Exp by source position; nil parts do nothing.
type axisMap struct {
	gather []int
	flip   []bool
	exp    []int
}

func (a axisMap) identity() bool { return a.gather == nil && a.flip == nil && a.exp == nil }

// symmetries of a whole model by the name of the index.
type symmetries map[string]*Symmetry

func (s symmetries) axis(a *arch.Axis) axisMap {
	get := func(name string) Symmetry {
		if sym := s[name]; sym != nil {
			return *sym
		}
		return Symmetry{}
	}
	return axisMap{
		gather: a.Gather(func(n string) []int { return get(n).Perm }),
		flip:   a.Signs(func(n string) []bool { return get(n).Flip }),
		exp:    a.Exps(func(n string) []int { return get(n).Exp }),
	}
}

// matrix gives the maps of a claimed tensor's rows and columns in storage order (see
// weights.Info.Matrix): all dimensions but the last are rows.
func (s symmetries) matrix(c *arch.Claim) (rows, cols axisMap) {
	switch n := len(c.Axes); n {
	case 0:
	case 1:
		rows = s.axis(c.Axes[0])
	default:
		rows = s.axis(c.Axes[0])
		length := c.Axes[0].Len()
		for _, a := range c.Axes[1 : n-1] {
			rows = product(rows, length, s.axis(a), a.Len())
			length *= a.Len()
		}
		cols = s.axis(c.Axes[n-1])
	}
	return rows, cols
}

// product is the map of two neighbouring dimensions seen as one.
func product(a axisMap, na int, b axisMap, nb int) axisMap {
	var p axisMap
	if a.gather != nil || b.gather != nil {
		p.gather = make([]int, 0, na*nb)
	}
	if a.flip != nil || b.flip != nil {
		p.flip = make([]bool, 0, na*nb)
	}
	if a.exp != nil || b.exp != nil {
		p.exp = make([]int, 0, na*nb)
	}
	for i := range na {
		for j := range nb {
			if p.gather != nil {
				p.gather = append(p.gather, at(a.gather, i, i)*nb+at(b.gather, j, j))
			}
			if p.flip != nil {
				p.flip = append(p.flip, at(a.flip, i, false) != at(b.flip, j, false))
			}
			if p.exp != nil {
				p.exp = append(p.exp, at(a.exp, i, 0)+at(b.exp, j, 0))
			}
		}
	}
	return p
}

func at[T any](list []T, i int, missing T) T {
	if list == nil {
		return missing
	}
	return list[i]
}

// check holds a symmetry against its index: a true permutation, lengths, and only what the index
// allows.
func (s *Symmetry) check(ix *arch.Index) error {
	if ix.Blocked != "" {
		return fmt.Errorf("index %s must stay as it is: %s", ix.Name, ix.Blocked)
	}
	if s.Perm != nil {
		if !ix.Permute || !isPermutation(s.Perm, ix.Len) {
			return fmt.Errorf("index %s: its order is no permutation of %d labels, or may not change", ix.Name, ix.Len)
		}
	}
	if s.Flip != nil && (!ix.Sign || len(s.Flip) != ix.Len) {
		return fmt.Errorf("index %s: its signs may not change", ix.Name)
	}
	if s.Exp != nil && (!ix.Scale || len(s.Exp) != ix.Len) {
		return fmt.Errorf("index %s: has %d exponents for %d labels, or may not be scaled", ix.Name, len(s.Exp), ix.Len)
	}
	return nil
}

func isPermutation(p []int, n int) bool {
	if len(p) != n {
		return false
	}
	seen := make([]bool, n)
	for _, v := range p {
		if v < 0 || v >= n || seen[v] {
			return false
		}
		seen[v] = true
	}
	return true
}
