package cost

import (
	"math"
	"math/bits"
)

// A tile is a few rows of both operands at the same places along K.
const (
	tileK          = 2 * depth
	stationaryRows = 16
	streamingRows  = 32
)

type row [tileK]lane

type tile struct{ stationary, streaming []row }

// stepShares weigh steps between rows of the streaming operand by where they are in a run of four:
// 0→1 and 2→3, 1→2, and from the last to the next run in the same lane, eight rows on. They are
// read off matrices with repeated rows on an H200: runs of 8 save no more than runs of 4, runs of 2
// save a third of it.
var stepShares = [...]float64{0.35, 0.35, 0.30}

// steps hold one rate for each kind of step.
type steps [len(stepShares)]rate

func (s *steps) rate() float64 {
	var sum, weight float64
	for i, r := range s {
		if r.n > 0 {
			sum += stepShares[i] * r.sum / r.n
			weight += stepShares[i]
		}
	}
	return sum / weight // NaN where there is none
}

// motion gathers tiles' signals.
type motion struct {
	a                                                arithmetic
	mantMask, expMask                                uint32
	steps                                            [streamingExponent + 1]steps
	accumulator, streamNonzero, stayNonzero, borders rate
	alignment, streamToggles, stayToggles            rate
}

// spread is what all products of a problem are like: their mean and variance.
type spread struct{ mean, variance float64 }

// accumulated estimates the sum of the n products before a place: as many times the mean, and a
// random walk in the direction that the products at the place go, so that equal rows have equal
// sums.
func (p spread) accumulated(n float64, s, t *row, otherwise float64) float64 {
	var sum, squares float64
	for k := range tileK {
		v := s[k].value*t[k].value - p.mean
		sum += v
		squares += v * v
	}
	z := otherwise
	if squares > 0 {
		z = sum / math.Sqrt(squares)
	}
	return n*p.mean + z*math.Sqrt(n*p.variance)
}

// add takes in a tile that n products along K come before.
func (c *motion) add(t tile, p spread, n float64) {
	c.operands(t)
	first := &t.stationary[0]
	dots := make([]dot, len(t.streaming))
	for g := 0; g < tileK; g += depth {
		for j := range t.streaming {
			c.dot(&dots[j], first, &t.streaming[j], p, n, g, j)
		}
		c.along(dots)
		if len(t.stationary) <= 8 {
			continue
		}
		var d dot
		for j := 0; j < len(t.streaming); j += 4 {
			c.dot(&d, &t.stationary[8], &t.streaming[j], p, n, g, j+1)
			c.accumulator.add(toggled(uint64(uint32(dots[j].total)), uint64(uint32(d.total))))
		}
	}
}

func (c *motion) dot(d *dot, s, t *row, p spread, n float64, group, j int) {
	// All products here may be zero, and those before them not.
	otherwise := float64((7919*j+31*int(n))%1000)/500 - 1
	d.set((*[depth]lane)(s[group:]), (*[depth]lane)(t[group:]), p.accumulated(n, s, t, otherwise), c.a)
}

// along the streaming rows.
func (c *motion) along(dots []dot) {
	eachStep(len(dots), func(kind, i, j int) {
		a, b := &dots[i], &dots[j]
		at := func(signal int, v float64) { c.steps[signal][kind].add(v) }
		for k := range depth {
			at(productMantissa, toggled(a.mant[k], b.mant[k]))
			at(productAligned, toggled(a.aligned[k], b.aligned[k]))
			at(productSign, truth(a.negative[k] != b.negative[k]))
		}
		for q := range a.quads {
			at(quadSum, toggled(uint64(uint32(a.quads[q])), uint64(uint32(b.quads[q]))))
		}
		at(groupSum, toggled(uint64(uint32(a.sum)), uint64(uint32(b.sum))))
		at(largestExponent, toggled(uint64(a.largest), uint64(b.largest)))
	})
}

// eachStep calls f with the kind of a step (stepShares) and the rows that it goes from and to.
func eachStep(rows int, f func(kind, i, j int)) {
	for j := range rows {
		switch {
		case j%2 == 1:
			f(0, j-1, j)
		case j%4 == 2:
			f(1, j-1, j)
		}
		if j%4 == 3 && j+5 < rows {
			f(2, j, j+5)
		}
	}
}

// operands' own signals.
func (c *motion) operands(t tile) {
	eachStep(len(t.streaming), func(kind, i, j int) {
		a, b := &t.streaming[i], &t.streaming[j]
		for k := range tileK {
			x := a[k].bits ^ b[k].bits
			c.steps[streamingMantissa][kind].add(float64(bits.OnesCount32(x & c.mantMask)))
			c.steps[streamingExponent][kind].add(float64(bits.OnesCount32(x & c.expMask)))
		}
	})
	for _, o := range []struct {
		rows             []row
		nonzero, toggles *rate
	}{{t.stationary, &c.stayNonzero, &c.stayToggles}, {t.streaming, &c.streamNonzero, &c.streamToggles}} {
		for j := range o.rows {
			r := &o.rows[j]
			for g := 0; g < tileK; g += depth {
				any := false
				for k := g; k < g+depth; k++ {
					any = any || r[k].mant > 0
				}
				o.nonzero.add(truth(any))
			}
			for k := range tileK {
				if j > 0 {
					o.toggles.add(float64(bits.OnesCount32(r[k].bits ^ o.rows[j-1][k].bits)))
				}
			}
		}
	}
	for j := 8; j < len(t.stationary); j++ {
		for k := range tileK {
			c.borders.add(truth((t.stationary[j][k].mant == 0) != (t.stationary[j-8][k].mant == 0)))
		}
	}
	width := bits.OnesCount32(c.mantMask|c.expMask) + 1
	for j := 0; j < len(t.streaming); j += 4 {
		for k := range tileK {
			x := t.stationary[0][k].bits ^ t.streaming[j][k].bits
			c.alignment.addAll(width-bits.OnesCount32(x), width)
		}
	}
}

// into writes what was gathered.
func (c *motion) into(s *Signals) {
	for i := range c.steps {
		if i != accumulator {
			s[i] = c.steps[i].rate()
		}
	}
	for i, r := range map[int]rate{accumulator: c.accumulator, streamingNonzero: c.streamNonzero,
		stationaryNonzero: c.stayNonzero, stationaryBorders: c.borders, bitAlignment: c.alignment,
		streamingToggles: c.streamToggles, stationaryToggles: c.stayToggles} {
		s[i] = r.sum / r.n
	}
}

func toggled(a, b uint64) float64 { return float64(bits.OnesCount64(a ^ b)) }

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
