package profile

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"
)

// source is a sensor with its readings.
type source struct {
	Sensor
	readings []Reading
}

// stretch that a reading is the mean of, in seconds since from.
func (s *source) stretch(r Reading, from time.Duration) (a, b float64) {
	end := r.At - s.Delay - from
	if r.Sensor == Counter {
		return (r.Since - s.Delay - from).Seconds(), end.Seconds()
	}
	return (end - s.Window).Seconds(), end.Seconds()
}

// place finds the sensors' windows and delays; only the energy counter's windows are known. Each sensor is
// held against the curve that others give: first the counter's, then that of all others. A delay that all
// have is the business of onset. It returns a smoothness to go on from.
func (s *stitching) place(ctx context.Context) (smoothness, error) {
	reference := s.sources[0]
	used := []*source{reference}
	c, err := s.fit(ctx, used, assumed, growths...)
	if err != nil {
		return assumed, err
	}
	if s.onset(reference, c) {
		if c, err = s.fit(ctx, used, assumed, growths...); err != nil {
			return assumed, err
		}
	}
	for _, other := range s.sources[1:] {
		s.seek(other, c, coarse)
		other.Gain *= s.level(other, c)
		if other.Used, other.Why = s.worth(other, reference, c); other.Used {
			used = append(used, other)
			if c, err = s.fit(ctx, used, c.smoothness); err != nil {
				return assumed, err
			}
		}
	}
	if len(used) == 1 {
		return c.smoothness, nil
	}
	if c, err = s.fit(ctx, used, c.smoothness, growths...); err != nil {
		return assumed, err
	}
	about := c.smoothness
	for _, other := range used[1:] {
		others := slices.DeleteFunc(slices.Clone(used), func(o *source) bool { return o == other })
		if c, err = s.fit(ctx, others, about); err != nil {
			return about, err
		}
		s.seek(other, c, nearby)
	}
	return about, nil
}

// reach is how far from what was assumed a window and a delay are sought.
type reach struct {
	windows        float64 // a factor
	earlier, later float64 // seconds
}

var (
	coarse = reach{4, 0.02, 0.1}
	nearby = reach{1.25, 0.005, 0.005}
)

// seek finds the window and the delay with which the source's readings lie closest to the curve. They stay
// as they are where that is hardly better, as without a jump of power it cannot be.
func (s *stitching) seek(src *source, c *solution, r reach) {
	sum := running(c.watts)
	near := s.nearBreaks(src, r)
	if len(near) == 0 {
		return
	}
	loss := func(window, middle float64) float64 {
		total := 0.0
		for _, n := range near {
			b := n.At.Seconds() - s.from.Seconds() - middle + window/2
			total += math.Abs(n.Watts/src.Gain - s.clipped(b-window, b).mean(sum))
		}
		return total
	}
	window0 := src.Window.Seconds()
	middle0 := src.Delay.Seconds() + window0/2
	before := loss(window0, middle0)
	window, middle, least := window0, middle0, before
	try := func(w, m float64) {
		if l := loss(w, m); l < least {
			window, middle, least = w, m, l
		}
	}
	const widths = 16
	for i := range widths + 1 {
		w := window0 * math.Pow(r.windows, 2*float64(i)/widths-1)
		pace := max(s.step/2, w/10)
		for d := -r.earlier; d <= r.later; d += pace {
			try(w, src.Delay.Seconds()+d+w/2)
		}
	}
	// The middle and the width of a window hardly depend on each other.
	for step := max(s.step, window/8); step > 5e-5; step /= 2 {
		for better := true; better; {
			was := least
			try(window, middle-step)
			try(window, middle+step)
			try(window+step, middle)
			try(max(0, window-step), middle)
			better = least < was
		}
	}
	const significant = 6
	if before-least > significant*least/float64(len(near)) {
		src.Window, src.Delay = seconds(window), seconds(middle-window/2)
	}
}

// nearBreaks are the readings that a window sought within reach could move across a break.
func (s *stitching) nearBreaks(src *source, r reach) (near []Reading) {
	const most = 3000
	before := seconds(r.earlier)
	after := time.Duration(r.windows*float64(src.Window)) + src.Delay + seconds(r.later)
	for _, n := range src.readings {
		if slices.ContainsFunc(s.opt.Breaks, func(b time.Duration) bool { return b-before <= n.At && n.At <= b+after }) {
			near = append(near, n)
		}
	}
	if every := len(near)/most + 1; every > 1 {
		k := 0
		for i := 0; i < len(near); i += every {
			near[k] = near[i]
			k++
		}
		near = near[:k]
	}
	return near
}

// worth says whether a source tells anything that the reference does not, and why not.
func (s *stitching) worth(src, reference *source, c *solution) (bool, string) {
	const (
		longest  = 2   // windows of the reference
		falsest  = 0.1 // off from the reference's gain
		vaguest  = 0.1 // of a jump, by which readings about it may be off
		fewest   = 8
		vanished = 3 // standard deviations that a jump must have to be one
	)
	if src.Window > longest*reference.Window {
		return false, fmt.Sprintf("it averages over %v, the %s over %v", rounded(src.Window), reference.Name, rounded(reference.Window))
	}
	if math.Abs(src.Gain-1) > falsest {
		return false, fmt.Sprintf("it reads %.2f of what the %s says", src.Gain, reference.Name)
	}
	sum := running(c.watts)
	var off []float64
	rows := s.rows([]*source{src})
	if len(rows) < fewest {
		return false, fmt.Sprintf("%d of its readings lie within the curve", len(rows))
	}
	noise := noiseOf(s.cells, rows, c.watts, sum, 0, s.floor)
	for _, r := range rows {
		if jump := math.Abs(c.watts[r.last] - c.watts[r.first]); jump > vanished*noise.watts/vaguest {
			off = append(off, math.Abs(r.watts-r.mean(sum))/jump)
		}
	}
	if len(off) >= fewest {
		if m := median(off); m > vaguest {
			return false, fmt.Sprintf("no window explains it: about jumps of power it is off by %.0f %% of them", 100*m)
		}
	}
	return true, ""
}

func rounded(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }
