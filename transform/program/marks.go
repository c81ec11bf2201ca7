package program

import (
	"encoding/binary"

	"github.com/lowtoggle/lowtoggle/weights"
)

// marks are a program's signs and powers of two for the columns of its result. For 16-bit floats they are applied to
// four elements at a time: while all values are normal numbers, multiplying by ±2^exp is adding a constant to the
// bits.
type marks struct {
	*Program
	low, high int // lowest and highest exponent of the columns
	addends   []uint64
}

// marks returns the marks for load; nil if the program has none.
func (p *Program) marks() *marks {
	if !p.marked() {
		return nil
	}
	m := &marks{Program: p}
	if m.low, m.high = bounds(p.Col.Exp); !words(&p.Format) || p.Col.Exp == nil && p.Col.Flip == nil {
		return m
	}
	m.addends = make([]uint64, (p.Cols+3)/4)
	for k := range p.Cols {
		j := at(p.Col.Gather, k, k)
		m.addends[k/4] |= uint64(addend(p.Format, at(p.Col.Flip, j, false), at(p.Col.Exp, j, 0))) << (k % 4 * 16)
	}
	return m
}

// apply applies the marks to a loaded row. from is the row's position in the source.
func (m *marks) apply(row []byte, from int) {
	flip, exp := at(m.Row.Flip, from, false), at(m.Row.Exp, from, 0)
	scale := func(k int) {
		j := at(m.Col.Gather, k, k)
		if flip, exp := flip != at(m.Col.Flip, j, false), exp+at(m.Col.Exp, j, 0); flip || exp != 0 {
			b, _ := Scaled(m.Format, m.Format.Elem(row, k), flip, exp)
			m.Format.SetElem(row, k, b)
		}
	}
	if !words(&m.Format) {
		for k := range m.Cols {
			scale(k)
		}
		return
	}
	s := SafeMagnitudes(m.Format, exp+m.low, exp+m.high)
	all := lanes * uint64(addend(m.Format, flip, exp))
	for i := range len(row) / 8 {
		w := binary.LittleEndian.Uint64(row[8*i:])
		if !s.all(w) {
			for k := 4 * i; k < 4*i+4; k++ {
				scale(k)
			}
			continue
		}
		w = addLanes(w, all)
		if m.addends != nil {
			w = addLanes(w, m.addends[i])
		}
		binary.LittleEndian.PutUint64(row[8*i:], w)
	}
	for k := len(row) / 8 * 4; k < m.Cols; k++ {
		scale(k)
	}
}

// words reports whether rows of a format are processed as words of four elements.
func words(f *weights.Format) bool { return f.Bits == 16 && f.ExpBits > 0 }

const (
	lanes     = 0x0001_0001_0001_0001 // 1 in each of the four elements of a word
	laneSigns = lanes << 15
)

// addLanes adds two words element by element, modulo 2^16.
func addLanes(a, b uint64) uint64 { return (a&^laneSigns + b&^laneSigns) ^ (a^b)&laneSigns }

// addend returns the number to add to the bits of a safe value for a multiplication by ±2^exp.
func addend(f weights.Format, flip bool, exp int) uint16 {
	a := uint16(exp << f.MantBits)
	if flip {
		a += 1 << 15
	}
	return a
}

// bounds returns the lowest and highest exponent in a list; 0 for nil.
func bounds(exps []int) (low, high int) {
	for i, e := range exps {
		if i == 0 {
			low, high = e, e
		}
		low, high = min(low, e), max(high, e)
	}
	return low, high
}

// Safe is a range of magnitudes; see [SafeMagnitudes].
type Safe struct {
	f              weights.Format
	least, most    uint32 // bits without sign; most < least: empty range
	floor, ceiling uint64 // least and most in each of the four elements of a word
}

// SafeMagnitudes returns a range of magnitudes that [Scaled] multiplies exactly by every power of two from 2^low to
// 2^high, with either sign. The range may leave out other such magnitudes, such as zero. For integers it is empty.
func SafeMagnitudes(f weights.Format, low, high int) Safe {
	fields := 1 << f.ExpBits // with at least as many exponents, the range is empty
	least, most := 0, int(f.MaxFinite)
	if low != 0 || high != 0 {
		least = max(1, 1-max(low, -fields)) << f.MantBits
		most -= max(0, min(high, fields)) << f.MantBits
	}
	if !f.IsFloat() || most < least {
		least, most = 1, 0
	}
	return Safe{f, uint32(least), uint32(most), lanes * uint64(least), lanes * uint64(most)}
}

// all reports whether the four elements of a word are safe.
func (s *Safe) all(w uint64) bool {
	w &^= laneSigns
	// If the difference of two elements is not negative, it keeps the sign bit set in the first one.
	return (w|laneSigns-s.floor)&(s.ceiling|laneSigns-w)&laneSigns == laneSigns
}

// Others calls fn with the places of a row's elements that are not safe, in order, until fn returns false.
func (s *Safe) Others(row []byte, fn func(k int) bool) {
	k, n := 0, len(row)*8/s.f.Bits
	for ; words(&s.f) && k+4 <= n; k += 4 {
		if !s.all(binary.LittleEndian.Uint64(row[2*k:])) && !s.others(row, k, k+4, fn) {
			return
		}
	}
	s.others(row, k, n, fn)
}

// others is Others for the places [first, end). It returns false if fn returned false.
func (s *Safe) others(row []byte, first, end int, fn func(k int) bool) bool {
	for k := first; k < end; k++ {
		if mag := s.f.Elem(row, k) &^ s.f.SignMask(); (mag < s.least || mag > s.most) && !fn(k) {
			return false
		}
	}
	return true
}
