package verify

import (
	"fmt"
	"math"

	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/weights"
)

// tolerance is how far the claimed steps may move a tensor's values.
type tolerance struct {
	f       weights.Format
	outAxis int
	shifted bool             // rounded once to the stored type
	zeros   *transform.Zeros // recomputed: see zeroing
	grid    *transform.Grid  // half a step
	round   *transform.Bits  // half a unit, or a whole one where truncated
	// whole: values were chosen together, by what inputs make of them, which is not known here. They
	// may be anywhere; what they lose is told by running the model (verify --tokens).
	whole bool
}

func newTolerance(f weights.Format, outAxis int, steps []*transform.Step) *tolerance {
	t := &tolerance{f: f, outAxis: outAxis}
	for _, s := range steps {
		t.shifted = t.shifted || s.Shift != nil
		t.whole = t.whole || s.Whole()
		if s.Zeros != nil {
			t.zeros = s.Zeros
		}
		if s.Grid != nil {
			t.grid = s.Grid
		}
		if s.Round != nil {
			t.round = s.Round
		}
	}
	return t
}

// wrong says what is wrong with element [n, k] where real arithmetic gives v and zero tells whether
// it must be zero; empty where nothing is.
func (t *tolerance) wrong(n, k int, got, v float64, zero bool) string {
	switch {
	case zero && got == 0:
		return ""
	case zero:
		v = 0
	case t.allows(n, k, got, v):
		return ""
	}
	return fmt.Sprintf("element [%d, %d] is %g, and the manifest's steps make it %g", n, k, got, v)
}

// allows reports whether element [n, k] may hold got where real arithmetic gives v.
func (t *tolerance) allows(n, k int, got, v float64) bool {
	off := math.Abs(got - v)
	if off == 0 || t.whole {
		return true
	}
	bound := 0.0
	if t.shifted {
		bound += t.spacing(v)
	}
	if out := []int{n, k}[t.outAxis]; t.grid != nil && out < len(t.grid.Exponents) {
		bound += power(max(-1022, min(1023, t.grid.Exponents[out]-1)))
	}
	if t.round != nil {
		unit := t.spacing(math.Abs(v)+bound) * float64(int(1)<<(t.round.Zeroed&31))
		if !t.round.Truncate {
			unit /= 2
		}
		bound += unit
	}
	if math.Abs(v)+bound > float64(t.f.Value(t.f.MaxFinite)) { // the largest finite multiple instead
		bound *= 2
	}
	return off <= bound
}

// spacing is the distance between representable values at v.
func (t *tolerance) spacing(v float64) float64 {
	if !t.f.IsFloat() {
		return 1
	}
	e := int(math.Float64bits(v)>>52&0x7FF) - 1023 // of a value of a narrower type, or zero
	return power(max(e, 1-t.f.Bias) - t.f.MantBits)
}

// power is 2^e for a double's normal range.
func power(e int) float64 { return math.Float64frombits(uint64(e+1023) << 52) }
