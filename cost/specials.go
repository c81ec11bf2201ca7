package cost

import "math/bits"

// addSpecials counts rare values of weights: zeros and pairs of zeros, subnormal numbers, infinities and NaN. before
// and above may be nil.
func (t *tally) addSpecials(l *lanes, cur, before, above *group) {
	if !l.anySpecial(cur) {
		return
	}
	// An element without a neighbour is compared with itself, and its pairs are not added.
	b, a := before, above
	if before == nil {
		b = cur
	}
	if above == nil {
		a = cur
	}
	var zeros, zerosBefore, zerosAbove, notNormal, notFinite uint64 // sums of marks, at most 16 in a lane
	for i := range groupWords {
		w := cur.word(i)
		zero := l.zeros(w)
		zeros += zero >> 7
		zerosBefore += zero & l.zeros(b.word(i)) >> 7
		zerosAbove += zero & l.zeros(a.word(i)) >> 7
		notNormal += l.notNormal(w) >> 7
		notFinite |= l.notFinite(w)
	}
	n := sumBytes(zeros)
	t.zeros += n
	t.subnormal += sumBytes(notNormal) - n
	if before != nil {
		t.zerosBefore += sumBytes(zerosBefore)
	}
	if above != nil {
		t.zerosAbove += sumBytes(zerosAbove)
	}
	if notFinite != 0 {
		t.addBig(l, cur)
	}
}

// anySpecial reports whether a group has such values. Most groups have none.
func (l *lanes) anySpecial(g *group) bool {
	// lanes.notNormal and notFinite, with their masks in registers.
	magnitude, valueSign, normal, room, top := l.magnitude, l.valueSign, l.normal, l.finiteRoom, l.sign
	for i := range groupWords {
		w := g.word(i)
		if (^(w&normal+normal|w&valueSign)|(w&magnitude+room))&top != 0 {
			return true
		}
	}
	return false
}

// addBig counts infinities and NaN.
func (t *tally) addBig(l *lanes, cur *group) {
	for i := range groupWords {
		w := cur.word(i)
		nan := l.nans(w)
		t.nan += countOnes(nan)
		t.inf += countOnes(l.notFinite(w) &^ nan)
	}
}

// sumBytes returns the sum of w's bytes. The sum must be below 256.
func sumBytes(w uint64) uint64 { return w * 0x0101010101010101 >> 56 }

func countOnes(w uint64) uint64 { return uint64(bits.OnesCount64(w)) }
