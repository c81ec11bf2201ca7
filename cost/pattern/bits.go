package pattern

import (
	"fmt"

	"github.com/lowtoggle/lowtoggle/weights"
)

// lowHigh returns the mask for the arguments low=k and high=k.
func lowHigh(f weights.Format, args []any) (mask uint32, err error) {
	low, high := args[0].(int), args[1].(int)
	for i, n := range []int{low, high} {
		if n > f.Bits {
			return 0, fmt.Errorf("%s is %d bits, but an element of %s has only %d", []string{"low", "high"}[i], n, f.DType, f.Bits)
		}
	}
	all := uint64(1)<<f.Bits - 1
	return uint32(uint64(1)<<low - 1 | all&^(all>>high)), nil
}

// finite clears the lowest exponent bit of NaN and infinity. In a format without infinities, in which only one
// mantissa is NaN, it clears the lowest mantissa bit.
func finite(f weights.Format, b uint32) uint32 {
	if f.Finite(b) {
		return b
	}
	if !f.HasInf() {
		return b &^ 1
	}
	return b &^ (1 << f.MantBits)
}

func makeZero(s *stage, args []any, inner *field) (*field, error) {
	mask, err := lowHigh(s.format, args)
	return s.mapped(inner, func(b uint32) uint32 { return b &^ mask }), err
}

func makeRandom(s *stage, args []any, inner *field) (*field, error) {
	mask, err := lowHigh(s.format, args)
	return s.changed(inner, func(b uint32, word uint64) uint32 {
		return finite(s.format, b&^mask|uint32(word>>32)&mask)
	}), err
}

func makeFlip(s *stage, args []any, inner *field) (*field, error) {
	f, c := s.format, newChance(args[0].(float64))
	return s.changed(inner, func(b uint32, word uint64) uint32 {
		return finite(f, b^c.bits(f.Bits, word))
	}), nil
}

// changed returns a field whose elements are functions of inner's elements and of random words.
func (s *stage) changed(inner *field, of func(b uint32, word uint64) uint32) *field {
	f := s.format
	return s.alter(inner, func(data []byte, row, col int) {
		dice := s.dice.row(row)
		for i := range len(data) / (f.Bits / 8) {
			f.SetElem(data, i, of(f.Elem(data, i), dice.at(col+i)))
		}
	})
}

// bits returns n random bits, each set with the given chance. Each bit compares a random binary fraction with the
// chance, digit by digit until they differ. This takes two digits on average.
func (c chance) bits(n int, word uint64) (set uint32) {
	undecided := uint32(uint64(1)<<n - 1)
	if c == 1<<53 {
		return undecided
	}
	rest, left := word, 64
	for digits := uint64(c) << 11; digits != 0 && undecided != 0; digits <<= 1 {
		if left < n {
			word = again(word)
			rest, left = word, 64
		}
		random := uint32(rest)
		rest, left = rest>>n, left-n
		if digits>>63 == 1 {
			set |= undecided &^ random
			undecided &= random
		} else {
			undecided &^= random
		}
	}
	return set
}
