package stitch

import (
	"math"
	"math/rand/v2"
	"testing"
)

// ended is a card at 690 W whose work ends after 0.3 s, with sensors behind a filter, or power that decays slowly.
type ended struct {
	lag, box     float64 // seconds, of what all sensors see, and of the buffer's window
	gain         float64 // of the buffer
	tail, fading float64 // watts that are left at the end, and the seconds in which they fade
	runs         int
}

const endedAfter = 0.3

func (c ended) power(t float64) float64 {
	switch {
	case t < 0:
		return 100
	case t < endedAfter:
		return 690
	}
	return 100 + c.tail*math.Exp((endedAfter-t)/c.fading)
}

// stitched returns the trace of the buffer's and the counter's readings.
func (c ended) stitched(t *testing.T) (*Trace, map[string]Sensor) {
	return stitched(t, c.readings(), c.options())
}

func (c ended) options() Options {
	return Options{From: Of(-0.15), To: Of(endedAfter + 0.15), Breaks: []Seconds{0, Of(endedAfter)}, Resamples: 20}
}

func (c ended) readings() (readings []Reading) {
	const fine, begin, end = 1e-4, -0.15, endedAfter + 0.15
	rng := rand.New(rand.NewPCG(5, uint64(c.runs)))
	for run := range c.runs {
		seen, energy := 100.0, 0.0
		sum := []float64{0} // of what is seen, from the beginning
		next, tick, since, from := begin+0.02*rng.Float64(), begin+0.1*rng.Float64(), math.NaN(), 0.0
		for at := begin; at < end; at += fine {
			if c.lag > 0 {
				seen += (c.power(at) - seen) * (1 - math.Exp(-fine/c.lag))
			} else {
				seen = c.power(at)
			}
			energy += seen * fine
			sum = append(sum, energy)
			if at >= next {
				n, over := len(sum)-1, max(1, int(c.box/fine))
				if n >= over {
					readings = append(readings, Reading{Run: run, Sensor: Buffer, At: Of(at), Watts: c.gain*(sum[n]-sum[n-over])/(float64(over)*fine) + rng.NormFloat64()})
				}
				next += 0.02
			}
			if at >= tick {
				if !math.IsNaN(since) {
					readings = append(readings, Reading{Run: run, Sensor: Counter, Since: Of(since), At: Of(at), Watts: (energy - from) / (at - since)})
				}
				since, from, tick = at, energy, tick+0.1
			}
		}
	}
	return readings
}

// TestTimeConstant: a filter of the sensors is told from power that decays slowly.
func TestTimeConstant(t *testing.T) {
	for name, test := range map[string]struct {
		ended
		within float64 // of 690 W, from 10 ms after the start on
	}{
		"lag":                  {ended{lag: 0.012, gain: 1, runs: 12}, 0.03},
		"lag before a box":     {ended{lag: 0.012, box: 0.02, gain: 1, runs: 12}, 0.04},
		"few runs":             {ended{lag: 0.012, gain: 1, runs: 4}, 0.06},
		"no lag":               {ended{box: 0.02, gain: 1, runs: 12}, 0.03},
		"power's own tail":     {ended{box: 0.02, gain: 1, tail: 150, fading: 0.03, runs: 12}, 0.04},
		"a buffer that is off": {ended{lag: 0.012, gain: 1.04, runs: 12}, 0.03},
	} {
		c, found := test.stitched(t)
		lag := found[Buffer].TimeConstant.Seconds()
		if math.Abs(lag-test.lag) > 0.002 || (test.lag == 0) != (lag == 0) {
			t.Errorf("%s: a lag of %v s, planted %v", name, lag, test.lag)
		}
		if gain := found[Buffer].Gain / found[Counter].Gain; math.Abs(gain-test.gain) > 0.01 || math.Abs(found[Counter].Gain-1) > 1e-9 {
			t.Errorf("%s: gains %v and %v, planted %v", name, found[Buffer].Gain, found[Counter].Gain, test.gain)
		}
		for at := 10 * ms; at < Of(endedAfter-0.005); at += c.Step {
			if w, _, _ := c.Mean(at, at+c.Step); math.Abs(w/690-1) > test.within {
				t.Errorf("%s: %.0f W after %v, planted 690", name, w, at)
				break
			}
		}
	}
}

// TestBandHoldsTheRamp: the intervals of a trace that is deconvolved from sensors behind a filter hold the true power, also
// where it rises and where it falls.
func TestBandHoldsTheRamp(t *testing.T) {
	const seeds = 8
	parts := []struct {
		from, to     Seconds
		covered, all int
	}{{from: 0, to: 10}, {from: 10, to: 30}, {from: 30, to: 100}, {from: 100, to: 300}}
	means := 0
	for seed := range uint64(seeds) {
		card := truth{power: leaving, runs: 25, until: 0.45, noise: 4, counting: true, lag: 0.012, sensors: []sampling{{Buffer, 0.002, 0.003, 0.02, 1}}, seed: seed}
		o := card.options()
		o.Breaks, o.Resamples = append(o.Breaks, Of(0.3)), 40
		c, found := stitched(t, card.readings(), o)
		if lag := found[Buffer].TimeConstant.Seconds(); math.Abs(lag-card.lag) > 5e-4 {
			t.Errorf("seed %d: a filter of %v s, planted %v", seed, lag, card.lag)
		}
		exact := card.trace(c)
		for i := range parts {
			p := &parts[i]
			for at := p.from * ms; at < p.to*ms; at += c.Step {
				_, low, high := c.Mean(at, at+c.Step)
				w, _, _ := exact.Mean(at, at+c.Step)
				if p.all++; low <= w && w <= high {
					p.covered++
				}
			}
		}
		watts, low, high := c.Mean(10*ms, 30*ms)
		if low <= 920 && 920 <= high {
			means++
		}
		if half := (high - low) / 2; half > 0.02*watts {
			t.Errorf("seed %d: %.0f ± %.0f W from 10 to 30 ms", seed, watts, half)
		}
	}
	covered, all := 0, 0
	for _, p := range parts {
		covered, all = covered+p.covered, all+p.all
		if p.covered < p.all*17/20 {
			t.Errorf("from %d to %d ms the intervals hold the truth in %d of %d cells", p.from, p.to, p.covered, p.all)
		}
	}
	if covered < all*23/25 {
		t.Errorf("the intervals hold the truth in %d of %d cells", covered, all)
	}
	if means < seeds-2 {
		t.Errorf("%d of %d intervals hold the mean from 10 to 30 ms", means, seeds)
	}
}
