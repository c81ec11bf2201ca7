package rounding

import "math"

// viterbi finds the cheapest path along a lane of rows. A state is a candidate value of a row. The cost of a step
// depends only on whether the two values are equal and whether their signs are equal. So only three of the previous
// states compete: the state of equal value, the best state of the same sign and the best state of the other sign.
//
// Costs have their state in the lowest bits, so the smallest cost identifies its state.
type viterbi struct {
	*prices
	run, lanes   int
	differ, sign float64
	values       [][maxSlots]uint32 // of each row of the lane
	before       [][maxSlots]uint8  // best predecessor of each state
	rows         []int
}

// stateMask selects the bits of a cost that identify the state.
const stateMask = 31

func tagged(cost float64, state int) uint64 { return math.Float64bits(cost)&^stateMask | uint64(state) }

func untagged(c uint64) float64 { return math.Float64frombits(c &^ stateMask) }

func newViterbi(p *prices, t Trellis) *viterbi {
	return &viterbi{
		prices: p, run: t.Rates.Run, lanes: t.Rates.lanes(), differ: t.Lambda * t.Rates.Differ, sign: t.Lambda * t.Rates.Sign,
		values: make([][maxSlots]uint32, chunkRows), before: make([][maxSlots]uint8, chunkRows),
	}
}

func (v *viterbi) column(c Column) {
	for lane := range v.lanes {
		v.rows = v.rows[:0]
		for n := range c.T {
			if (c.N0+n)/v.run%v.lanes == lane {
				v.rows = append(v.rows, n)
			}
		}
		if len(v.rows) > 0 {
			v.lane(c)
		}
	}
}

// states are the cheapest paths to the states of one row.
type states struct {
	cost   [maxSlots]uint64
	values *[maxSlots]uint32
	held   float32 // energy of the repeated value's bits
	// The best state of each sign; zero is positive.
	best [2]uint64
}

// nowhere is the cost of a missing state.
var nowhere = tagged(math.Inf(1), 0)

func (v *viterbi) lane(c Column) {
	g := v.gain(c.D)
	var now, last states
	for i, n := range v.rows {
		t := c.T[n]
		now.values = &v.values[i]
		v.list(now.values, v.clamp(t))
		if i == 0 { // for the first row, any previous value is free
			last.values = now.values
		}
		v.step(&now, &last, &v.before[i], t, g)
		now, last = last, now
	}
	state := min(last.best[0], last.best[1]) & stateMask
	for i := len(v.rows) - 1; i >= 0; i-- {
		c.T[v.rows[i]] = math.Float32frombits(v.values[i][state])
		state = uint64(v.before[i][state])
	}
}

// step finds the cheapest way to each state of a row.
func (v *viterbi) step(now, last *states, before *[maxSlots]uint8, t, g float32) {
	now.best = [2]uint64{nowhere, nowhere}
	v.enter(now, before, slotZero, min(v.differing(last, 0), last.cost[slotZero]), v.prices.slots[slotZero], t, g)
	sign := math.Float32bits(t) >> 31
	other := v.differing(last, sign)
	for i := slotBelow; i < v.candidates.slots; i++ {
		value := now.values[i]
		if value == 0 {
			now.cost[i] = nowhere
			continue
		}
		from := other
		if value == last.values[i] {
			from = min(from, last.cost[i])
		}
		if i < slotThree { // the other slot for the same number of bits
			if second := (i - 1) ^ 1 + 1; value == last.values[second] {
				from = min(from, last.cost[second])
			}
		}
		v.enter(now, before, i, from, v.prices.slots[i], t, g)
	}
	v.repeat(now, last, before, t, g)
}

// repeat adds a state for the value of the cheapest path so far. A run of equal values can then use any value that
// was good for its first row.
func (v *viterbi) repeat(now, last *states, before *[maxSlots]uint8, t, g float32) {
	slot, held := v.candidates.slots, int(min(last.best[0], last.best[1])&stateMask)
	now.values[slot], now.held = last.values[held], last.held
	if held != slot {
		now.held = v.prices.slots[held]
	}
	v.enter(now, before, slot, min(v.differing(last, now.values[slot]>>31), last.cost[held]), now.held, t, g)
}

// enter sets the cost of a state that is reached from another state. price is the energy of the state's bits.
func (v *viterbi) enter(now *states, before *[maxSlots]uint8, i int, from uint64, price, t, g float32) {
	value := now.values[i]
	d := (t - math.Float32frombits(value)) * g
	cost := tagged(untagged(from)+float64(float32(d*d)+price), i)
	before[i] = uint8(from & stateMask)
	now.cost[i] = cost
	now.best[value>>31] = min(now.best[value>>31], cost)
}

// differing returns the cheapest path to a different value of the given sign.
func (v *viterbi) differing(last *states, sign uint32) uint64 {
	same, other := last.best[sign], last.best[1-sign]
	return min(
		tagged(untagged(same)+v.differ, int(same&stateMask)),
		tagged(untagged(other)+v.differ+v.sign, int(other&stateMask)))
}
