package bench

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm/profile"
	"github.com/lowtoggle/lowtoggle/gemm/profile/stitch"
	"github.com/lowtoggle/lowtoggle/internal/chart"
	"github.com/lowtoggle/lowtoggle/internal/goldenfile"
)

const ms = stitch.Seconds(time.Millisecond)

// profiled are two measurements of one product on one H200.
type profiled struct {
	name    string
	results [2]profile.Result
	runs    [2]*profile.Profile
}

func profiledProducts(t *testing.T) (all []profiled) {
	for _, name := range []string{"8192", "2048"} {
		p := profiled{name: name + "³"}
		for i := range p.runs {
			read(t, fmt.Sprintf("%sprofile-%s-%d.json", recorded, name, i+1), &p.results[i])
			p.runs[i] = &p.results[i].Profiles[0]
		}
		all = append(all, p)
	}
	return all
}

// agreement compares both measurements from one time to another, or to the end of the work.
func (p profiled) agreement(from, to stitch.Seconds) difference {
	for _, r := range p.runs {
		to = min(to, r.End()-2*r.Trace.Step)
	}
	return differenceOf(p.runs[0].Trace, p.runs[1].Trace, from, to)
}

// difference holds differences between two traces, relative to the second trace.
type difference struct {
	Largest float64
	At      stitch.Seconds // of the largest
	Mean    float64
	// Apart is the share of cells that are further apart than both intervals allow together: 0.05 for traces that differ by
	// chance alone.
	Apart float64
}

// differenceOf compares two traces with equal cells from one moment to another.
func differenceOf(a, b *stitch.Trace, from, to stitch.Seconds) (d difference) {
	n := 0.0
	for i, w := range a.Watts {
		at := a.Start + stitch.Seconds(i)*a.Step
		if at < from || at+a.Step > to || i >= len(b.Watts) {
			continue
		}
		off := math.Abs(w - b.Watts[i])
		if share := off / b.Watts[i]; share > d.Largest {
			d.Largest, d.At = share, at
		}
		d.Mean += off / b.Watts[i]
		if off > math.Hypot((a.High[i]-a.Low[i])/2, (b.High[i]-b.Low[i])/2) {
			d.Apart++
		}
		n++
	}
	if n > 0 {
		d.Mean /= n
		d.Apart /= n
	}
	return d
}

// beyond returns the cells from 50 ms on that differ by more than 3 %.
func (p profiled) beyond() (cells []stitch.Seconds) {
	c := p.runs[0].Trace
	for i := range c.Watts {
		at := c.Start + stitch.Seconds(i)*c.Step
		if at >= 50*ms && p.agreement(at, at+c.Step).Largest > 0.03 {
			cells = append(cells, at)
		}
	}
	return cells
}

// TestProfilesAgree compares two measurements of one GEMM on one H200, cell by cell, from 50 ms
// after the start to the end of the work.
func TestProfilesAgree(t *testing.T) {
	const mean, finest = 0.01, 5 * ms
	// In 25 ms of the 2 s 2048³ is above 3 %: there the card first lowers its clock, at another moment in each run.
	largest := map[string]float64{"8192³": 0.03, "2048³": 0.06}
	for _, p := range profiledProducts(t) {
		d, later := p.agreement(50*ms, stitch.Seconds(time.Hour)), p.agreement(75*ms, stitch.Seconds(time.Hour))
		if d.Largest > largest[p.name] || later.Largest > 0.03 || d.Mean > mean {
			t.Errorf("%s differs by %+v, later by %+v", p.name, d, later)
		}
		for _, r := range p.runs {
			if r.Trace.Law == nil || r.Trace.Step > finest {
				t.Errorf("%s: what goes with the pace is resolved to %v", p.name, r.Trace.Step)
			}
		}
	}
}

// TestPowerPage checks that the tables of docs/power-h200.md agree with the recorded profiles.
func TestPowerPage(t *testing.T) {
	goldenfile.SameBetween(t, "../docs/power-h200.md", "<!-- profiles: go test ./bench -run PowerPage -update -->\n", "<!-- end of profiles -->\n",
		profileTables(profiledProducts(t)))
	goldenfile.Same(t, "../docs/power-profile.svg", profilePlot(profiledProducts(t)))
}

// profileTables prints power over time, and the differences of two measurements.
func profileTables(products []profiled) string {
	var b strings.Builder
	row := func(name string, cell func(p profiled) string) {
		fmt.Fprintf(&b, "| %s |", name)
		for _, p := range products {
			fmt.Fprintf(&b, " %s |", cell(p))
		}
		b.WriteByte('\n')
	}
	head := func(first string) {
		row(first, func(p profiled) string { return p.name })
		b.WriteString("|---|" + strings.Repeat("---|", len(products)) + "\n")
	}
	each := func(of func(r *profile.Profile) string) func(profiled) string {
		return func(p profiled) string { return of(p.runs[0]) + ", " + of(p.runs[1]) }
	}

	b.WriteByte('\n')
	head("mean power")
	row("card", func(p profiled) string { return p.results[0].Card.ID() })
	row("idle, before the work", each(func(r *profile.Profile) string {
		watts, low, high, _ := r.BeforeWork()
		return within(watts, low, high)
	}))
	for _, s := range []struct {
		from, to stitch.Seconds
		what     string
	}{
		{10, 30, ": at full clock, above the cap"},
		{45, 55, ": the clock has fallen in most runs"},
		{90, 110, ""}, {200, 800, ""}, {900, 1000, ""}, {1200, 1750, ""},
		{1900, 1950, ": the second low"},
	} {
		name := fmt.Sprintf("%d to %d ms%s", s.from, s.to, s.what)
		row(name, each(func(r *profile.Profile) string {
			return within(r.Trace.Mean(s.from*ms, s.to*ms))
		}))
	}
	row("the lowest 2.5 ms", each(func(r *profile.Profile) string {
		c := r.Trace
		from := int((500*ms - c.Start) / c.Step)
		worked := c.Watts[from:int((r.End()-c.Start)/c.Step)]
		i := slices.Index(worked, slices.Min(worked))
		return fmt.Sprintf("%.0f W at %s", worked[i], inMillis(c.Start+stitch.Seconds(from+i)*c.Step))
	}))

	b.WriteByte('\n')
	const afterStart, late = 50 * ms, 75 * ms
	head("power in two measurements, difference")
	largest := func(from, to stitch.Seconds) func(profiled) string {
		return func(p profiled) string {
			d := p.agreement(from, to)
			return fmt.Sprintf("%.1f %%, at %s", 100*d.Largest, inMillis(d.At))
		}
	}
	row("largest difference in the first 50 ms", largest(0, afterStart))
	row("largest difference after 50 ms", largest(afterStart, stitch.Seconds(time.Hour)))
	row("largest difference after 75 ms", largest(late, stitch.Seconds(time.Hour)))
	row("mean difference after 50 ms", func(p profiled) string {
		return fmt.Sprintf("%.1f %%", 100*p.agreement(afterStart, stitch.Seconds(time.Hour)).Mean)
	})
	row("cells after 50 ms that differ by more than 3 %", func(p profiled) string {
		cells := p.beyond()
		if len(cells) == 0 {
			return "none"
		}
		return fmt.Sprintf("%d, from %s to %s", len(cells), inMillis(cells[0]), inMillis(cells[len(cells)-1]+p.runs[0].Trace.Step))
	})
	row("share of the cells after 50 ms that differ by more than both 95 % bands allow", func(p profiled) string {
		return fmt.Sprintf("**%.0f %%**", 100*p.agreement(afterStart, stitch.Seconds(time.Hour)).Apart)
	})
	row("resolution where power changes with the execution rate", each(func(r *profile.Profile) string { return inMillis(r.Trace.Step) }))
	resolution := func(from, to stitch.Seconds) func(profiled) string {
		return each(func(r *profile.Profile) string {
			c := r.Trace
			all := slices.Sorted(slices.Values(c.Resolution[(from-c.Start)/c.Step : (min(to, r.End())-c.Start)/c.Step]))
			return inMillis(stitch.Seconds(all[len(all)/2].Duration().Round(100 * time.Microsecond)))
		})
	}
	row("resolution elsewhere, first 50 ms (median)", resolution(0, afterStart))
	row("resolution elsewhere, 2 s (median)", resolution(0, stitch.Seconds(time.Hour)))

	b.WriteByte('\n')
	head("steady power and Table I")
	each = func(of func(r *profile.Profile) string) func(profiled) string {
		return func(p profiled) string { return of(p.runs[0]) + "; " + of(p.runs[1]) }
	}
	row("steady power (SSP)", each(func(r *profile.Profile) string {
		s := steadyOf(r)
		if !s.Found {
			return "not found"
		}
		watts, low, high := r.Trace.Mean(s.At, s.Until)
		return within(watts, low, high) + fmt.Sprintf(" from %.0f to %.0f ms", 1e3*s.At.Seconds(), 1e3*s.Until.Seconds())
	}))
	row("queries with the power cap as throttle reason, second half of the work", each(func(r *profile.Profile) string {
		return fmt.Sprintf("%.0f %%", 100*cappedShare(r))
	}))
	row("runs, of the number in Table I", each(func(r *profile.Profile) string {
		return fmt.Sprintf("%d of %d", r.Taken, r.Advised)
	}))
	row("expected readings within one execution, of the number in Table I", func(p profiled) string {
		r := p.runs[0]
		return fmt.Sprintf("%.2g of %d", expectedReadings(r), askedReadings(p))
	})
	row("runs that would give Table I's number of readings", func(p profiled) string {
		r := p.runs[0]
		return fmt.Sprintf("about %.0f", math.Round(float64(r.Golden)*float64(askedReadings(p))/expectedReadings(r)/100)*100)
	})
	return b.String()
}

// steadyOf finds steady power on a recorded trace by today's criterion. Records without readings have no time stamps, so all executions
// are assumed to be equally long.
func steadyOf(r *profile.Profile) profile.SteadyPoint {
	even := profile.Timeline{Done: []int{0, r.Segments[0].Executions}, At: []stitch.Seconds{0, r.Segments[0].End}}
	return profile.FindSteady(r.Trace, even, 0, 0).SSP
}

// cappedShare returns the share of the queries at which the power cap limited the clock, in the second half of the work.
func cappedShare(r *profile.Profile) float64 {
	sum, n := 0.0, 0.0
	for _, s := range r.States {
		if s.Capped != nil && s.At > r.End()/2 && s.At < r.End() {
			sum, n = sum+*s.Capped, n+1
		}
	}
	return sum / n
}

// expectedReadings returns how many readings of the used sensors fall into one execution, in all runs together.
func expectedReadings(r *profile.Profile) float64 {
	const margins = 300 * ms // before and after the work
	n := 0
	for _, s := range r.Sensors {
		if s.Used && s.Name != stitch.Counter {
			n += s.Readings
		}
	}
	first := r.Segments[0]
	return float64(n) * first.End.Seconds() / float64(first.Executions) / (r.End() + margins).Seconds()
}

// askedReadings returns how many readings Table I asks for within one execution.
func askedReadings(p profiled) int {
	first := p.runs[0].Segments[0]
	execution := first.End / stitch.Seconds(first.Executions)
	return int(math.Ceil(float64(execution) / float64(p.results[0].Products[0].Advised.Density)))
}

// profilePlot draws both measurements of each GEMM: the first 120 ms, and all of it in stretches of 10 ms.
func profilePlot(products []profiled) []byte {
	watts := chart.Axis{Label: "power, W", With: []float64{0}}
	early := chart.Panel{Title: "from idle, with 95 % intervals", X: chart.Axis{Label: "time since the start of the work, ms"}, Y: watts, Height: 300}
	whole := chart.Panel{Title: "all of it", X: chart.Axis{Label: "time since the start of the work, s"}, Y: watts}
	for i, p := range products {
		for k, r := range p.runs {
			style := chart.Style{Colour: 2 * i, Dashes: k}
			line := chart.Line{Name: fmt.Sprintf("%s, measurement %d", p.name, k+1), Style: style}
			for at := -20 * ms; at < 120*ms; at += r.Trace.Step {
				w, low, high := r.Trace.Mean(at, at+r.Trace.Step)
				line.X, line.Y = append(line.X, 1e3*(at+r.Trace.Step/2).Seconds()), append(line.Y, w)
				line.Low, line.High = append(line.Low, low), append(line.High, high)
			}
			early.Lines = append(early.Lines, line)
			all := chart.Line{Style: style}
			for at := -100 * ms; at < r.End()+100*ms; at += 10 * ms {
				w, _, _ := r.Trace.Mean(at, at+10*ms)
				all.X, all.Y = append(all.X, (at+5*ms).Seconds()), append(all.Y, w)
			}
			whole.Lines = append(whole.Lines, all)
		}
	}
	return chart.Chart{Title: "Power of 8192³ and 2048³ in BF16 from idle, two H200s", Panels: []chart.Panel{early, whole}}.SVG()
}

// within prints watts with half the width of their interval.
func within(watts, low, high float64) string {
	return fmt.Sprintf("%.0f ± %.0f W", watts, math.Ceil((high-low)/2))
}

func inMillis(t stitch.Seconds) string { return fmt.Sprintf("%.5g ms", 1e3*t.Seconds()) }
