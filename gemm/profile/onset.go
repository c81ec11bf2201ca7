package profile

import (
	"context"
	"math"
	"time"
)

// Unseen is how late, or early, all sensors may be together without anyone noticing: it moves the whole curve,
// and is in none of its intervals.
const Unseen = 5 * time.Millisecond

// onset finds the delay of the first sensor, which all others' are measured from: no sensor shows a delay
// that all have. But the card is idle until the first break, and draws power as soon as it works. So the
// readings about that break are held against an even rise from one power to another; when it begins is the
// delay. What is less than Unseen may as well be a slow rise, and is left to the curve. It says whether delays were changed.
func (s *stitching) onset(ctx context.Context, src *source, c *solution) bool {
	const (
		after       = 0.1 // seconds after the break within which the rise should be over
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
	var about []stretch
	for _, r := range src.readings {
		a, b := src.stretch(r, s.from)
		if !s.within(a, b) || b < start-earliest || a > start || b > until {
			continue
		}
		about = append(about, stretch{a - start, b - start, r.Watts})
	}
	idle := int(start / s.step)
	if len(about) < enough || idle < 1 || idle >= s.n {
		return false
	}
	before := running(c.watts)[idle] / float64(idle)
	end := min(s.n-1, int(min(start+after, until)/s.step)-1)
	from := rise{before: before, after: c.watts[end]}
	scale := c.noise[0].watts
	free := from
	loss, fixed := math.Inf(1), math.Inf(1)
	for _, lasts := range []float64{0, 0.01, 0.03} {
		from.lasts = lasts
		for from.begin = -earliest; from.begin <= latest; from.begin += 0.005 {
			if r, l := from.fitted(ctx, about, true); l < loss {
				free, loss = r, l
			}
		}
		from.begin = 0
		if _, l := from.fitted(ctx, about, false); l < fixed {
			fixed = l
		}
	}
	// No reading runs ahead of the card: then it is the rise that is not even.
	if free.begin <= max(Unseen.Seconds(), 2*s.step) || (fixed-loss)/scale < significant {
		return false
	}
	for _, other := range s.sources {
		other.Delay += seconds(free.begin)
	}
	return true
}

// stretch is a reading about a break, in seconds from it.
type stretch struct{ a, b, watts float64 }

// rise is power that goes evenly from one value to another.
type rise struct{ before, after, begin, lasts float64 }

// mean power from a to b.
func (r rise) mean(a, b float64) float64 {
	return r.before + (r.after-r.before)*(r.risen(b)-r.risen(a))/(b-a)
}

// risen is the integral of the share of the rise up to t.
func (r rise) risen(t float64) float64 {
	t -= r.begin
	switch {
	case t <= 0:
		return 0
	case t < r.lasts:
		return t * t / 2 / r.lasts
	}
	return t - r.lasts/2
}

// fitted is the rise nearby that lies closest to readings, and the sum of how far they are off. Its begin
// may be held.
func (r rise) fitted(ctx context.Context, about []stretch, begin bool) (rise, float64) {
	loss := func(r rise) float64 {
		total := 0.0
		for _, s := range about {
			total += math.Abs(s.watts - r.mean(s.a, s.b))
		}
		return total
	}
	watts := 50 * kilowatts(r.after-r.before)
	moves := []move[rise]{
		func(r *rise, step float64) { r.after += watts * step },
		func(r *rise, step float64) { r.lasts = max(0, r.lasts+0.005*step) },
	}
	if begin {
		moves = append(moves,
			func(r *rise, step float64) { r.begin += 0.005 * step },
			func(r *rise, step float64) { r.begin, r.lasts = r.begin+0.0025*step, max(0, r.lasts-0.005*step) })
	}
	return descend(ctx, r, 0.01, loss, moves...)
}
