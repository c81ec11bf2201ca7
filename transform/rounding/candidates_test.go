package rounding

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// TestListAgreesWithListEdge: list gives the candidates of listEdge, up to the ends of its range.
func TestListAgreesWithListEdge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := candidatesOf(format(t, rapid.SampledFrom(floats).Draw(t, "type")))
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "targets"), 0))
		for i := range 200 {
			mag := c.from + uint32(rng.Uint64N(uint64(c.to-c.from)))
			switch i {
			case 0:
				mag = c.from
			case 1:
				mag = c.to - 1
			}
			target := math.Float32frombits(mag | uint32(i&1)<<31)
			var fast, edge [maxSlots]uint32
			c.list(&fast, target)
			c.listEdge(&edge, target)
			if fast != edge {
				t.Fatalf("candidates for %g are %x and %x", target, fast, edge)
			}
		}
	})
}

// TestCandidatesAreValues: every candidate is a value of the format, with the number of significant bits of its slot.
func TestCandidatesAreValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := format(t, rapid.SampledFrom(allTypes).Draw(t, "type"))
		c := candidatesOf(f)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "targets"), 0))
		for range 200 {
			target := c.clamp(float32(rng.NormFloat64() * math.Exp2(float64(rng.IntN(250)-150))))
			var slots [maxSlots]uint32
			c.list(&slots, target)
			for i, b := range slots[:c.slots] {
				v := math.Float32frombits(b)
				if v != stored(f, v) || v != 0 && significantBits(v) != significant(i) {
					t.Fatalf("candidate %d for %g in %s is %g", i, target, f.DType, v)
				}
			}
		}
	})
}
