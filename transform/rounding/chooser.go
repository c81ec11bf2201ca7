package rounding

import (
	"errors"
	"fmt"

	"github.com/lowtoggle/lowtoggle/weights"
)

// Column is some rows of one column of W, to be rounded.
type Column struct {
	K  int     // its index in W
	D  float64 // weight of squared distances to the targets
	N0 int     // the first row's index in W
	// T are the targets, all finite. The chosen values replace them.
	T []float32
}

// Chooser chooses the values of a column. The choosers of this package are plain data, and several calls of [Round]
// may use one chooser at a time.
type Chooser interface {
	// Begin checks that the chooser fits a layer W[n,k]. The returned function is for one goroutine.
	Begin(n, k int) (choose func(Column), err error)
}

// Alone is a chooser that may depend only on each value's target and [Column.D], in the same way in every row and
// column.
type Alone interface {
	Chooser
	// Alone reports whether this chooser depends only on the target and D.
	Alone() bool
}

// Stored chooses the nearest value of the format.
type Stored struct{ Format weights.Format }

// Begin implements [Chooser].
func (s Stored) Begin(n, k int) (func(Column), error) { return Bits{Format: s.Format}.Begin(n, k) }

// Alone implements [Alone].
func (s Stored) Alone() bool { return true }

// Bits chooses the nearest value whose lowest bits are zero, like [weights.Format.Round].
type Bits struct {
	Format weights.Format
	Zeroed int // low bits, 0 to Format.Zeroable()
}

// Begin implements [Chooser].
func (b Bits) Begin(n, k int) (func(Column), error) {
	if b.Zeroed < 0 || b.Zeroed > b.Format.Zeroable() {
		return nil, fmt.Errorf("rounding: cannot zero %d low bits of %s: give a number of bits from 0 to %d",
			b.Zeroed, b.Format.DType, b.Format.Zeroable())
	}
	l := latticeOf(b.Format)
	powers := b.Format.IsFloat() && b.Zeroed == b.Format.MantBits
	return func(c Column) {
		for i, t := range c.T {
			t = l.clamp(t)
			v := l.round(t, l.spacing(t)+b.Zeroed)
			if powers && 4*t == 3*v { // halfway: choose the power of two whose bits are even
				if lower := b.Format.FromValue(v / 2); lower&(2<<b.Zeroed-1) == 0 {
					v /= 2
				}
			}
			c.T[i] = l.signed(v, t)
		}
	}, nil
}

// Alone implements [Alone].
func (b Bits) Alone() bool { return true }

// Grid chooses the nearest multiple of a power of two, like [weights.Format.Grid].
type Grid struct {
	Format    weights.Format
	Exponents []int // exponents of the step of each of N outputs, within ±1000
}

// Begin implements [Chooser].
func (g Grid) Begin(n, k int) (func(Column), error) {
	if len(g.Exponents) != n {
		return nil, fmt.Errorf("rounding: the grid has %d exponents for %d outputs: give one for each output", len(g.Exponents), n)
	}
	for _, e := range g.Exponents {
		if e < -1000 || e > 1000 {
			return nil, fmt.Errorf("rounding: the exponent of a grid's step is %d: give exponents from −1000 to 1000", e)
		}
	}
	l := latticeOf(g.Format)
	return func(c Column) {
		for i, step := range g.Exponents[c.N0:][:len(c.T)] {
			t := l.clamp(c.T[i])
			c.T[i] = l.round(t, max(l.spacing(t), min(step, coarsest)))
		}
	}, nil
}

// Sparse zeroes the elements outside Keep. Another chooser chooses the elements in Keep.
type Sparse struct {
	Chooser
	Keep []bool // [N,K], row-major
}

// Begin implements [Chooser].
func (s Sparse) Begin(n, k int) (func(Column), error) {
	if len(s.Keep) != n*k {
		return nil, fmt.Errorf("rounding: the mask Keep has %d elements, and the layer has %d×%d weights", len(s.Keep), n, k)
	}
	if s.Chooser == nil {
		return nil, errors.New("rounding: Sparse has no Chooser: set one")
	}
	choose, err := s.Chooser.Begin(n, k)
	return func(c Column) {
		choose(c)
		for i := range c.T {
			if !s.Keep[(c.N0+i)*k+c.K] {
				c.T[i] = 0
			}
		}
	}, err
}
