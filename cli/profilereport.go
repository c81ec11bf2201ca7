package cli

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/profile"
)

// profileReport prints a profile.
type profileReport struct {
	*profile.Result
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
		return term.JSON(c.App.Writer, struct {
			*profile.Result
			Components []*signature `json:"components,omitempty"`
		}{r.Result, r.signatures})
	}
	r.print(c.App.Writer)
	return nil
}

// title of the table and of the picture.
func (r profileReport) title() string {
	const widest = 48 // of a source, which JSON has in full: a picture's title has a single line
	p := r.Products[0]
	title := r.GPU + ": " + p.Problem.String()
	if p.X != "" {
		title += ", x " + term.Shorten(p.X, widest)
	}
	if p.W != "" {
		title += ", w " + term.Shorten(p.W, widest)
	}
	if r.brokenOff() {
		title += ", broken off"
	}
	return title
}

func (r profileReport) brokenOff() bool { return r.Stopped == "cancelled" || r.Stopped == "failed" }

func (r profileReport) print(w io.Writer) {
	fmt.Fprintln(w, term.Wrap(r.title(), "", "  ", term.Width))
	for _, p := range r.Profiles {
		if len(r.Profiles) > 1 {
			fmt.Fprintf(w, "%s from idleness\n\n", r.nameOf(p))
		}
		if len(p.Milestones) > 0 {
			milestoneTable(p).Print(w)
			fmt.Fprintln(w)
		}
		r.aboutProfile(w, p)
		if len(r.Profiles) > 1 {
			fmt.Fprintln(w)
		}
	}
	if len(r.After) > 0 {
		r.afterTable().Print(w)
		fmt.Fprintln(w)
		for _, a := range r.After {
			name := r.Products[a.Product].Name
			if a.Watts == 0 {
				term.Remark(w, "note", fmt.Sprintf("right after the other the curve tells %s apart, which is longer than %s ran", profile.TimeText(a.Over), name))
			}
			if a.Alone == 0 {
				term.Remark(w, "note", fmt.Sprintf("%s alone was not steady (--length): there is nothing to compare with", name))
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

func milestoneTable(p profile.Profile) *term.Table {
	tab := term.NewTable("time", "executions\ndone", "power", "95 %", "over", "clock")
	for _, m := range p.Milestones {
		at, clock := profile.TimeText(m.At), "–"
		if strings.HasPrefix(m.Name, "SS") {
			at = m.Name + ", " + at
		}
		if m.SMClock != nil {
			clock = fmt.Sprintf("%.0f MHz", *m.SMClock)
		}
		if m.Early() {
			tab.Add(at, executionsText(m.Executions), "–", "–", "–", clock)
			continue
		}
		tab.Add(at, executionsText(m.Executions), decimal(m.Watts, 1)+" W",
			decimal(m.Low, 1)+" … "+decimal(m.High, 1)+" W", profile.TimeText(m.Over), clock)
	}
	return tab
}

// afterTable is what each product draws right after the other, and when it is steady alone.
func (r profileReport) afterTable() *term.Table {
	watts := func(w float64) string {
		if w == 0 {
			return "–"
		}
		return fmt.Sprintf("%.1f W", w)
	}
	tab := term.NewTable("product", "right after", "over", "power", "steady\nalone", "change", "95 %")
	for _, a := range r.After {
		change, within := "–", "–"
		if a.Ratio != 0 {
			change, within = percentOf(a.Ratio, a.Interval[:]), span(a.Interval[:])
		}
		tab.Add(r.Products[a.Product].Name, r.Products[a.Other].Name, profile.TimeText(a.Over), watts(a.Watts), watts(a.Alone), change, within)
	}
	return tab
}

// aboutProfile says how sure a profile's table is.
func (r profileReport) aboutProfile(w io.Writer, p profile.Profile) {
	r.aboutRuns(w, p)
	if p.Curve == nil {
		why := "there is no curve"
		if r.brokenOff() {
			why += ": there were too few readings for one yet, or too little time"
		}
		term.Remark(w, "note", why)
		return
	}
	rest, low, high, clock := p.AtRest()
	text := fmt.Sprintf("%s W (%s … %s)", decimal(rest, 0), decimal(low, 0), decimal(high, 0))
	if clock != nil {
		text += fmt.Sprintf(" at %.0f MHz", *clock)
	}
	term.Remark(w, "before the work", text)
	aboutSteady(w, p)
	for _, s := range p.Sensors {
		term.Remark(w, "sensor", sensorText(s))
	}
	term.Remark(w, "resolution", resolutionText(p))
	if slices.ContainsFunc(p.Milestones, profile.Milestone.Early) {
		more := "more --runs show more"
		if r.asked == 0 {
			more = "more --runs, or a --resolution such as 10ms, show more"
		}
		term.Remark(w, "–", "the curve is too coarse for power at that moment to be told from what follows; "+more)
	}
	if in := p.Inside; in != nil && in.Resolved {
		term.Remark(w, "inside", insideText(*in))
	} else if in != nil && p.Steady.SSP.Found {
		term.Remark(w, "not seen", "what happens within an execution: "+in.Why)
	}
	if r.asked > 0 && p.Coarsest() > r.asked {
		term.Remark(w, "note", fmt.Sprintf("too few runs for the resolution asked for: with %s some of the curve is as coarse as %s, or more than ±5 %% unsure if it is to tell %s apart: allow more with --runs and --time",
			term.Plural(p.Golden, "golden run", "golden runs"), profile.TimeText(p.Coarsest()), profile.TimeText(r.asked)))
	}
}

func (r profileReport) aboutRuns(w io.Writer, p profile.Profile) {
	text := fmt.Sprintf("%s, %d of them golden, in %.0f s", term.Plural(p.Taken, "run", "runs"), p.Golden, r.Seconds)
	if low, high, ok := p.Temperatures(); ok {
		text += fmt.Sprintf(", the die at %.0f to %.0f °C", low, high)
	}
	if p.Late > 0 {
		text += fmt.Sprintf("; %s came too late to be dated", term.Plural(p.Late, "reading", "readings"))
	}
	term.Remark(w, how(r.Simulated), text)
	if p.Taken < min(enoughRuns, p.Advised) {
		term.Remark(w, "note", fmt.Sprintf("table I advises %d runs, and FinGraV found %d enough: allow more with --runs and --time", p.Advised, enoughRuns))
	}
}

// enoughRuns, whatever the paper's table I advises.
const enoughRuns = 50

// flagged names the flags beside what is to be changed.
var flagged = strings.NewReplacer("take longer runs", "take longer runs (--length)", "take more runs", "take more runs (--runs and --time)")

func aboutSteady(w io.Writer, p profile.Profile) {
	if s := p.Steady.SSE; s.Found {
		mean := p.Legs[0].End / time.Duration(p.Legs[0].Executions)
		term.Remark(w, "execution time", fmt.Sprintf("no longer falls from execution %s on (SSE, %s); %s on the mean",
			term.Count(s.Execution), profile.TimeText(time.Duration(s.Seconds*float64(time.Second))), profile.TimeText(mean)))
	} else {
		term.Remark(w, "note", "execution time was not steady: "+flagged.Replace(s.Why))
	}
	if s := p.Steady.SSP; s.Found {
		term.Remark(w, "steady power", fmt.Sprintf("from execution %s on (SSP), %s after the start: %s W (%s … %s)", term.Count(s.Execution), profile.TimeText(s.At), decimal(s.Watts, 1), decimal(s.Low, 1), decimal(s.High, 1)))
	} else {
		term.Remark(w, "note", "power was not steady: "+flagged.Replace(s.Why))
	}
}

// remarks are about all of it.
func (r profileReport) remarks(w io.Writer) {
	if s := r.Sync; s != nil {
		text := fmt.Sprintf("read %s; delay %s, drift %s ppm, residual %s", term.Plural(s.Groups, "time", "times"), profile.TimeText(s.Delay), signed(s.Drift, 1), profile.TimeText(s.Residual))
		if s.Launch > s.Delay {
			text += fmt.Sprintf("; work began %s after it was given to the card", profile.TimeText(s.Launch))
		}
		term.Remark(w, "clocks", text)
	}
	for _, p := range r.Products {
		if p.Kernel != nil {
			term.Remark(w, "kernel", p.Kernel.String())
		}
	}
	if r.unsigned != "" {
		term.Remark(w, "note", r.unsigned)
	}
	if r.brokenOff() && r.hasCurve() {
		of := "a curve is of some tens of the latest golden runs, and coarser than it would be"
		if r.Again != "" {
			of = "curves are of all golden runs until then"
		}
		term.Remark(w, "note", "it was broken off; "+of)
	}
	if r.Simulated {
		term.Remark(w, "note", simulatedNote)
	}
	term.Remarks(w, "warning", r.Warnings)
	printSignatures(w, r.signatures)
}

// sign finds where the products' power goes, or why that is not known.
func (r *profileReport) sign(ctx context.Context, parts *components, products []cuda.Product) error {
	r.unsigned = parts.note
	for i, p := range r.Profiles {
		about := r.Products[i]
		d := dissected{name: about.Name, before: products[i : i+1], info: r.Platform}
		if about.Kernel != nil {
			d.kernels = []cuda.Kernel{*about.Kernel}
		}
		if n := len(p.Milestones); n > 0 && p.Steady.SSP.Found && p.Milestones[n-1].SMClock != nil {
			d.seconds, d.clock = p.Steady.SSP.Seconds, *p.Milestones[n-1].SMClock
		}
		found, err := parts.sign(ctx, d)
		if err != nil {
			return err
		}
		if found != nil {
			r.signatures = append(r.signatures, found)
		}
	}
	return nil
}

func sensorText(s profile.Sensor) string {
	text := fmt.Sprintf("%s, %s", s.Name, term.Plural(s.Readings, "reading", "readings"))
	if s.Window > 0 {
		text += ", each over " + profile.TimeText(s.Window)
	}
	if !s.Used {
		return text + "; not used: " + s.Why
	}
	if s.Lag > 0 {
		text += fmt.Sprintf(", taken to follow power with a lag of %s", profile.TimeText(s.Lag))
	}
	switch late := s.Delay; {
	case late >= time.Microsecond:
		text += fmt.Sprintf(", %s late", profile.TimeText(late))
	case late <= -time.Microsecond:
		text += fmt.Sprintf(", %s early", profile.TimeText(-late))
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
	return fmt.Sprintf("%s of steady power folded: %s W in parts of %s", term.Plural(in.Executions, "execution", "executions"),
		strings.Join(parts, ", "), profile.TimeText(in.Length/time.Duration(len(in.Watts))))
}

// executionsText is how many executions were done; the one under way does not count.
func executionsText(n float64) string {
	const rounding = 1e-6
	return term.Count(int(n + rounding))
}

// decimal number with a minus sign as it should be.
func decimal(v float64, digits int) string {
	return strings.Replace(fmt.Sprintf("%.*f", digits, v), "-", "−", 1)
}

// resolutionText says what can be told apart.
func resolutionText(p profile.Profile) string {
	text := fmt.Sprintf("%s in the first %s, %s on the whole; what is shorter cannot be told apart",
		profile.TimeText(p.Resolution(0, profile.Rise)), profile.TimeText(profile.Rise), profile.TimeText(p.Resolution(0, p.End())))
	if l := p.Curve.Law; l != nil && l.Order != 0 {
		text += fmt.Sprintf(", but for what goes with the pace of executions, down to %s: a change of it by 1 %% changes power by %.1f %%",
			profile.TimeText(p.Curve.Step), l.Order)
	}
	switch {
	case len(p.Sensors) == 0:
	case p.Sensors[0].Lag > 0:
		text += "; power that itself lagged behind the work would look the same"
	default:
		text += fmt.Sprintf("; if all sensors are late together, by less than %s, times are as wrong", profile.TimeText(profile.Unseen))
	}
	return text
}
