package cost

import "math/bits"

// addSpecials counts what is rare in weights: zeros and pairs of them, subnormal numbers,
// infinities and NaN. before and above may be nil.
func (t *tally) addSpecials(l *lanes, cur, before, above *group) {
	// Most words have nothing special even here; masks in registers keep that case short.
	normal, valueSign, magnitude, room, top := l.normal, l.valueSign, l.magnitude, l.finiteRoom, l.sign
	for i := range groupWords {
		w := cur.word(i)
		if (^(w&normal+normal|w&valueSign)|(w&magnitude+room))&top == 0 {
			continue
		}
		small, big := l.notNormal(w), l.notFinite(w)
		zero, nan := l.zeros(w), l.nans(w)
		t.zeros += countOnes(zero)
		t.subnormal += countOnes(small &^ zero)
		t.nan += countOnes(nan)
		t.inf += countOnes(big &^ nan)
		if zero != 0 && before != nil {
			t.zerosBefore += countOnes(zero & l.zeros(before.word(i)))
		}
		if zero != 0 && above != nil {
			t.zerosAbove += countOnes(zero & l.zeros(above.word(i)))
		}
	}
}

func countOnes(w uint64) uint64 { return uint64(bits.OnesCount64(w)) }
