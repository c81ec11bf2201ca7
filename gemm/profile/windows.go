package profile

import (
	"context"
	"math"
	"slices"
	"time"
)

// How far from what was assumed windows, by a factor, and delays, in seconds, are sought.
const widest, earliest, latest = 4, 0.02, 0.1

// seek finds the window and the delay with which the source's readings lie closest to the curve. They stay
// as they are where that is hardly better, as without a jump of power it cannot be, and where the context ends.
func (s *stitching) seek(ctx context.Context, src *source, c *solution) {
	near := s.nearBreaks(src)
	if len(near) == 0 {
		return
	}
	loss := func(window, middle float64) float64 {
		total := 0.0
		for _, n := range near {
			b := n.At.Seconds() - s.from.Seconds() - middle + window/2
			total += math.Abs(n.Watts/src.Gain - s.spanOf(n.Run, b-window, b, src.Lag).mean(c.watts))
		}
		return total
	}
	window0 := src.Window.Seconds()
	middle0 := src.Delay.Seconds() + window0/2
	before := loss(window0, middle0)
	window, middle, least := window0, middle0, before
	try := func(w, m float64) {
		if delay := m - w/2 - src.Delay.Seconds(); ctx.Err() != nil || w < 0 || w > widest*window0 || delay < -earliest || delay > latest {
			return
		}
		if l := loss(w, m); l < least {
			window, middle, least = w, m, l
		}
	}
	const widths = 16
	for i := range widths + 1 {
		w := window0 * math.Pow(widest, 2*float64(i)/widths-1)
		pace := max(s.step/2, w/10)
		for d := -earliest; d <= latest; d += pace {
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
			try(window-step, middle)
			better = least < was
		}
	}
	const significant = 6
	if before-least > significant*least/float64(len(near)) {
		src.Window, src.Delay = seconds(window), seconds(middle-window/2)
	}
}

// settle finds the window and the delay with which the source fits a curve best that follows it: against a
// curve that others gave a window seems the shorter the less they resolve. Where the context ends it settles for less.
func (s *stitching) settle(ctx context.Context, src *source, used []*source, c *solution) {
	rows := slices.Clone(c.rows)
	k := slices.Index(used, src)
	var ends []float64 // of the source's rows, less the delay
	var runs []int
	for _, r := range src.readings {
		a, b := src.stretch(r, s.from)
		if s.within(a, b) {
			ends = append(ends, b+src.Delay.Seconds())
			runs = append(runs, r.Run)
		}
	}
	misfit := func(window, middle float64) float64 {
		i := 0
		for j := range rows {
			if rows[j].sensor == k {
				b := ends[i] - middle + window/2
				rows[j].span = s.spanOf(runs[i], b-window, b, src.Lag)
				i++
			}
		}
		return assemble(s.cells, rows, once).misfit(rows, c.bend, c.lambda)
	}
	const wrong = 2 // by so much, as a factor, the window that was found before may be
	known := src.Window.Seconds()
	window, middle := known, src.Delay.Seconds()+known/2
	least := misfit(window, middle)
	for step := s.step; step > 1e-4; step /= 2 {
		for better := true; better; {
			better = false
			for _, try := range [][2]float64{{window, middle - step/2}, {window, middle + step/2}, {window + step, middle}, {window - step, middle}} {
				if ctx.Err() != nil || try[0] < known/wrong || try[0] > known*wrong {
					continue
				}
				if m := misfit(try[0], try[1]); m < least {
					window, middle, least, better = try[0], try[1], m, true
				}
			}
		}
	}
	src.Window, src.Delay = seconds(window), seconds(middle-window/2)
}

// nearBreaks are the readings that a window sought within reach could move across a break. Those that reach back
// beyond the curve, as far as is known, may have seen the run before.
func (s *stitching) nearBreaks(src *source) (near []Reading) {
	const most = 3000
	before := seconds(earliest)
	after := time.Duration(widest*float64(src.Window)) + src.Delay + seconds(latest)
	for _, n := range src.readings {
		if !s.within(src.stretch(n, s.from)) {
			continue
		}
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
