package power

import (
	"math"
	"slices"
)

// summarise updates the result from the blocks measured so far.
func (r *Result) summarise(loads Loads, opt Options) {
	r.Dropped = 0
	for _, load := range loads.all() {
		r.Dropped += len(r.windowsOf(load.Name())) - len(r.Kept(load.Name()))
	}
	base := loads.Baseline.Name()
	r.Baseline = r.summary(base)
	r.Null = r.comparison(loads.Null.Name(), base, opt)
	r.Variants = r.Variants[:0]
	for _, v := range loads.Variants {
		r.Variants = append(r.Variants, r.comparison(v.Name(), base, opt))
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

// bins returns the bin of a load's execution times for each arrangement of its memory, because addresses may change the
// time.
func (r *Result) bins(load string) map[int]Bin {
	times := map[int][]float64{}
	for _, b := range r.Blocks {
		if b.Complete {
			for _, w := range b.of(load) {
				times[b.Arrangement] = append(times[b.Arrangement], w.Seconds)
			}
		}
	}
	bins := map[int]Bin{}
	for arrangement, seconds := range times {
		bins[arrangement] = MainBin(seconds)
	}
	return bins
}

// Kept returns the windows that a load's summary uses.
func (r *Result) Kept(load string) []Window {
	var windows []Window
	bins := r.bins(load)
	for _, b := range r.Blocks {
		if !b.Complete {
			continue
		}
		for _, w := range b.of(load) {
			if bins[b.Arrangement].Holds(w.Seconds) {
				windows = append(windows, w)
			}
		}
	}
	return windows
}

// isCapped reports whether a load counts as capped, given the share of its samples at the power cap: at least half.
func isCapped(share float64) bool { return share >= 0.5 }

// summary averages a load's windows within its bins.
func (r *Result) summary(load string) Summary {
	s := Summary{Name: load}
	var joules, watts, seconds, clock, effective, temperature, capped, duty, idle mean
	for _, w := range r.Kept(load) {
		s.Windows++
		joules.add(w.PerExecution, nil)
		watts.add(w.Watts, nil)
		seconds.add(w.Seconds, nil)
		clock.addKnown(w.SMClock)
		effective.addKnown(w.EffectiveClock)
		duty.add(w.Duty, nil)
		idle.add(w.IdleJoules, nil)
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
	s.SMClock, s.EffectiveClock, s.Temperature = clock.value(), effective.value(), temperature.value()
	s.Duty, s.IdleJoules = *duty.value(), *idle.value()
	if share := capped.value(); share != nil {
		yes := isCapped(*share)
		s.Capped = &yes
	}
	s.Limit = s.limit(&r.Card)
	return s
}

// comparison returns a load's ratios to the baseline. The ratios are taken within each pass and averaged over the
// passes of all complete blocks. Every arrangement of the memory has the same weight.
func (r *Result) comparison(load, base string, opt Options) Comparison {
	c := Comparison{Summary: r.summary(load)}
	ofLoad, ofBase := r.bins(load), r.bins(base)
	energy, time := map[int][]float64{}, map[int][]float64{}
	for _, b := range r.Blocks {
		if !b.Complete {
			continue
		}
		after, before := b.of(load), b.of(base)
		if !inBin(after, ofLoad[b.Arrangement]) || !inBin(before, ofBase[b.Arrangement]) {
			c.Dropped++
			continue
		}
		c.Blocks++
		for pass := range after {
			energy[b.Arrangement] = append(energy[b.Arrangement], math.Log(after[pass].PerExecution/before[pass].PerExecution))
			time[b.Arrangement] = append(time[b.Arrangement], math.Log(after[pass].Seconds/before[pass].Seconds))
		}
	}
	e, t := ratioOfGroups(energy, opt.Seed), ratioOfGroups(time, opt.Seed)
	c.RelativeEnergy, c.Interval = e.value, e.interval
	c.RelativeTime, c.TimeInterval = t.value, t.interval
	if c.Blocks > 0 {
		c.EDP, c.EDS, c.EDSk = EDP(e.value, t.value), EDS(e.value, t.value, opt.EDSk), opt.EDSk
		gain := GainMinusLoss(e.value, t.value)
		c.GainMinusLoss = &gain
	}
	return c
}

// arrangements returns the number of arrangements with a complete block.
func (r *Result) arrangements() int {
	seen := map[int]bool{}
	for _, b := range r.Blocks {
		if b.Complete {
			seen[b.Arrangement] = true
		}
	}
	return len(seen)
}

func inBin(windows []Window, b Bin) bool {
	return !slices.ContainsFunc(windows, func(w Window) bool { return !b.Holds(w.Seconds) })
}

// widest returns the largest half width of the intervals of the null load and the variants; +Inf if any interval is
// unknown.
func (r *Result) widest() float64 {
	widest := halfWidth(r.Null.Interval)
	for _, v := range r.Variants {
		widest = max(widest, halfWidth(v.Interval))
	}
	return widest
}

// fewest returns the smallest number of blocks of any comparison.
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
