package cost

import (
	"math"
	"math/bits"
)

// tile is a few rows of both operands at the same places along K.
type tile struct{ stationary, streaming []row }

type row []element

// A tile has two sums along K, two blocks of the stationary operand, and four rounds of the streaming operand's
// lanes. Its rows begin at a block, and at every second round.
func (p *Datapath) tileK() int          { return 2 * p.SumProducts }
func (p *Datapath) stationaryTile() int { return 2 * p.StationaryRows }
func (p *Datapath) streamingTile() int  { return 4 * p.round() }

// round is the number of rows in one run of each lane.
func (p *Datapath) round() int { return p.StreamingRun * p.StreamingLanes }

// stepRates are the streamFeatures of one kind of step.
type stepRates [streamingExponent + 1]rate

// stepRate is a feature's mean over kinds of steps, weighted by their shares; NaN without steps.
func (c *tileCounter) stepRate(feature int) float64 {
	var sum, weight float64
	for kind := range c.steps {
		if r := c.steps[kind][feature]; r.n > 0 {
			share := c.path.StreamingSteps[kind].Share
			sum += share * r.sum / r.n
			weight += share
		}
	}
	return sum / weight
}

// tileCounter gathers tiles' features.
type tileCounter struct {
	path                                             *Datapath
	a                                                arithmetic
	mantMask, expMask                                uint32
	kinds                                            []int       // of the step from each place of a run
	steps                                            []stepRates // by index into StreamingSteps
	dots                                             []dot       // of a tile's streaming rows, and one more
	accumulator, streamNonzero, stayNonzero, borders rate
	alignment, streamToggles, stayToggles            rate
}

func newTileCounter(path *Datapath, d *decoder) *tileCounter {
	c := &tileCounter{path: path, a: d.arithmetic(path), mantMask: d.f.MantMask(), expMask: d.f.ExpMask(), kinds: make([]int, path.StreamingRun)}
	for kind, s := range path.StreamingSteps {
		for _, place := range s.Places {
			c.kinds[place] = kind
		}
	}
	c.steps = make([]stepRates, len(path.StreamingSteps))
	c.dots = newDots(path, path.streamingTile()+1)
	return c
}

// spread is the mean and the variance of a problem's products.
type spread struct{ mean, variance float64 }

// accumulated estimates the sum of the n products before a place: n times the mean, and a random walk in the
// direction of the products at the place, so that equal rows have equal sums. otherwise is the walk's
// direction if these products do not vary.
func (p spread) accumulated(n float64, s, t row, otherwise float64) float64 {
	var sum, squares float64
	for k := range s {
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

// add counts a tile that follows n products along K.
func (c *tileCounter) add(t tile, p spread, n float64) {
	c.operands(t)
	depth, block := c.path.SumProducts, c.path.StationaryRows
	dots, other := c.dots[:len(t.streaming)], &c.dots[len(c.dots)-1]
	for g := 0; g < c.path.tileK(); g += depth {
		for j := range t.streaming {
			c.dot(&dots[j], t.stationary[0], t.streaming[j], p, n, g, j)
		}
		c.along(dots)
		if len(t.stationary) <= block {
			continue
		}
		for j := 0; j < len(t.streaming); j += c.path.StreamingRun {
			c.dot(other, t.stationary[block], t.streaming[j], p, n, g, j+1)
			c.accumulator.add(toggled(uint64(uint32(dots[j].total)), uint64(uint32(other.total))))
		}
	}
}

func (c *tileCounter) dot(d *dot, s, t row, p spread, n float64, group, j int) {
	// The products here may all be zero while earlier ones are not.
	otherwise := float64((7919*j+31*int(n))%1000)/500 - 1
	d.set(s[group:], t[group:], p.accumulated(n, s, t, otherwise), c.a)
}

// along counts steps from dot to dot of the streaming rows.
func (c *tileCounter) along(dots []dot) {
	c.eachStep(len(dots), func(kind, i, j int) {
		a, b := &dots[i], &dots[j]
		rates := &c.steps[kind]
		for k := range a.mant {
			rates[productMantissa].add(toggled(a.mant[k], b.mant[k]))
			rates[productAligned].add(toggled(a.aligned[k], b.aligned[k]))
			rates[productSign].add(truth(a.negative[k] != b.negative[k]))
		}
		for q := range a.first {
			rates[quadSum].add(toggled(uint64(uint32(a.first[q])), uint64(uint32(b.first[q]))))
		}
		rates[groupSum].add(toggled(uint64(uint32(a.sum)), uint64(uint32(b.sum))))
		rates[largestExponent].add(toggled(uint64(a.largest), uint64(b.largest)))
	})
}

// eachStep calls f for every step between rows of a lane, with its index into StreamingSteps and both rows.
func (c *tileCounter) eachStep(rows int, f func(kind, i, j int)) {
	for i := range rows {
		place := i % c.path.StreamingRun
		if j := i + c.path.stride(place); j < rows {
			f(c.kinds[place], i, j)
		}
	}
}

// operands counts features of the operands alone.
func (c *tileCounter) operands(t tile) {
	depth, block := c.path.SumProducts, c.path.StationaryRows
	c.eachStep(len(t.streaming), func(kind, i, j int) {
		a, b, rates := t.streaming[i], t.streaming[j], &c.steps[kind]
		for k := range a {
			x := a[k].bits ^ b[k].bits
			rates[streamingMantissa].add(float64(bits.OnesCount32(x & c.mantMask)))
			rates[streamingExponent].add(float64(bits.OnesCount32(x & c.expMask)))
		}
	})
	for _, o := range []struct {
		rows             []row
		nonzero, toggles *rate
	}{{t.stationary, &c.stayNonzero, &c.stayToggles}, {t.streaming, &c.streamNonzero, &c.streamToggles}} {
		for j := range o.rows {
			r := o.rows[j]
			for g := 0; g < len(r); g += depth {
				any := false
				for k := g; k < g+depth; k++ {
					any = any || r[k].mant > 0
				}
				o.nonzero.add(truth(any))
			}
			for k := range r {
				if j > 0 {
					o.toggles.add(float64(bits.OnesCount32(r[k].bits ^ o.rows[j-1][k].bits)))
				}
			}
		}
	}
	for j := block; j < len(t.stationary); j++ {
		for k := range t.stationary[j] {
			c.borders.add(truth((t.stationary[j][k].mant == 0) != (t.stationary[j-block][k].mant == 0)))
		}
	}
	width := bits.OnesCount32(c.mantMask|c.expMask) + 1
	for j := 0; j < len(t.streaming); j += c.path.StreamingRun {
		for k := range t.streaming[j] {
			x := t.stationary[0][k].bits ^ t.streaming[j][k].bits
			c.alignment.addAll(width-bits.OnesCount32(x), width)
		}
	}
}

// into writes the rates.
func (c *tileCounter) into(s *Features) {
	for _, i := range streamFeatures {
		s[i] = c.stepRate(i)
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
