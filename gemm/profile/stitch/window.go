package stitch

import (
	"context"
	"math"
	"slices"
)

// widest is the factor by which a fitted window may differ from its assumed value. earliest and latest limit the delay,
// in seconds before and after its assumed value.
const widest, earliest, latest = 4, 0.02, 0.1

// searchWindow fits one sensor's window and delay to a fixed trace, by a grid search followed by a local search. It
// keeps the old values if the fit hardly improves, for example without a jump in power, or if the context ends.
func (s *stitcher) searchWindow(ctx context.Context, sen *sensor, c *solution) {
	near := s.nearBreaks(sen)
	if len(near) == 0 {
		return
	}
	loss := func(window, middle float64) float64 {
		total := 0.0
		for _, n := range near {
			b := n.At.Seconds() - s.from.Seconds() - middle + window/2
			total += math.Abs(n.Watts/sen.Gain - s.spanOf(n.Run, b-window, b, sen.TimeConstant).mean(c.watts))
		}
		return total
	}
	window0 := sen.Window.Seconds()
	middle0 := sen.Delay.Seconds() + window0/2
	before := loss(window0, middle0)
	window, middle, least := window0, middle0, before
	try := func(w, m float64) {
		if delay := m - w/2 - sen.Delay.Seconds(); ctx.Err() != nil || w < 0 || w > widest*window0 || delay < -earliest || delay > latest {
			return
		}
		if l := loss(w, m); l < least {
			window, middle, least = w, m, l
		}
	}
	const widths = 16
	for i := range widths + 1 {
		w := window0 * math.Pow(widest, 2*float64(i)/widths-1)
		pitch := max(s.step/2, w/10)
		for d := -earliest; d <= latest; d += pitch {
			try(w, sen.Delay.Seconds()+d+w/2)
		}
	}
	// The middle and the width of a window are almost independent, so the local search varies the middle and the width.
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
		sen.Window, sen.Delay = Of(window), Of(middle-window/2)
	}
}

// refineWindow fits one sensor's window and delay together with the trace. A fit to a trace from other sensors alone
// gives a window that is too short if the other sensors have a coarser resolution. When the context ends, refineWindow
// keeps the best values so far.
func (s *stitcher) refineWindow(ctx context.Context, sen *sensor, used []*sensor, c *solution) {
	rows := slices.Clone(c.rows)
	k := slices.Index(used, sen)
	var ends []float64 // ends of the sensor's rows, without the delay
	var runs []int
	for _, r := range sen.readings {
		a, b := sen.stretch(r, s.from)
		if s.within(a, b) {
			ends = append(ends, b+sen.Delay.Seconds())
			runs = append(runs, r.Run)
		}
	}
	misfit := func(window, middle float64) float64 {
		i := 0
		for j := range rows {
			if rows[j].sensor == k {
				b := ends[i] - middle + window/2
				rows[j].span = s.spanOf(runs[i], b-window, b, sen.TimeConstant)
				i++
			}
		}
		return assemble(s.cells, rows, once).misfit(rows, c.penalty, c.lambda)
	}
	const farthest = 2 // largest factor from the window that was found before
	known := sen.Window.Seconds()
	window, middle := known, sen.Delay.Seconds()+known/2
	least := misfit(window, middle)
	for step := s.step; step > 1e-4; step /= 2 {
		for better := true; better; {
			better = false
			for _, try := range [][2]float64{{window, middle - step/2}, {window, middle + step/2}, {window + step, middle}, {window - step, middle}} {
				if ctx.Err() != nil || try[0] < known/farthest || try[0] > known*farthest {
					continue
				}
				if m := misfit(try[0], try[1]); m < least {
					window, middle, least, better = try[0], try[1], m, true
				}
			}
		}
	}
	sen.Window, sen.Delay = Of(window), Of(middle-window/2)
}

// nearBreaks returns the readings that a window within the search range could move across a break. It leaves out
// readings that reach back beyond the trace, because they may include power of the previous run.
func (s *stitcher) nearBreaks(sen *sensor) (near []Reading) {
	const most = 3000
	before := Of(earliest)
	after := Seconds(widest*float64(sen.Window)) + sen.Delay + Of(latest)
	for _, n := range sen.readings {
		if !s.within(sen.stretch(n, s.from)) {
			continue
		}
		if slices.ContainsFunc(s.opt.Breaks, func(b Seconds) bool { return b-before <= n.At && n.At <= b+after }) {
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
