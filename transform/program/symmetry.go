package program

import (
	"fmt"

	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// Symmetry is the effect of the exact passes on one index of n labels. Labels are the source's. Nil fields have no
// effect.
type Symmetry struct {
	Perm []int  // place i takes the source's label Perm[i]
	Flip []bool // [n], by label: multiply by −1
	Exp  []int  // [n], by label: multiply by 2^Exp on one side and by 2^−Exp on the other
}

// Inverse returns the symmetry that undoes s. Its labels are the places of s's result.
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

// AxisMap is the effect of all symmetries along one axis of a stored matrix. Place i of the result takes the source's
// position Gather[i]. Flip and Exp are by source position: multiply by −1 and by 2^Exp. Nil fields have no effect.
type AxisMap struct {
	Gather []int
	Flip   []bool
	Exp    []int
}

// IsIdentity reports whether the map has no effect.
func (a AxisMap) IsIdentity() bool { return a.Gather == nil && a.Flip == nil && a.Exp == nil }

// Symmetries are the symmetries of a model, by the name of the index.
type Symmetries map[string]*Symmetry

func (s Symmetries) axis(a *arch.Axis) AxisMap {
	get := func(name string) Symmetry {
		if sym := s[name]; sym != nil {
			return *sym
		}
		return Symmetry{}
	}
	return AxisMap{
		Gather: a.Gather(func(n string) []int { return get(n).Perm }),
		Flip:   a.Signs(func(n string) []bool { return get(n).Flip }),
		Exp:    a.Exps(func(n string) []int { return get(n).Exp }),
	}
}

// Matrix returns the maps for the stored rows and columns of a claimed tensor. All dimensions except the last are
// rows (see [weights.Info.Matrix]).
func (s Symmetries) Matrix(c *arch.Claim) (rows, cols AxisMap) {
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

// product returns the map of two neighbouring dimensions combined into one.
func product(a AxisMap, na int, b AxisMap, nb int) AxisMap {
	var p AxisMap
	if a.Gather != nil || b.Gather != nil {
		p.Gather = make([]int, 0, na*nb)
	}
	if a.Flip != nil || b.Flip != nil {
		p.Flip = make([]bool, 0, na*nb)
	}
	if a.Exp != nil || b.Exp != nil {
		p.Exp = make([]int, 0, na*nb)
	}
	for i := range na {
		for j := range nb {
			if p.Gather != nil {
				p.Gather = append(p.Gather, at(a.Gather, i, i)*nb+at(b.Gather, j, j))
			}
			if p.Flip != nil {
				p.Flip = append(p.Flip, at(a.Flip, i, false) != at(b.Flip, j, false))
			}
			if p.Exp != nil {
				p.Exp = append(p.Exp, at(a.Exp, i, 0)+at(b.Exp, j, 0))
			}
		}
	}
	return p
}

// at returns list[i], or missing if the list is nil.
func at[T any](list []T, i int, missing T) T {
	if list == nil {
		return missing
	}
	return list[i]
}

// Check returns an error if the symmetry does not fit its index: a length is wrong, the order is not a permutation,
// or the index does not allow the change.
func (s *Symmetry) Check(ix *arch.Index) error {
	if ix.Blocked != "" {
		return fmt.Errorf("index %s cannot be changed: %s", ix.Name, ix.Blocked)
	}
	if s.Perm != nil && !ix.Permute {
		return fmt.Errorf("index %s may not be permuted", ix.Name)
	}
	if s.Perm != nil && !IsPermutation(s.Perm, ix.Len) {
		return fmt.Errorf("index %s: the order is not a permutation of the numbers from 0 to %d", ix.Name, ix.Len-1)
	}
	if s.Flip != nil && (!ix.Sign || len(s.Flip) != ix.Len) {
		return fmt.Errorf("index %s: the signs of this index may not change", ix.Name)
	}
	if s.Exp != nil && !ix.Scale {
		return fmt.Errorf("index %s may not be scaled", ix.Name)
	}
	if s.Exp != nil && len(s.Exp) != ix.Len {
		return fmt.Errorf("index %s: there are %d exponents for %d labels", ix.Name, len(s.Exp), ix.Len)
	}
	return nil
}

// IsPermutation reports whether p contains each of 0 to n−1 once.
func IsPermutation(p []int, n int) bool {
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

// From returns the source position for a place on the axis.
func (a AxisMap) From(place int) int { return at(a.Gather, place, place) }

// Flipped reports whether the values at a source position are multiplied by −1.
func (a AxisMap) Flipped(position int) bool { return at(a.Flip, position, false) }

// Power returns the exponent of the power of two by which the values at a source position are multiplied.
func (a AxisMap) Power(position int) int { return at(a.Exp, position, 0) }
