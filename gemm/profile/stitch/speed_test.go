package stitch

import (
	"math"
	"math/rand/v2"
	"testing"
)

// swinging is a card with filtered sensors that lowers its clock for a while, at another moment in each run.
type swinging struct {
	law      SpeedLaw
	lag      float64 // seconds
	runs     int
	common   float64 // watts of the change of power at any clock
	lowered  []float64
	readings []Reading
}

const swingEnd = 0.65 // seconds of work

// speed of a run: a fifth slower for 0.2 s, from one moment on.
func (c *swinging) speed(run int, t float64) float64 {
	if since := t - c.lowered[run]; since >= 0 && since < 0.2 {
		return 0.8
	}
	return 1
}

// usual is power at the usual speed.
func (c *swinging) usual(t float64) float64 {
	if t < 0 || t >= swingEnd {
		return 100
	}
	return 690 + 200*math.Exp(-t/0.1) + c.common*math.Sin(2*math.Pi*t/0.2)
}

func (c *swinging) power(run int, t float64) float64 {
	w := c.usual(t)
	if t >= 0 && t < swingEnd {
		w *= c.law.factor(math.Log(c.speed(run, t)))
	}
	return w
}

// measure the card with a sensor that is read every 20 ms, and a counter that steps every 100 ms.
func (c *swinging) measure(seed uint64) {
	const fine, noise = 1e-4, 2
	rng := rand.New(rand.NewPCG(seed, 1))
	for run := range c.runs {
		c.lowered = append(c.lowered, 0.3+0.1*rng.Float64())
		seen, next, tick := 100.0, -0.14+0.02*rng.Float64(), -0.14+0.1*rng.Float64()
		energy, since := 0.0, math.NaN()
		for t := -0.15; t < swingEnd+0.15; t += fine {
			seen += (c.power(run, t) - seen) * (1 - math.Exp(-fine/c.lag))
			energy += seen * fine
			if t >= next {
				c.readings = append(c.readings, Reading{Run: run, Sensor: Buffer, At: Of(t), Watts: seen + noise*rng.NormFloat64()})
				next += 0.02
			}
			if t >= tick {
				if !math.IsNaN(since) {
					c.readings = append(c.readings, Reading{Run: run, Sensor: Counter, Since: Of(since), At: Of(t), Watts: energy / (t - since)})
				}
				since, energy, tick = t, 0, tick+0.1
			}
		}
	}
}

func (c *swinging) options() Options {
	return Options{
		From: -150 * ms, To: Of(swingEnd + 0.15), Breaks: []Seconds{0, Of(swingEnd)}, Resamples: 30,
		Speed: func(run int, from, to Seconds) float64 {
			const parts = 10
			sum := 0.0
			for i := range parts {
				sum += c.speed(run, from.Seconds()+(to-from).Seconds()*(float64(i)+0.5)/parts) / parts
			}
			return sum
		},
	}
}

// off compares a trace with the mean run's power, from 10 ms after the start: the largest error, and the percentage of
// cells whose interval covers the truth.
func (c *swinging) off(trace *Trace) (largest float64, covered int) {
	const parts = 10
	n := 0
	for i, w := range trace.Watts {
		at := trace.Start + Seconds(i)*trace.Step
		if at < 10*ms || at+trace.Step > Of(swingEnd) {
			continue
		}
		sum := 0.0
		for run := range c.runs {
			for k := range parts {
				sum += c.power(run, at.Seconds()+trace.Step.Seconds()*(float64(k)+0.5)/parts)
			}
		}
		sum /= float64(parts * c.runs)
		largest = max(largest, math.Abs(w/sum-1))
		if trace.Low[i] <= sum && sum <= trace.High[i] {
			covered++
		}
		n++
	}
	return largest, covered * 100 / n
}

// TestSpeedLaw: power that follows the clock is found in full detail, and so is the sensors' time constant.
func TestSpeedLaw(t *testing.T) {
	c := swinging{law: SpeedLaw{1.8, -0.5}, lag: 0.012, runs: 28}
	c.measure(1)
	trace, found := stitched(t, c.readings, c.options())
	if l := trace.Law; l == nil || math.Abs(l.factor(math.Log(0.8))/c.law.factor(math.Log(0.8))-1) > 0.01 {
		t.Errorf("law %+v, planted %+v", l, c.law)
	}
	if s := found[Buffer]; (s.TimeConstant-Of(c.lag)).Abs() > ms || s.Delay.Abs() > ms || s.Window > 4*ms {
		t.Errorf("%+v, planted a lag of %v s alone", s, c.lag)
	}
	off, covered := c.off(trace)
	if off > 0.02 || covered < 85 {
		t.Errorf("off by %.1f %%, %d %% in their intervals", 100*off, covered)
	}
	blind := c.options()
	blind.Speed, blind.Resamples = nil, 2
	without, _ := stitched(t, c.readings, blind)
	if worse, _ := c.off(without); worse < 2*off {
		t.Errorf("off by %.1f %% with the paces, by %.1f %% without", 100*off, 100*worse)
	}
}

// TestNoLaw: power that does not follow speed is found, too.
func TestNoLaw(t *testing.T) {
	c := swinging{lag: 0.012, runs: 28, common: 50}
	c.measure(2)
	trace, _ := stitched(t, c.readings, c.options())
	if x := trace.Law.factor(math.Log(0.8)); math.Abs(x-1) > 0.01 {
		t.Errorf("law %+v, planted none", trace.Law)
	}
	if off, covered := c.off(trace); off > 0.03 || covered < 85 {
		t.Errorf("off by %.1f %%, %d %% in their intervals", 100*off, covered)
	}
}

// TestMeanOfRuns: at the usual speed nothing changes, and a run that counts twice counts twice.
func TestMeanOfRuns(t *testing.T) {
	p := &speeds{log: [][]float64{{0, 0.1, 0}, {0, 0, -0.2}}, works: []bool{true, true, true}, level: []float64{1, 1}}
	p.apply(SpeedLaw{2, 0})
	watts := []float64{100, 100, 100}
	p.mean(watts, func(run int) float64 { return []float64{2, 1}[run] })
	for i, want := range []float64{100, 100 * (2*math.Exp(0.2) + 1) / 3, 100 * (2 + math.Exp(-0.4)) / 3} {
		if !near64(watts[i], want) {
			t.Errorf("cell %d: %v, want %v", i, watts[i], want)
		}
	}
}
