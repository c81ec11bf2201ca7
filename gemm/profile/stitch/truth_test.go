package stitch

import (
	"math"
	"math/rand/v2"
)

// truth is a card with known power. Its sensors' readings are simulated.
type truth struct {
	power    func(t float64) float64 // watts at seconds since the work began
	runs     int
	until    float64 // seconds; readings begin 150 ms before the work
	noise    float64 // watts, the standard deviation of a reading
	stalled  float64 // share of readings that are seen late, by up to 20 ms
	counting bool    // whether there is an energy counter
	unsteady float64 // seconds that a step of it is seen late, at most
	sensors  []sampling
	delay    float64 // of all sensors, in seconds
	lag      float64 // time constant of the filter that all sensors share, in seconds
	seed     uint64
}

// sampling is a power sensor; times in seconds.
type sampling struct {
	name                 string
	window, delay, every float64
	gain                 float64
}

var (
	instant    = sampling{Instant, 0.025, 0, 0.1, 1}
	buffer     = sampling{Buffer, 0.020, 0, 0.02, 1}
	overSecond = sampling{Average, 1, 0, 0.1, 1}
)

const idleTime = 0.15 // seconds of idleness before the work

// overshooting returns the power of a card that reaches its cap from idle: up within 10 ms, an oscillation, then 690 W.
func overshooting(t float64) float64 {
	const idle, steady, up = 90, 690, 0.01
	switch {
	case t < 0:
		return idle
	case t < up:
		return idle + (steady+40-idle)*t/up
	}
	return steady + 40*math.Exp((up-t)/1.5)*math.Cos(2*math.Pi*(t-up)/1.1)
}

// leaving returns the power of a card that leaves idle, exceeds its cap for 45 ms, is then held back, and is idle again after 0.3 s.
func leaving(t float64) float64 {
	const idle, high, held, first, end = 130, 920, 730, 0.045, 0.3
	switch {
	case t < 0 || t >= end:
		return idle
	case t < first:
		return high
	}
	return held + (high-held)*math.Exp((first-t)/0.03)
}

// energy returns the integral of power as sensors behind a filter with this time constant see it.
func (c truth) energy(lag float64) func(t float64) float64 {
	const fine, before = 1e-4, 2.0
	sum := make([]float64, int((c.until+before)/fine)+2)
	seen, keep := c.power(-before), 0.0
	if lag > 0 {
		keep = math.Exp(-fine / lag)
	}
	for i := range len(sum) - 1 {
		seen = keep*seen + (1-keep)*c.power((float64(i)+0.5)*fine-before)
		sum[i+1] = sum[i] + fine*seen
	}
	return func(t float64) float64 {
		x := (t + before) / fine
		i := min(len(sum)-2, max(0, int(x)))
		return sum[i] + (x-float64(i))*(sum[i+1]-sum[i])
	}
}

func (c truth) readings() (all []Reading) {
	rng := rand.New(rand.NewPCG(c.seed, 7))
	energy := c.energy(c.lag)
	late := func() float64 {
		if rng.Float64() < c.stalled {
			return 0.02 * rng.Float64()
		}
		return math.Abs(2e-4 * rng.NormFloat64())
	}
	for run := range c.runs {
		if c.counting {
			tick := 0.1*rng.Float64() - idleTime
			for seen := tick; tick < c.until; {
				next := tick + 0.1 + 1e-3*rng.NormFloat64()
				nextSeen := next + late()
				if c.unsteady > 0 {
					nextSeen += c.unsteady * rng.Float64()
				}
				all = append(all, Reading{
					Run: run, Sensor: Counter, Since: Of(seen), At: Of(nextSeen),
					Watts: (energy(next-c.delay)-energy(tick-c.delay))/(nextSeen-seen) + c.noise*rng.NormFloat64(),
				})
				tick, seen = next, nextSeen
			}
		}
		for _, s := range c.sensors {
			for at := s.every*rng.Float64() - idleTime; at < c.until; at += s.every {
				end := at - s.delay - c.delay
				all = append(all, Reading{
					Run: run, Sensor: s.name, At: Of(at + late()),
					Watts: s.gain*(energy(end)-energy(end-s.window))/s.window + c.noise*rng.NormFloat64(),
				})
			}
		}
	}
	return all
}

func (c truth) options() Options {
	return Options{From: -Of(idleTime), To: Of(c.until), Breaks: []Seconds{0}, Seed: c.seed, Resamples: 20}
}

// trace returns the true trace in the cells of another.
func (c truth) trace(like *Trace) *Trace {
	energy := c.energy(0)
	exact := &Trace{Start: like.Start, Step: like.Step}
	for i := range like.Watts {
		a := (like.Start + Seconds(i)*like.Step).Seconds()
		exact.Watts = append(exact.Watts, (energy(a+like.Step.Seconds())-energy(a))/like.Step.Seconds())
	}
	return exact
}
