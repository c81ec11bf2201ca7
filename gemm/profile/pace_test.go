package profile

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// swinging is a card whose sensors lag, and that lowers its clock for a while at another moment in each run.
type swinging struct {
	law      Law
	lag      float64 // seconds
	runs     int
	common   float64 // watts that power rises and falls by whatever the clock
	lowered  []float64
	readings []Reading
}

const swingEnd = 0.8 // seconds of work

// pace of a run: a fifth slower for two tenths of a second, from one moment on.
func (c *swinging) pace(run int, t float64) float64 {
	if since := t - c.lowered[run]; since >= 0 && since < 0.2 {
		return 0.8
	}
	return 1
}

// usual is power at the usual pace.
func (c *swinging) usual(t float64) float64 {
	if t < 0 || t >= swingEnd {
		return 100
	}
	return 690 + 200*math.Exp(-t/0.1) + c.common*math.Sin(2*math.Pi*t/0.2)
}

func (c *swinging) power(run int, t float64) float64 {
	w := c.usual(t)
	if t >= 0 && t < swingEnd {
		w *= c.law.factor(math.Log(c.pace(run, t)))
	}
	return w
}

// measure the card with a sensor that is asked every 20 ms, and a counter that steps every 100 ms.
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
				c.readings = append(c.readings, Reading{Run: run, Sensor: Buffer, At: seconds(t), Watts: seen + noise*rng.NormFloat64()})
				next += 0.02
			}
			if t >= tick {
				if !math.IsNaN(since) {
					c.readings = append(c.readings, Reading{Run: run, Sensor: Counter, Since: seconds(since), At: seconds(t), Watts: energy / (t - since)})
				}
				since, energy, tick = t, 0, tick+0.1
			}
		}
	}
}

func (c *swinging) options() StitchOptions {
	return StitchOptions{
		From: -150 * time.Millisecond, To: seconds(swingEnd + 0.15), Breaks: []time.Duration{0, seconds(swingEnd)}, Resamples: 50,
		Pace: func(run int, from, to time.Duration) float64 {
			const parts = 10
			sum := 0.0
			for i := range parts {
				sum += c.pace(run, from.Seconds()+(to-from).Seconds()*(float64(i)+0.5)/parts) / parts
			}
			return sum
		},
	}
}

// exact is the mean run's power, and how far a curve is off from it, from 10 ms after the start.
func (c *swinging) off(curve *Curve) (largest float64, covered int) {
	const parts = 10
	n := 0
	for i, w := range curve.Watts {
		at := curve.Start + time.Duration(i)*curve.Step
		if at < 10*time.Millisecond || at+curve.Step > seconds(swingEnd) {
			continue
		}
		sum := 0.0
		for run := range c.runs {
			for k := range parts {
				sum += c.power(run, at.Seconds()+curve.Step.Seconds()*(float64(k)+0.5)/parts)
			}
		}
		sum /= float64(parts * c.runs)
		largest = max(largest, math.Abs(w/sum-1))
		if curve.Low[i] <= sum && sum <= curve.High[i] {
			covered++
		}
		n++
	}
	return largest, covered * 100 / n
}

// TestPace: power that goes with the clock is found in full detail, from how runs differ; the sensors' lag from
// how they see the work's end.
func TestPace(t *testing.T) {
	c := swinging{law: Law{1.8, -0.5}, lag: 0.012, runs: 40}
	c.measure(1)
	curve, found := stitched(t, c.readings, c.options())
	if l := curve.Law; l == nil || math.Abs(l.factor(math.Log(0.8))/c.law.factor(math.Log(0.8))-1) > 0.01 {
		t.Errorf("law %+v, planted %+v", l, c.law)
	}
	if s := found[Buffer]; (s.Lag-seconds(c.lag)).Abs() > time.Millisecond || s.Delay.Abs() > time.Millisecond || s.Window > 4*time.Millisecond {
		t.Errorf("%+v, planted a lag of %v s alone", s, c.lag)
	}
	off, covered := c.off(curve)
	if off > 0.02 || covered < 85 {
		t.Errorf("off by %.1f %%, %d %% in their intervals", 100*off, covered)
	}
	blind := c.options()
	blind.Pace = nil
	without, _ := stitched(t, c.readings, blind)
	if worse, _ := c.off(without); worse < 2*off {
		t.Errorf("off by %.1f %% with the paces, by %.1f %% without", 100*off, 100*worse)
	}
}

// TestNoLaw: power that does not follow the pace is found all the same.
func TestNoLaw(t *testing.T) {
	c := swinging{lag: 0.012, runs: 40, common: 50}
	c.measure(2)
	curve, _ := stitched(t, c.readings, c.options())
	if x := curve.Law.factor(math.Log(0.8)); math.Abs(x-1) > 0.01 {
		t.Errorf("law %+v, planted none", curve.Law)
	}
	if off, covered := c.off(curve); off > 0.03 || covered < 85 {
		t.Errorf("off by %.1f %%, %d %% in their intervals", 100*off, covered)
	}
}

// TestPacing: at the usual pace nothing changes, and a run that counts twice counts twice.
func TestPacing(t *testing.T) {
	p := &pacing{pace: [][]float64{{0, 0.1, 0}, {0, 0, -0.2}}, works: []bool{true, true, true}, level: []float64{1, 1}}
	p.follow(Law{2, 0})
	watts := []float64{100, 100, 100}
	p.mean(watts, func(run int) float64 { return []float64{2, 1}[run] })
	for i, want := range []float64{100, 100 * (2*math.Exp(0.2) + 1) / 3, 100 * (2 + math.Exp(-0.4)) / 3} {
		if !near64(watts[i], want) {
			t.Errorf("cell %d: %v, want %v", i, watts[i], want)
		}
	}
}

// TestPaceOfRuns: a run's pace is told over what is usual for the leg, at the moments of the mean run.
func TestPaceOfRuns(t *testing.T) {
	ms := func(all ...int) (at []time.Duration) {
		for _, n := range all {
			at = append(at, time.Duration(n)*time.Millisecond)
		}
		return at
	}
	done := []int{0, 10, 20, 60, 100}
	p := Profile{Legs: []Leg{{Executions: 20, Begin: 0, End: 20 * time.Millisecond}, {Executions: 80, Begin: 20 * time.Millisecond, End: 40 * time.Millisecond}}}
	p.progressed(map[int]Progress{
		1: {done, ms(0, 10, 20, 30, 40)},
		2: {done, ms(0, 5, 10, 20, 30)},
		3: {done, ms(0, 15, 30, 40, 50)},
	})
	p.usual = evenly(p.progress, p.Legs)
	for _, test := range []struct {
		run, from, to int
		want          float64
	}{
		{1, 0, 10, 1}, {1, 25, 35, 1}, {1, 15, 25, 1}, // another leg has its own usual pace
		{2, 0, 10, 2}, {2, 12, 18, 2}, {2, 22, 38, 1},
		{3, 2, 8, 10.0 / 15}, {3, 30, 40, 1},
		{9, 0, 10, 1}, // of which nothing is known
	} {
		if got := p.pace(test.run, ms(test.from)[0], ms(test.to)[0]); !near64(got, test.want) {
			t.Errorf("run %d from %d to %d ms: %v, want %v", test.run, test.from, test.to, got, test.want)
		}
	}
	uneven := Progress{Done: done, At: ms(0, 4, 20, 36, 40)} // slower at the end of both legs
	if got := evenly(uneven, p.Legs); got.At[1] != 10*time.Millisecond || got.At[3] != 30*time.Millisecond {
		t.Errorf("at an even pace %v", got.At)
	}
}
