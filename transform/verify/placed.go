package verify

import (
	"fmt"
	"math"

	"github.com/lowtoggle/lowtoggle/internal/elementary"
)

// placedScales checks FP8 scales. Every scale must be the source's scale times a power of two of at least 1. The root
// mean square of the codes under a scale must be about 2^bits times the smallest code. It may be smaller only if the
// scale is the source's, and larger only if twice the scale cannot be stored.
func placedScales(m *Codes, bits int) error {
	sizes := sizesUnder(m)
	slack := 0.51 // the nearest power of two
	if m.Near == nil || m.Feedback {
		slack = 1.2
	}
	for i, s := range m.Result.Scales {
		own := m.Source == nil && sizes[i].largest >= saturated
		if m.Source != nil {
			was := m.Source.Scales[i]
			if was == 0 && s == 0 {
				continue
			}
			if ratio, _ := math.Frexp(float64(s) / float64(was)); ratio != 0.5 || s < was {
				return fmt.Errorf("scale %d is %g, which is not the source's scale %g times a power of two of at least 1", i, s, was)
			}
			own = s == was
		}
		rms := math.Sqrt(sizes[i].squares / sizes[i].n)
		if !(rms > 0) || !(s > 0) {
			continue
		}
		place := elementary.Log2(rms / float64(s) / float64(m.Result.Book.Values[1]))
		tooLarge := place > float64(bits)+slack && m.Result.Book.RoundScale(2*s) == 2*s
		tooSmall := place < float64(bits)-slack && !own
		if tooLarge || tooSmall {
			return fmt.Errorf("scale %d is %g: the root mean square of its codes is 2^%.1f times the smallest code, and the manifest claims about 2^%d times", i, s, place, bits)
		}
	}
	return nil
}

// saturated is the lower bound of the largest code under a scale that was chosen from the largest magnitude. Such a
// scale maps the largest magnitude to 448.
const saturated = 200

// size describes the values under a scale.
type size struct {
	squares, n float64
	largest    float64 // largest code
}

// sizesUnder returns the sizes of the values that the codes approximate, by scale. If these values are unknown, it
// uses the result's values, which have about the same size.
func sizesUnder(m *Codes) []size {
	r, near := m.Result, m.Near
	if near == nil {
		near = r.Row
	}
	sizes, row := make([]size, len(r.Scales)), make([]float32, r.K)
	for n := range r.N {
		near(row, n)
		for k, v := range row {
			s := &sizes[r.Place(n, k)]
			if v-v == 0 {
				s.squares += float64(float64(v) * float64(v))
				s.n++
			}
			if code := math.Abs(float64(r.Book.Values[r.Codes[n*r.K+k]])); code-code == 0 {
				s.largest = max(s.largest, code)
			}
		}
	}
	return sizes
}
