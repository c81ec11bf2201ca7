package serve

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// fewestPasses is the least number of passes for a comparison to end because of its precision. With fewer passes, the
// spread is too often small by chance.
const fewestPasses = 8

// windows returns a server's windows, or the windows of all servers if server is "". If counted is true, it returns
// only valid windows in complete blocks.
func (r *Result) windows(server string, counted bool) (list []Window) {
	if !counted {
		list = append(list, r.WarmUp...)
	}
	for _, b := range r.Blocks {
		for _, p := range b.Passes {
			if b.Complete || !counted {
				list = append(list, p.Windows...)
			}
		}
	}
	return slices.DeleteFunc(list, func(w Window) bool {
		return server != "" && w.Server != server || counted && w.Invalid != ""
	})
}

// summarise computes all means and ratios.
func (r *Result) summarise(servers Servers) {
	base := servers.Baseline.Name
	r.Baseline = r.summary(base)
	if servers.Null != nil {
		null := r.comparison(servers.Null.Name, base)
		if r.Null = &null; null.Interval != nil {
			r.Resolvable = max(1-null.Interval[0], null.Interval[1]-1)
		}
	}
	for _, v := range servers.Variants {
		r.Variants = append(r.Variants, r.comparison(v.Name, base))
	}
}

// summaries returns the summaries of all servers.
func (r *Result) summaries() []Summary {
	list := []Summary{r.Baseline}
	if r.Null != nil {
		list = append(list, r.Null.Summary)
	}
	for _, v := range r.Variants {
		list = append(list, v.Summary)
	}
	return list
}

func (r *Result) summary(server string) Summary {
	s := Summary{Name: server}
	var firsts, gaps, clocks, hottest, capped []float64
	for _, w := range r.windows(server, false) {
		if w.Invalid != "" {
			s.InvalidWindows++
		}
	}
	for _, w := range r.windows(server, true) {
		s.Windows++
		s.Joules += w.PerOutput
		s.JoulesPerTotal += w.PerTotal
		s.Watts += w.Watts
		s.Seconds += 1 / w.Speed
		s.Speed += w.Speed
		s.Streaming += w.Streaming
		firsts, gaps = append(firsts, w.firsts...), append(gaps, w.gaps...)
		clocks = append(clocks, known(w.Cards, func(c power.Span) *float64 { return c.SMClock })...)
		if list := known(w.Cards, func(c power.Span) *float64 { return c.Temperature }); len(list) > 0 {
			hottest = append(hottest, slices.Max(list))
		}
		if list := known(w.Cards, func(c power.Span) *float64 { return c.CappedShare }); len(list) > 0 {
			capped = append(capped, slices.Max(list))
		}
	}
	if s.Windows == 0 {
		return s
	}
	for _, sum := range []*float64{&s.Joules, &s.JoulesPerTotal, &s.Watts, &s.Seconds, &s.Speed, &s.Streaming} {
		*sum /= float64(s.Windows)
	}
	s.FirstToken, s.InterToken = latency(firsts), latency(gaps)
	s.SMClock, s.Temperature = mean(clocks), mean(hottest)
	if share := mean(capped); share != nil {
		yes := *share >= 0.5
		s.Capped = &yes
	}
	return s
}

// known returns the readings of the cards for which the reading is known.
func known(cards []power.Span, reading func(power.Span) *float64) (list []float64) {
	for _, c := range cards {
		if v := reading(c); v != nil {
			list = append(list, *v)
		}
	}
	return list
}

func mean(values []float64) *float64 {
	if len(values) == 0 {
		return nil
	}
	v := stat.Mean(values, nil)
	return &v
}

// comparison returns a server's ratios to the baseline. The ratios are taken within each pass of the complete blocks.
func (r *Result) comparison(server, base string) Comparison {
	c := Comparison{Summary: r.summary(server)}
	logs := r.logs(server, base)
	c.Passes = len(logs.energy)
	c.RelativeEnergy, c.Interval = power.Ratio(logs.energy, r.Seed)
	c.RelativeTotal, c.TotalInterval = power.Ratio(logs.total, r.Seed)
	c.RelativeTime, c.TimeInterval = power.Ratio(logs.time, r.Seed)
	return c
}

// passLogs are the logarithms of a server's ratios, one for each pass.
type passLogs struct{ energy, total, time []float64 }

func (r *Result) logs(server, base string) (l passLogs) {
	for _, b := range r.Blocks {
		if !b.Complete {
			continue
		}
		for _, p := range b.Passes {
			after, before := p.of(server), p.of(base)
			l.energy = append(l.energy, math.Log(after.PerOutput/before.PerOutput))
			l.time = append(l.time, math.Log(before.Speed/after.Speed))
			if after.PerTotal > 0 && before.PerTotal > 0 {
				l.total = append(l.total, math.Log(after.PerTotal/before.PerTotal))
			}
		}
	}
	return l
}

// precise reports whether the energy intervals of all servers have at most the half width half.
func (r *Result) precise(half float64) bool {
	base := r.Servers[0].Name
	for _, s := range r.Servers[1:] {
		logs := r.logs(s.Name, base).energy
		_, interval := power.Ratio(logs, r.Seed)
		if len(logs) < fewestPasses || (interval[1]-interval[0])/2 > half {
			return false
		}
	}
	return len(r.Servers) > 1
}
