package pattern

import "math"

// dice are random words that depend only on their place.
type dice uint64

const golden = 0x9E3779B97F4A7C15 // 2^64 over the golden ratio: SplitMix64's step

// newDice returns the dice of one operation of a pattern.
func newDice(seed uint64, operation int) dice {
	return dice(mix(mix(seed) + uint64(operation)*golden))
}

// row returns the dice of one row.
func (d dice) row(r int) dice { return dice(mix(uint64(d) + uint64(r)*0xD1342543DE82EF95)) }

// at returns the random word of a column.
func (d dice) at(col int) uint64 { return mix(uint64(d) + uint64(col)*golden) }

// again returns another random word for the same place.
func again(word uint64) uint64 { return mix(word + golden) }

// mix spreads every bit over the whole word (the finaliser of SplitMix64).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// chance is a probability in units of 2^-53.
type chance uint64

func newChance(p float64) chance { return chance(math.RoundToEven(math.Ldexp(p, 53))) }

// hits reports whether a random word falls within the chance.
func (c chance) hits(word uint64) bool { return word>>11 < uint64(c) }

// units writes the random numbers of the columns from col on. They lie between 0 and 1, exclusive, and symmetrically
// about the middle.
func (d dice) units(u []float64, col int) {
	for i := range u {
		u[i] = (float64(d.at(col+i)>>12) + 0.5) / (1 << 52)
	}
}
