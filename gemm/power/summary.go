package power

import (
	"math"
	"slices"
)

// summarise updates the result from the blocks so far.
func (r *Result) summarise(loads Loads, opt Options) {
	bins := map[string]Bin{}
	r.Dropped = 0
	for _, load := range loads.all() {
		windows := r.windowsOf(load.Name())
		bins[load.Name()] = MainBin(secondsOf(windows))
		for _, w := range windows {
			if !bins[load.Name()].Holds(w.Seconds) {
				r.Dropped++
			}
		}
	}
	base := loads.Baseline.Name()
	r.Baseline = r.summary(base, bins[base])
	r.Null = r.comparison(loads.Null.Name(), base, bins, opt)
	r.Variants = r.Variants[:0]
	for _, v := range loads.Variants {
		r.Variants = append(r.Variants, r.comparison(v.Name(), base, bins, opt))
	}
	r.Resolvable = 0
	if r.Null.Interval != nil {
		r.Resolvable = max(1-r.Null.Interval[0], r.Null.Interval[1]-1)
	}
}

// windowsOf returns a load's windows in complete blocks.
func (r *Result) windowsOf(load string) []Window {
	var windows []Window
	for _, b := range r.Blocks {
		if b.Complete {
			windows = append(windows, b.of(load)...)
		}
	}
	return windows
}

// Kept returns the windows of a load's summary.
func (r *Result) Kept(load string) []Window {
	windows := r.windowsOf(load)
	b := MainBin(secondsOf(windows))
	return slices.DeleteFunc(windows, func(w Window) bool { return !b.Holds(w.Seconds) })
}

func secondsOf(windows []Window) []float64 {
	var s []float64
	for _, w := range windows {
		s = append(s, w.Seconds)
	}
	return s
}

// summary averages a load's windows in its bin.
func (r *Result) summary(load string, b Bin) Summary {
	s := Summary{Name: load}
	var joules, watts, seconds, clock, temperature, capped mean
	for _, w := range r.windowsOf(load) {
		if !b.Holds(w.Seconds) {
			continue
		}
		s.Windows++
		joules.add(w.PerExecution, nil)
		watts.add(w.Watts, nil)
		seconds.add(w.Seconds, nil)
		clock.addKnown(w.SMClock)
		temperature.addKnown(w.Temperature)
		capped.addKnown(w.CappedShare)
		s.Throttle = append(s.Throttle, w.Throttle...)
	}
	slices.Sort(s.Throttle)
	s.Throttle = slices.Compact(s.Throttle)
	if s.Windows == 0 {
		return s
	}
	s.Joules, s.Watts, s.Seconds = *joules.value(), *watts.value(), *seconds.value()
	s.SMClock, s.Temperature = clock.value(), temperature.value()
	if share := capped.value(); share != nil {
		yes := *share >= 0.5
		s.Capped = &yes
	}
	return s
}

// comparison returns a load's ratios to the baseline, taken within each pass and averaged over the passes of all
// complete blocks.
func (r *Result) comparison(load, base string, bins map[string]Bin, opt Options) Comparison {
	c := Comparison{Summary: r.summary(load, bins[load])}
	var energy, time []float64
	for _, b := range r.Blocks {
		if !b.Complete {
			continue
		}
		after, before := b.of(load), b.of(base)
		if !inBin(after, bins[load]) || !inBin(before, bins[base]) {
			c.Dropped++
			continue
		}
		c.Blocks++
		for pass := range after {
			energy = append(energy, math.Log(after[pass].PerExecution/before[pass].PerExecution))
			time = append(time, math.Log(after[pass].Seconds/before[pass].Seconds))
		}
	}
	e, t := ratioOf(energy, opt.Seed), ratioOf(time, opt.Seed)
	c.RelativeEnergy, c.Interval = e.value, e.interval
	c.RelativeTime, c.TimeInterval = t.value, t.interval
	if c.Blocks > 0 {
		c.EDP, c.EDS, c.EDSk = EDP(e.value, t.value), EDS(e.value, t.value, opt.EDSk), opt.EDSk
		gain := GainMinusLoss(e.value, t.value)
		c.GainMinusLoss = &gain
	}
	return c
}

func inBin(windows []Window, b Bin) bool {
	return !slices.ContainsFunc(windows, func(w Window) bool { return !b.Holds(w.Seconds) })
}

// widest is the largest half width among the null's and the variants' intervals; +Inf if one is unknown.
func (r *Result) widest() float64 {
	widest := halfWidth(r.Null.Interval)
	for _, v := range r.Variants {
		widest = max(widest, halfWidth(v.Interval))
	}
	return widest
}

// fewest is the least number of blocks among the comparisons.
func (r *Result) fewest() int {
	fewest := r.Null.Blocks
	for _, v := range r.Variants {
		fewest = min(fewest, v.Blocks)
	}
	return fewest
}

func halfWidth(interval []float64) float64 {
	if interval == nil {
		return math.Inf(1)
	}
	return (interval[1] - interval[0]) / 2
}
