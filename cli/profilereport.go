package cli

import (
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/profile"
)

// profileReport prints a profile.
type profileReport struct {
	*profile.Result
	about string
	asked time.Duration // resolution; 0: none
	// signatures of the products, and why there are none.
	signatures []*signature
	unsigned   string
}

// met says whether the profile is what was asked for.
func (r profileReport) met() bool {
	for _, p := range r.Profiles {
		if r.asked > 0 && (p.Curve == nil || p.Coarsest() > r.asked) {
			return false
		}
	}
	return r.Steady()
}

func (r profileReport) write(c *cli.Context) error {
	if c.Bool("json") {
		return printJSON(c.App.Writer, struct {
			*profile.Result
			Components []*signature `json:"components,omitempty"`
		}{r.Result, r.signatures})
	}
	r.print(c.App.Writer)
	return nil
}

func (r profileReport) print(w io.Writer) {
	fmt.Fprintf(w, "%s: %s\n\n", r.GPU, r.about)
	for _, p := range r.Profiles {
		if len(r.Profiles) > 1 {
			fmt.Fprintf(w, "%s from idleness\n\n", r.nameOf(p))
		}
		if len(p.Milestones) > 0 {
			milestoneTable(p).print(w)
			fmt.Fprintln(w)
		}
		r.aboutProfile(w, p)
		if len(r.Profiles) > 1 {
			fmt.Fprintln(w)
		}
	}
	if len(r.After) > 0 {
		r.afterTable().print(w)
		fmt.Fprintln(w)
		for _, a := range r.After {
			if !a.Steady {
				remark(w, "note", fmt.Sprintf("%s alone was not steady: it is compared with the last tenth of its time (--length)", r.Products[a.Product].Name))
			}
		}
	}
	r.remarks(w)
}

// nameOf a profile is that of its first product.
func (r profileReport) nameOf(p profile.Profile) string {
	if len(p.Legs) == 0 {
		return "–"
	}
	return p.Legs[0].Name
}

func milestoneTable(p profile.Profile) *table {
	tab := newTable("time", "executions\ndone", "power", "95 %", "over", "clock")
	for _, m := range p.Milestones {
		at, clock := timeText(m.At), "–"
		if strings.HasPrefix(m.Name, "SS") {
			at = m.Name + ", " + at
		}
		if m.SMClock != nil {
			clock = fmt.Sprintf("%.0f MHz", *m.SMClock)
		}
		if m.Early() {
			tab.add(at, executionsText(m.Executions), "–", "–", "–", clock)
			continue
		}
		tab.add(at, executionsText(m.Executions), fmt.Sprintf("%.1f W", m.Watts),
			fmt.Sprintf("%.1f … %.1f W", m.Low, m.High), timeText(m.Over), clock)
	}
	return tab
}

// afterTable is what each product draws right after the other.
func (r profileReport) afterTable() *table {
	tab := newTable("product", "right after", "over", "power", "alone", "change", "95 %")
	for _, a := range r.After {
		tab.add(r.Products[a.Product].Name, r.Products[a.Other].Name, timeText(a.Over),
			fmt.Sprintf("%.1f W", a.Watts), fmt.Sprintf("%.1f W", a.Alone), percentOf(a.Ratio, a.Interval[:]), span(a.Interval[:]))
	}
	return tab
}

// aboutProfile says how sure a profile's table is.
func (r profileReport) aboutProfile(w io.Writer, p profile.Profile) {
	r.aboutRuns(w, p)
	if p.Curve == nil {
		remark(w, "note", "there is no curve")
		return
	}
	rest, low, high, clock := p.AtRest()
	text := fmt.Sprintf("%.0f W (%.0f … %.0f)", rest, low, high)
	if clock != nil {
		text += fmt.Sprintf(" at %.0f MHz", *clock)
	}
	remark(w, "before the work", text)
	aboutSteady(w, p)
	for _, s := range p.Sensors {
		remark(w, "sensor", sensorText(s))
	}
	remark(w, "resolution", fmt.Sprintf("%s in the first %s, %s on the whole; what is shorter cannot be told apart; if all sensors are late together, by less than %s, times are as wrong",
		timeText(p.Resolution(0, profile.Rise)), timeText(profile.Rise), timeText(p.Resolution(0, p.End())), timeText(profile.Unseen)))
	if in := p.Inside; in != nil && in.Why == "" {
		remark(w, "inside", insideText(*in))
	} else if in != nil && p.Steady.SSP.Found {
		remark(w, "not seen", "what happens within an execution: "+in.Why)
	}
	if r.asked > 0 && p.Coarsest() > r.asked {
		remark(w, "note", fmt.Sprintf("the resolution asked for, %s, was not reached, or only with intervals of more than ±5 %%: allow more runs with --runs and --time, as far as that goes", timeText(r.asked)))
	}
}

func (r profileReport) aboutRuns(w io.Writer, p profile.Profile) {
	text := fmt.Sprintf("%s, %d of them golden, in %.0f s", plural(p.Taken, "run", "runs"), p.Golden, r.Seconds)
	if low, high, ok := p.Temperatures(); ok {
		text += fmt.Sprintf(", the die at %.0f to %.0f °C", low, high)
	}
	if p.Late > 0 {
		text += fmt.Sprintf("; %s came too late to be dated", plural(p.Late, "reading", "readings"))
	}
	remark(w, "measured", text)
	if p.Advised > p.Taken {
		advice := "FinGraV found 50 enough"
		if p.Taken < 50 {
			advice += ": allow more with --runs and --time"
		}
		remark(w, "note", fmt.Sprintf("table I advises %d runs; %s", p.Advised, advice))
	}
}

func aboutSteady(w io.Writer, p profile.Profile) {
	if s := p.Steady.SSE; s.Found {
		remark(w, "steady time", fmt.Sprintf("from execution %s on (SSE): %s each", count(s.Execution), timeText(time.Duration(s.Seconds*float64(time.Second)))))
	} else {
		remark(w, "note", "execution time was not steady: "+s.Why)
	}
	if s := p.Steady.SSP; s.Found {
		remark(w, "steady power", fmt.Sprintf("from execution %s on (SSP), %s after the start: %.1f W (%.1f … %.1f)", count(s.Execution), timeText(s.At), s.Watts, s.Low, s.High))
	} else {
		remark(w, "note", "power was not steady: "+s.Why+" (--length)")
	}
}

// remarks are about all of it.
func (r profileReport) remarks(w io.Writer) {
	if s := r.Sync; s != nil {
		text := fmt.Sprintf("read %s; delay %s, drift %s ppm, residual %s", plural(s.Groups, "time", "times"), timeText(s.Delay), signed(s.Drift, 1), timeText(s.Residual))
		if s.Launch > s.Delay {
			text += fmt.Sprintf("; work began %s after it was given to the card", timeText(s.Launch))
		}
		remark(w, "clocks", text)
	}
	for _, p := range r.Products {
		if p.Kernel != nil {
			remark(w, "kernel", p.Kernel.String())
		}
	}
	if r.unsigned != "" {
		remark(w, "note", r.unsigned)
	}
	if r.Stopped == "cancelled" || r.Stopped == "failed" {
		remark(w, "note", "it was broken off; a curve is of some tens of the latest golden runs, and coarser than it would be")
	}
	if r.Simulated {
		remark(w, "note", simulatedNote)
	}
	remarks(w, "warning", r.Warnings)
	printSignatures(w, r.signatures)
}

// sign finds where the products' power goes.
func (r *profileReport) sign(ctx context.Context, products []cuda.Product) error {
	if r.Simulated {
		return nil
	}
	for i, p := range r.Profiles {
		about := r.Products[i]
		d := dissected{name: about.Name, before: products[i : i+1], info: r.Platform}
		if about.Kernel != nil {
			d.kernels = []cuda.Kernel{*about.Kernel}
		}
		if n := len(p.Milestones); n > 0 && p.Steady.SSP.Found && p.Milestones[n-1].SMClock != nil {
			d.seconds, d.clock = p.Steady.SSP.Seconds, *p.Milestones[n-1].SMClock
		}
		found, note, err := signatureOf(ctx, r.GPU, d)
		if err != nil {
			return err
		}
		if r.unsigned = note; found != nil {
			r.signatures = append(r.signatures, found)
		}
	}
	return nil
}

func sensorText(s profile.Sensor) string {
	text := fmt.Sprintf("%s, %s", s.Name, plural(s.Readings, "reading", "readings"))
	if s.Window > 0 {
		text += ", each over " + timeText(s.Window)
	}
	if !s.Used {
		return text + "; not used: " + s.Why
	}
	switch late := s.Delay; {
	case late >= time.Microsecond:
		text += fmt.Sprintf(", %s late", timeText(late))
	case late <= -time.Microsecond:
		text += fmt.Sprintf(", %s early", timeText(-late))
	}
	if math.Abs(s.Gain-1) > 0.001 && s.Gain > 0 {
		text += fmt.Sprintf(", %s %% off the counter", signed(100*(s.Gain-1), 1))
	}
	return text + fmt.Sprintf(", ±%.1f W", s.Error)
}

func insideText(in profile.Inside) string {
	var parts []string
	for _, w := range in.Watts {
		parts = append(parts, fmt.Sprintf("%.0f", w))
	}
	return fmt.Sprintf("%s of steady power folded: %s W in parts of %s", plural(in.Executions, "execution", "executions"),
		strings.Join(parts, ", "), timeText(in.Length/time.Duration(len(in.Watts))))
}

// executionsText is a number of executions; the one under way counts as a part where few are done.
func executionsText(n float64) string {
	if n < 10 {
		return fmt.Sprintf("%.1f", n)
	}
	return count(int(n + 0.5))
}

// timeText is a time with three digits, in the unit that suits it.
func timeText(d time.Duration) string {
	for _, unit := range []struct {
		size time.Duration
		name string
	}{{time.Second, "s"}, {time.Millisecond, "ms"}, {time.Microsecond, "µs"}} {
		if d.Abs() >= unit.size {
			return strings.Replace(fmt.Sprintf("%.3g %s", float64(d)/float64(unit.size), unit.name), "-", "−", 1)
		}
	}
	return fmt.Sprintf("%d ns", d)
}
