package verify

import (
	"fmt"
	"math"

	"github.com/lowtoggle/lowtoggle/weights"
)

// tolerance is the distance by which the claims, in the plan's order, may move a tensor's values.
type tolerance struct {
	f       weights.Format
	outAxis int
	claims  []*Claim
	zeros   *Zeros // of one of the claims
}

func newTolerance(f weights.Format, outAxis int, claims []*Claim) *tolerance {
	t := &tolerance{f: f, outAxis: outAxis, claims: claims}
	for _, c := range claims {
		if c.Zeros != nil {
			t.zeros = c.Zeros
		}
	}
	return t
}

// wrong returns a message if got is not allowed for element [n, k], else "". v is the element's value in real
// arithmetic. zero is true if the element must be zero.
func (t *tolerance) wrong(n, k int, got, v float64, zero bool) string {
	switch {
	case zero && got == 0:
		return ""
	case zero:
		v = 0
	case t.allows(n, k, got, v):
		return ""
	}
	return fmt.Sprintf("element [%d, %d] is %g, and by the manifest's steps it should be %g", n, k, got, v)
}

// allows reports whether got is allowed for element [n, k] if real arithmetic gives v.
func (t *tolerance) allows(n, k int, got, v float64) bool {
	off := math.Abs(got - v)
	if off == 0 {
		return true
	}
	output, bound := []int{n, k}[t.outAxis], 0.0
	for _, c := range t.claims {
		if c.Anywhere {
			return true
		}
		if c.Within != nil {
			bound += c.Within(t.f, output, v, bound)
		}
	}
	if math.Abs(v)+bound > float64(t.f.Value(t.f.MaxFinite)) { // rounded to the largest finite multiple instead
		bound *= 2
	}
	return off <= bound
}

// spacing returns the distance between representable values at v.
func spacing(f weights.Format, v float64) float64 {
	if !f.IsFloat() {
		return 1
	}
	e := int(math.Float64bits(v)>>52&0x7FF) - 1023 // of zero, or of a value of a narrower type
	return power(max(e, 1-f.Bias) - f.MantBits)
}

// power returns 2^e, for e in the normal range of a double.
func power(e int) float64 { return math.Float64frombits(uint64(e+1023) << 52) }
