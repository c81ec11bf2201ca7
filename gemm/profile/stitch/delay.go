package stitch

import (
	"context"
	"math"
)

// UnresolvedDelay is the largest delay common to all sensors that remains undetected. It shifts the whole trace and is
// not included in any interval.
const UnresolvedDelay = 5 * ms

// commonDelay finds the delay that all sensors share. Delays are fitted relative to the first sensor, so the fit cannot
// show a common delay. But the card is idle until the first break and draws power as soon as it works. commonDelay
// therefore fits a linear ramp of power to the readings around that break. The start of the ramp is the delay. A delay
// below UnresolvedDelay cannot be distinguished from a slow ramp and is left in the trace. commonDelay returns whether
// it changed the delays.
func (s *stitcher) commonDelay(ctx context.Context, sen *sensor, c *solution) bool {
	const (
		after       = 0.1 // seconds after the break within which the ramp should end
		significant = 6
	)
	if len(s.breaks) == 0 {
		return false
	}
	start := s.breaks[0]
	until := start + latest + after
	if len(s.breaks) > 1 {
		until = min(until, s.breaks[1])
	}
	var near []stretch
	for _, r := range sen.readings {
		a, b := sen.stretch(r, s.from)
		if !s.within(a, b) || b < start-earliest || a > start || b > until {
			continue
		}
		near = append(near, stretch{a - start, b - start, r.Watts})
	}
	idle := int(start / s.step)
	if len(near) < minReadings || idle < 1 || idle >= s.n {
		return false
	}
	before := running(c.watts)[idle] / float64(idle)
	end := min(s.n-1, int(min(start+after, until)/s.step)-1)
	from := ramp{before: before, after: c.watts[end]}
	scale := c.noise[0].watts
	free := from
	loss, fixed := math.Inf(1), math.Inf(1)
	for _, lasts := range []float64{0, 0.01, 0.03} {
		from.lasts = lasts
		for from.begin = -earliest; from.begin <= latest; from.begin += 0.005 {
			if r, l := from.fit(ctx, near, true); l < loss {
				free, loss = r, l
			}
		}
		from.begin = 0
		if _, l := from.fit(ctx, near, false); l < fixed {
			fixed = l
		}
	}
	// No reading can precede the card's power. A ramp that starts before the break means that power does not rise
	// linearly.
	if free.begin <= max(UnresolvedDelay.Seconds(), 2*s.step) || (fixed-loss)/scale < significant {
		return false
	}
	for _, other := range s.sensors {
		other.Delay += Of(free.begin)
	}
	return true
}

// stretch is a reading near a break: watts averaged from a to b, in seconds from the break.
type stretch struct{ a, b, watts float64 }

// ramp is power that changes linearly from before to after, in watts. begin and lasts are in seconds.
type ramp struct{ before, after, begin, lasts float64 }

// mean returns the mean power from a to b.
func (r ramp) mean(a, b float64) float64 {
	return r.before + (r.after-r.before)*(r.risen(b)-r.risen(a))/(b-a)
}

// risen returns the integral of the ramp's completed fraction up to t, in seconds.
func (r ramp) risen(t float64) float64 {
	t -= r.begin
	switch {
	case t <= 0:
		return 0
	case t < r.lasts:
		return t * t / 2 / r.lasts
	}
	return t - r.lasts/2
}

// fit returns the ramp with the least absolute residuals near r, and the sum of the residuals. The start is fitted only
// if begin is true.
func (r ramp) fit(ctx context.Context, near []stretch, begin bool) (ramp, float64) {
	loss := func(r ramp) float64 {
		total := 0.0
		for _, s := range near {
			total += math.Abs(s.watts - r.mean(s.a, s.b))
		}
		return total
	}
	watts := 50 * wattScale(r.after-r.before)
	moves := []move[ramp]{
		func(r *ramp, step float64) { r.after += watts * step },
		func(r *ramp, step float64) { r.lasts = max(0, r.lasts+0.005*step) },
	}
	if begin {
		moves = append(moves,
			func(r *ramp, step float64) { r.begin += 0.005 * step },
			func(r *ramp, step float64) { r.begin, r.lasts = r.begin+0.0025*step, max(0, r.lasts-0.005*step) })
	}
	return patternSearch(ctx, r, 0.01, loss, moves...)
}
