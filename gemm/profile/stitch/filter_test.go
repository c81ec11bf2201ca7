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
