package cost

import "math/bits"

// tally is a sum over elements, each with the element before it in memory and the one above it
// (the previous row, same column), where there are such. Every figure of an Activity but the
// borders at a tensor's rim is such a sum, so tallies of parts can be added in any order.
type tally struct {
	rows, memory, ones  Fields
	zeros               uint64
	zerosBefore         uint64 // zeros whose element before is zero too
	zerosAbove          uint64 // zeros whose element above is zero too
	nan, inf, subnormal uint64
}

// merge adds another tally's counts.
func (t *tally) merge(o tally) {
	t.rows.add(o.rows)
	t.memory.add(o.memory)
	t.ones.add(o.ones)
	t.zeros += o.zeros
	t.zerosBefore += o.zerosBefore
	t.zerosAbove += o.zerosAbove
	t.nan += o.nan
	t.inf += o.inf
	t.subnormal += o.subnormal
}

// add counts the elements of cur. before and above are as long as cur, or nil where cur's
// elements have none.
func (t *tally) add(l *lanes, cur, before, above []byte) {
	n := t.addBlocks(l, cur, before, above)
	t.addWords(l, cur[n:], from(before, n), from(above, n))
}

// addWords is add in plain Go, the twin of addBlocks.
func (t *tally) addWords(l *lanes, cur, before, above []byte) {
	t.addGroups(l, groups(cur), groups(before), groups(above))
	n := len(cur) / groupBytes * groupBytes
	t.addPlain(l.format, cur[n:], from(before, n), from(above, n))
}

// from is b[n:], nil staying nil.
func from(b []byte, n int) []byte {
	if b == nil {
		return nil
	}
	return b[n:]
}

// addGroups is addPlain for whole groups, fast.
func (t *tally) addGroups(l *lanes, cur, before, above []group) {
	var ones, memory, rows positional
	for i := 0; i < len(cur); i += blockGroups {
		end := min(i+blockGroups, len(cur))
		special := ones.addOnes(l, cur[i:end])
		if before != nil {
			memory.addXor(l, cur[i:end], before[i:end])
		}
		if above != nil {
			rows.addXor(l, cur[i:end], above[i:end])
		}
		for ; special != 0; special &= special - 1 {
			j := i + bits.TrailingZeros64(special)
			t.addSpecials(l, &cur[j], at(before, j), at(above, j))
		}
	}
	t.ones.add(ones.total(l))
	t.memory.add(memory.total(l))
	t.rows.add(rows.total(l))
}

// at is &g[i], nil where g is nil.
func at(g []group, i int) *group {
	if g == nil {
		return nil
	}
	return &g[i]
}
