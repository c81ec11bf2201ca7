package rounding

import (
	"math"

	"github.com/lowtoggle/lowtoggle/weights"
)

// candidates lists the values to consider for a target: zero, and the nearest value for every number of significant
// bits. For one, two and three bits, the list also has the second nearest value, because neighbouring rows may share
// it.
type candidates struct {
	lattice
	bits  int // largest number of significant bits
	slots int // number of slots in use
	// Between these magnitudes, as bits of float32, the format has all candidates of every target.
	from, to uint32
}

func candidatesOf(f weights.Format) candidates {
	c := candidates{lattice: latticeOf(f), bits: f.MantBits + 1, slots: slotFour + f.MantBits + 1 - 3}
	if f.IsFloat() {
		c.from = math.Float32bits(float32(math.Ldexp(1, 2-f.Bias)))
		c.to = math.Float32bits(c.top)&^(binade-1) - binade
	}
	return c
}

// binade is the distance between neighbouring powers of two in the bits of a float32.
const binade = 1 << 23

// Each candidate has a fixed slot. Equal candidates of two rows have the same number of significant bits, so they are
// in the same slot or, for one and two bits, in one of two slots.
const (
	slotZero = iota
	slotBelow
	slotAbove
	slotTwo
	slotTwoOther
	slotThree
	slotThreeOther
	slotFour
	maxSlots = slotFour + 24 - 3 + 1 // float32 has 24 significant bits; viterbi uses one more slot
)

// significant returns the number of significant bits of a slot's values.
func significant(slot int) int {
	switch {
	case slot >= slotFour:
		return slot - slotFour + 4
	case slot >= slotThree:
		return 3
	default:
		return (slot + 1) / 2
	}
}

// list fills the slots in use with candidates for t, as bits of float32. It clamps t. After the first slot, 0 stands
// for no candidate. The nearest value with b ≥ 2 significant bits in t's binade is an odd multiple of the b-th bit.
func (c *candidates) list(slots *[maxSlots]uint32, t float32) {
	b := math.Float32bits(t)
	mag, sign := b&^(1<<31), b&(1<<31)
	if mag < c.from || mag >= c.to {
		c.listEdge(slots, t)
		return
	}
	low := b &^ (binade - 1)
	slots[slotZero] = 0
	slots[slotBelow] = low
	slots[slotAbove] = low + binade
	slots[slotTwo] = low | binade/2
	slots[slotTwoOther] = sign | (mag&^(binade-1) - binade + mag&(binade/2)<<2 | binade/2)
	slots[slotThree] = low | binade/4
	slots[slotThreeOther] = low | binade/2 | binade/4
	unit := uint32(binade / 8)
	fine := slots[slotFour:c.slots]
	for i := range fine {
		fine[i] = b&^(2*unit-1) | unit
		unit >>= 1
	}
}

// listEdge is list for the rarer targets: subnormal, near zero, at the ends of the range, and integers.
func (c *candidates) listEdge(slots *[maxSlots]uint32, t float32) {
	clear(slots[:c.slots])
	if t == 0 {
		return
	}
	const (
		mant = 52
		one  = 1 << mant // a step of one binade
	)
	b := math.Float64bits(float64(t)) // normal, whatever t is
	low := b &^ (one - 1)
	e := int(low>>mant&0x7FF) - 1023
	put := func(slot int, b uint64) {
		if v := float32(math.Float64frombits(b)); v <= c.top && v >= c.bottom {
			slots[slot] = math.Float32bits(v)
		}
	}
	if e < c.floor { // the smallest value is the only one
		put(slotAbove, math.Float64bits(math.Copysign(math.Ldexp(1, c.floor), float64(t))))
		return
	}
	put(slotBelow, low)
	put(slotAbove, low+one)
	bits := min(c.bits, e-c.floor+1) // number of bits of values in this binade
	if bits >= 2 {
		put(slotTwo, low|one/2)
	}
	switch {
	case b&(one/2) != 0:
		put(slotTwoOther, low+one|one/2)
	case bits >= 3:
		put(slotTwoOther, low-one|one/2)
	}
	if bits >= 3 {
		put(slotThree, low|one/4)
		put(slotThreeOther, low|one/2|one/4)
	}
	unit := uint64(one / 8)
	for i := 4; i <= bits; i++ {
		put(slotFour+i-4, b&^(2*unit-1)|unit)
		unit >>= 1
	}
}
