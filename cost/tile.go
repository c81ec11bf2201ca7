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

// stepRate returns a feature's mean over kinds of steps, weighted by their shares; NaN without steps.
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

// tileCounter accumulates tiles' features.
type tileCounter struct {
	path                                             *Datapath
	a                                                arithmetic
	mantMask, expMask                                uint32
	kinds                                            []int       // kind of the step from each place of a run
	steps                                            []stepRates // by index into StreamingSteps
	dots                                             []dot       // dots of a tile's streaming rows, and one more
	before, otherBefore                              []float64   // accumulators before each dot, and before other
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
	c.before, c.otherBefore = make([]float64, path.streamingTile()), make([]float64, path.streamingTile())
	return c
}

// reset begins a new mean of every rate.
func (c *tileCounter) reset() {
	clear(c.steps)
	c.accumulator, c.streamNonzero, c.stayNonzero, c.borders = rate{}, rate{}, rate{}, rate{}
	c.alignment, c.streamToggles, c.stayToggles = rate{}, rate{}, rate{}
}

// spread is the mean and the variance of a problem's products.
type spread struct{ mean, variance float64 }

// accumulated estimates the sum of the n products before a place: n times the mean, plus a random walk in the
// direction of the products at the place. Equal rows therefore have equal sums. If these products do not vary,
// otherwise is the walk's direction.
func (p spread) accumulated(n float64, s, t row, otherwise float64) float64 {
	var sum, squares float64
	for k := range s {
		v := float64(s[k].value*t[k].value) - p.mean
		sum += v
		squares += float64(v * v)
	}
	z := otherwise
	if squares > 0 {
		z = sum / math.Sqrt(squares)
	}
	return float64(n*p.mean) + float64(z*math.Sqrt(n*p.variance))
}

// add counts a tile after n products along K.
func (c *tileCounter) add(t tile, p spread, n float64) {
	c.operands(t)
	depth, block := c.path.SumProducts, c.path.StationaryRows
	dots, other := c.dots[:len(t.streaming)], &c.dots[len(c.dots)-1]
	hasOther := len(t.stationary) > block
	for j, s := range t.streaming {
		c.before[j] = p.accumulated(n, t.stationary[0], s, otherwise(n, j))
		if hasOther && j%c.path.StreamingRun == 0 {
			c.otherBefore[j] = p.accumulated(n, t.stationary[block], s, otherwise(n, j+1))
		}
	}
	for g := 0; g < c.path.tileK(); g += depth {
		for j, s := range t.streaming {
			dots[j].set(t.stationary[0][g:], s[g:], c.before[j], c.a)
		}
		c.along(dots)
		if !hasOther {
			continue
		}
		for j := 0; j < len(t.streaming); j += c.path.StreamingRun {
			other.set(t.stationary[block][g:], t.streaming[j][g:], c.otherBefore[j], c.a)
			c.accumulator.add(toggled(uint64(uint32(dots[j].total)), uint64(uint32(other.total))))
		}
	}
}

// otherwise returns the direction of the accumulators if the products in a tile do not vary. They may all be zero
// while earlier products are not.
func otherwise(n float64, j int) float64 { return float64((7919*j+31*int(n))%1000)/500 - 1 }

// along counts steps from dot to dot of the streaming rows.
func (c *tileCounter) along(dots []dot) {
	c.eachStep(len(dots), func(kind, i, j int) {
		a, b := &dots[i], &dots[j]
		rates := &c.steps[kind]
		var mant, aligned, sign, first int
		n := len(a.mant)
		x, y := a.aligned[:n], b.aligned[:n]
		was, is, other := a.negative[:n], b.negative[:n], b.mant[:n]
		for k, m := range a.mant {
			mant += bits.OnesCount64(m ^ other[k])
			aligned += bits.OnesCount64(x[k] ^ y[k])
			if was[k] != is[k] {
				sign++
			}
		}
		for q, v := range a.first {
			first += bits.OnesCount32(uint32(v ^ b.first[q]))
		}
		rates[productMantissa].addAll(mant, n)
		rates[productAligned].addAll(aligned, n)
		rates[productSign].addAll(sign, n)
		rates[quadSum].addAll(first, len(a.first))
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

// operands counts the features that depend on the operands alone.
func (c *tileCounter) operands(t tile) {
	depth, block := c.path.SumProducts, c.path.StationaryRows
	c.eachStep(len(t.streaming), func(kind, i, j int) {
		a, b := t.streaming[i], t.streaming[j]
		var mantissa, exponent int
		for k := range a {
			x := a[k].bits ^ b[k].bits
			mantissa += bits.OnesCount32(x & c.mantMask)
			exponent += bits.OnesCount32(x & c.expMask)
		}
		c.steps[kind][streamingMantissa].addAll(mantissa, len(a))
		c.steps[kind][streamingExponent].addAll(exponent, len(a))
	})
	for _, o := range []struct {
		rows             []row
		nonzero, toggles *rate
	}{{t.stationary, &c.stayNonzero, &c.stayToggles}, {t.streaming, &c.streamNonzero, &c.streamToggles}} {
		for j, r := range o.rows {
			for g := 0; g < len(r); g += depth {
				any := false
				for k := g; k < g+depth; k++ {
					any = any || r[k].mant > 0
				}
				o.nonzero.add(truth(any))
			}
			if j == 0 {
				continue
			}
			toggles := 0
			for k := range r {
				toggles += bits.OnesCount32(r[k].bits ^ o.rows[j-1][k].bits)
			}
			o.toggles.addAll(toggles, len(r))
		}
	}
	for j := block; j < len(t.stationary); j++ {
		borders := 0
		for k := range t.stationary[j] {
			if (t.stationary[j][k].mant == 0) != (t.stationary[j-block][k].mant == 0) {
				borders++
			}
		}
		c.borders.addAll(borders, len(t.stationary[j]))
	}
	width := bits.OnesCount32(c.mantMask|c.expMask) + 1
	for j := 0; j < len(t.streaming); j += c.path.StreamingRun {
		differ, n := 0, len(t.streaming[j])
		for k := range t.streaming[j] {
			differ += bits.OnesCount32(t.stationary[0][k].bits ^ t.streaming[j][k].bits)
		}
		c.alignment.addAll(n*width-differ, n*width)
	}
}

// into writes the rates to s.
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
