package profile

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/lowtoggle/lowtoggle/internal/stats"
)

// A card's work ends at a moment that its stamps tell, and power falls at once: no sensor sees anything sharper. What
// a quick one shows of it is that sensor's own response.

// response is how a sensor shows a jump of power: delay after it, as the mean over a window of what follows with
// a lag; all in seconds.
type response struct{ window, lag, delay float64 }

// fall is what a sensor shows of the work's end.
type fall struct {
	response
	before, after float64 // watts
}

// at is what it shows t after the end.
func (f fall) at(t float64) float64 {
	t -= f.delay
	return f.before + (f.after-f.before)*(1-seen(0, t-f.window, t, f.lag))
}

// moment is a reading, t seconds after the end.
type moment struct{ t, watts float64 }

// ending is what a sensor said about the work's end.
type ending struct {
	*source
	about         []moment
	before, after []float64 // watts while it worked, the latest of each run, and when all was over
}

// Times about the end, in seconds.
const (
	shortly = 0.005 // before it, in which power hardly changes
	over    = 0.1   // after it, when all is over
	until   = 0.15  // after it
)

// ending of a source.
func (s *stitching) ending(src *source) ending {
	e, last := ending{source: src}, map[int]Reading{}
	start, end := s.breaks[0], s.breaks[len(s.breaks)-1]
	for _, r := range src.readings {
		at := (r.At - s.from).Seconds()
		t := at - end
		if t > -shortly && t < until {
			e.about = append(e.about, moment{t, r.Watts})
		}
		if t > over && t < until {
			e.after = append(e.after, r.Watts)
		}
		if l, ok := last[r.Run]; at > start && t < 0 && (!ok || r.At > l.At) {
			last[r.Run] = r
		}
	}
	for _, r := range last { // while power stays the same a sensor may say nothing new
		e.before = append(e.before, r.Watts)
	}
	return e
}

// lag finds the response of the sensor that has most readings about the work's end. Where it lags, all sensors are
// taken to see power through the same filter, and it becomes the one that the others are held against. It says
// whether that is so. A tail that power itself has looks the same; see refuted.
func (s *stitching) lag(ctx context.Context) bool {
	const (
		fewest      = 16    // readings about the end
		least       = 0.003 // seconds; a shorter lag makes no difference
		significant = 6
	)
	if len(s.breaks) < 2 {
		return false
	}
	var e ending
	for _, src := range s.sources {
		if src.Name == Counter || src.Window > seconds(until) {
			continue
		}
		if other := s.ending(src); len(other.about) > len(e.about) {
			e = other
		}
	}
	if len(e.about) < fewest || len(e.before) == 0 || len(e.after) == 0 {
		return false
	}
	first := fall{response{window: e.Window.Seconds()}, stats.Median(e.before), stats.Median(e.after)}
	best, without := first.nearest(ctx, e.about, false)
	off := without
	for _, lag := range []float64{0.005, 0.01, 0.02, 0.04} {
		for _, window := range []float64{0, 0.01, 0.025} {
			f := first
			f.window, f.lag = window, lag
			if f, l := f.nearest(ctx, e.about, true); l < off {
				best, off = f, l
			}
		}
	}
	if best.lag < least || without-off < significant*off/float64(len(e.about)) {
		return false
	}
	e.Window, e.Delay = seconds(best.window), seconds(best.delay)
	for _, src := range s.sources {
		src.Lag = seconds(best.lag)
	}
	i := slices.Index(s.sources, e.source)
	copy(s.sources[1:i+1], s.sources[:i])
	s.sources[0] = e.source
	return true
}

// refuted says whether the energy counter, held against what sensors of a common lag say, would be ahead of the card:
// then power itself has a tail, and the lag is none.
func (s *stitching) refuted() bool {
	const ahead = -3 * time.Millisecond
	counter := s.counter()
	return counter != nil && counter.Delay < ahead
}

// counter is the energy counter, nil where it has too few readings.
func (s *stitching) counter() *source {
	for _, src := range s.sources {
		if src.Name == Counter && s.count(src) == enough {
			return src
		}
	}
	return nil
}

// nearest is the fall nearby from which readings are least off, and by how much in sum.
func (f fall) nearest(ctx context.Context, about []moment, lags bool) (fall, float64) {
	const earlier = 0.001 // seconds by which stamps may be wrong: no sensor sees what is yet to come
	loss := func(f fall) float64 {
		if f.window < 0 || f.lag < 0 || f.delay < -earlier {
			return math.Inf(1)
		}
		total := 0.0
		for _, m := range about {
			total += math.Abs(m.watts - f.at(m.t))
		}
		return total
	}
	watts := 20 * kilowatts(f.after-f.before)
	moves := []move[fall]{
		func(f *fall, step float64) { f.before += watts * step },
		func(f *fall, step float64) { f.after += watts * step },
		func(f *fall, step float64) { f.delay += 0.005 * step },
		// The middle of what it sees stays where it is.
		func(f *fall, step float64) { f.window, f.delay = f.window+0.01*step, f.delay-0.005*step },
	}
	if lags {
		moves = append(moves,
			func(f *fall, step float64) { f.lag, f.delay = f.lag+0.005*step, f.delay-0.005*step },
			func(f *fall, step float64) { f.lag, f.window = f.lag+0.005*step, f.window-0.01*step },
			func(f *fall, step float64) { f.lag += 0.005 * step })
	}
	return descend(ctx, f, 0.005, loss, moves...)
}
