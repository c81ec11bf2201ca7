package card

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
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/gemm/profile"
	"github.com/lowtoggle/lowtoggle/gemm/profile/stitch"
)

// profileReport prints a profile.
type profileReport struct {
	*profile.Result
	asked time.Duration // requested resolution; 0: none
	// signatures are the products' splits of power; unsplit explains why there are none.
	signatures []*measure.Signature
	unsplit    string
}

// met reports whether the profile is as fine and as steady as requested.
func (r profileReport) met() bool { return r.Steady() && (r.asked == 0 || r.Resolves(r.asked)) }

// profileDocument is the output of profile --json.
type profileDocument struct {
	*profile.Result
	Components []*measure.Signature `json:"components,omitempty"` // of the products
}

func (r profileReport) write(c *cli.Context) error {
	switch {
	case c.Bool("json"):
		return term.JSON(c.App.Writer, profileDocument{r.Result, r.signatures})
	case c.Bool("csv"):
		return term.CSV(c.App.Writer, traceTable(r.Result))
	}
	r.print(c.App.Writer)
	return nil
}

// title returns the title of the table and of the picture.
func (r profileReport) title() string {
	const widest = 48 // characters of a source's name, because a picture's title has a single line; JSON has the full name
	p := r.Products[0]
	what := p.Name
	if p.Problem != nil {
		what = p.Problem.String()
	}
	title := cardLabel(r.GPU, r.Card.ID()) + ": " + what
	if p.X != "" {
		title += ", x " + term.Shorten(p.X, widest)
	}
	if p.W != "" {
		title += ", w " + term.Shorten(p.W, widest)
	}
	if r.Interrupted() {
		title += ", " + r.ended()
	}
	return title
}

// ended says how an incomplete measurement ended.
func (r profileReport) ended() string {
	if r.Stopped == power.StoppedFailed {
		return "failed"
	}
	return "interrupted"
}

func (r profileReport) print(w io.Writer) {
	fmt.Fprintln(w, term.Wrap(r.title(), "", "  ", term.Width))
	for _, p := range r.Profiles {
		if len(r.Profiles) > 1 {
			fmt.Fprintf(w, "%s from an idle card\n\n", r.nameOf(p))
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
	if len(r.Interleaved) > 0 {
		r.interleavedTable().Print(w)
		fmt.Fprintln(w)
		for _, a := range r.Interleaved {
			name := r.Products[a.Product].Name
			if a.Watts == 0 {
				term.Remark(w, "note", fmt.Sprintf("power of %s right after the other product: unknown, because %[1]s ran for less than the trace's resolution at that time (%v)", name, a.Over))
			}
			if a.Alone == 0 {
				term.Remark(w, "note", fmt.Sprintf("%s alone did not reach steady power, so the change is unknown: give a longer --length", name))
			}
		}
	}
	r.remarks(w)
}

// nameOf returns the name of a profile's first product.
func (r profileReport) nameOf(p profile.Profile) string {
	if len(p.Segments) == 0 {
		return "–"
	}
	return p.Segments[0].Name
}

func milestoneTable(p profile.Profile) *term.Table {
	tab := term.NewTable("time", "executions\ndone", "power", "95 %", "over", "clock")
	for _, m := range p.Milestones {
		at, clock := m.At.String(), "–"
		if strings.HasPrefix(m.Name, "SS") {
			at = m.Name + ", " + at
		}
		if m.SMClock != nil {
			clock = fmt.Sprintf("%.0f MHz", *m.SMClock)
		}
		if m.TooCoarse() {
			tab.Add(at, executionsText(m.Executions), "–", "–", "–", clock)
			continue
		}
		tab.Add(at, executionsText(m.Executions), decimal(m.Watts, 1)+" W",
			decimal(m.Low, 1)+" … "+decimal(m.High, 1)+" W", m.Over.String(), clock)
	}
	return tab
}

// interleavedTable compares the power of each product that follows another product with its steady power alone.
func (r profileReport) interleavedTable() *term.Table {
	watts := func(w float64) string {
		if w == 0 {
			return "–"
		}
		return fmt.Sprintf("%.1f W", w)
	}
	tab := term.NewTable("product", "right after", "over", "power", "steady\nalone", "change", "95 %")
	for _, a := range r.Interleaved {
		change, within := "–", "–"
		if a.Ratio != 0 {
			change, within = term.MeasuredChange(a.Ratio, a.Interval[:]), term.Interval(a.Interval[:])
		}
		tab.Add(r.Products[a.Product].Name, r.Products[a.Other].Name, a.Over.String(), watts(a.Watts), watts(a.Alone), change, within)
	}
	return tab
}

// aboutProfile prints the basis of a profile's table: runs, sensors, and the reasons for missing figures.
func (r profileReport) aboutProfile(w io.Writer, p profile.Profile) {
	r.aboutRuns(w, p)
	if p.Trace == nil {
		why := "there is no trace of power over time"
		if r.Interrupted() {
			why += ": the measurement ended with too few readings, or without time to compute the trace"
		}
		term.Remark(w, "note", why)
		return
	}
	rest, low, high, clock := p.BeforeWork()
	text := fmt.Sprintf("%s W (95 %%: %s … %s)", decimal(rest, 0), decimal(low, 0), decimal(high, 0))
	if clock != nil {
		text += fmt.Sprintf(" at %.0f MHz", *clock)
	}
	term.Remark(w, "before the work", text)
	aboutSteady(w, p)
	if p.Density != nil {
		term.Remark(w, "density", densityText(*p.Density))
	}
	for _, c := range p.Counted {
		watts, low, high := p.Trace.Mean(c.From, c.To)
		term.Remark(w, "power from bursts", fmt.Sprintf("%s W (95 %%: %s … %s) from %v to %v; the trace has %s W (%s … %s)",
			decimal(c.Watts, 0), decimal(c.Low, 0), decimal(c.High, 0), c.From, c.To, decimal(watts, 0), decimal(low, 0), decimal(high, 0)))
	}
	for _, s := range p.Sensors {
		term.Remark(w, "sensor", sensorText(s))
	}
	term.Remark(w, "resolution", resolutionText(p))
	if slices.ContainsFunc(p.Milestones, profile.Milestone.TooCoarse) {
		more := "a larger --runs fills more rows"
		if r.asked == 0 {
			more = "a larger --runs, or a --resolution such as 10ms, fills more rows"
		}
		term.Remark(w, "–", "power is unknown where the trace is too coarse to separate it from later power; "+more)
	}
	if in := p.Execution; in != nil && in.Resolved {
		term.Remark(w, "in an execution", executionText(*in))
	} else if in != nil && p.Steady.SSP.Found {
		term.Remark(w, "not resolved", "power within an execution: "+in.Why)
	}
	if r.asked > 0 && p.Coarsest().Duration() > r.asked {
		term.Remark(w, "note", fmt.Sprintf("too few runs for the --resolution: with %s the trace is as coarse as %v in places, or uncertain by more than ±5 %% at %v: give larger --runs and --time",
			term.Plural(p.Golden, "golden run", "golden runs"), p.Coarsest(), stitch.Seconds(r.asked)))
	}
}

func (r profileReport) aboutRuns(w io.Writer, p profile.Profile) {
	text := fmt.Sprintf("%s, %d of them golden (with the usual execution times), in %.0f s", term.Plural(p.Taken, "run", "runs"), p.Golden, r.Seconds)
	if low, high, ok := p.Temperatures(); ok {
		text += "; the GPU was at " + decimal(low, 0)
		if to := decimal(high, 0); to != decimal(low, 0) {
			text += " to " + to
		}
		text += " °C"
	}
	if p.LateReadings > 0 {
		text += fmt.Sprintf("; left out: %s of unknown time, because the sensor was read too late", term.Plural(p.LateReadings, "reading", "readings"))
	}
	term.Remark(w, how(r.Simulated), text)
	if p.Taken < p.Advised {
		term.Remark(w, "note", fmt.Sprintf("Table I of the FinGraV paper asks for %d runs, and the profile has %d: give larger --runs and --time", p.Advised, p.Taken))
	}
}

// densityText compares the number of readings within an execution with Table I of the FinGraV paper.
func densityText(d profile.Density) string {
	text := fmt.Sprintf("%s within the execution of SSE, %s within that of SSP, %s during steady power; Table I of the FinGraV paper asks for %s within one execution",
		term.Plural(d.SSE, "reading", "readings"), term.Count(d.SSP), term.Count(d.Steady), term.Count(d.Asked))
	if !d.Met() && d.Runs > 0 {
		text += fmt.Sprintf("; with these sensors, %s runs give as many", term.Count(d.Runs))
	}
	return text
}

// flagged adds the names of flags to the library's advice.
var flagged = strings.NewReplacer("take longer runs", "take longer runs (--length)", "take more runs", "take more runs (--runs and --time)")

func aboutSteady(w io.Writer, p profile.Profile) {
	if s := p.Steady.SSE; s.Found {
		mean := p.Segments[0].End / profile.Seconds(p.Segments[0].Executions)
		term.Remark(w, "execution time", fmt.Sprintf("steady from execution %s on (SSE). Execution %[1]s takes %v; the mean of all executions is %v",
			term.Count(s.Execution), stitch.Of(s.Seconds), mean))
	} else {
		term.Remark(w, "note", "execution time was not steady: "+flagged.Replace(s.Why))
	}
	if s := p.Steady.SSP; s.Found {
		term.Remark(w, "steady power", fmt.Sprintf("from execution %s on (SSP), %v after the start: %s W (95 %%: %s … %s)", term.Count(s.Execution), s.At, decimal(s.Watts, 1), decimal(s.Low, 1), decimal(s.High, 1)))
		if !s.Lasts {
			term.Remark(w, "note", "steady power did not last: "+s.Why)
		}
	} else {
		term.Remark(w, "note", "no steady power was found: "+flagged.Replace(s.Why))
	}
}

// remarks prints the remarks that apply to all profiles.
func (r profileReport) remarks(w io.Writer) {
	if s := r.Sync; s != nil {
		text := fmt.Sprintf("the card's timer was compared with the host's %s; delay %v, drift %s ppm, residual %v", term.Plural(s.Groups, "time", "times"), s.Delay, term.Signed(s.Drift, 1), s.Residual)
		if s.Launch > s.Delay {
			text += fmt.Sprintf("; work began %v after its launch", s.Launch)
		}
		term.Remark(w, "timers", text)
	}
	for _, p := range r.Products {
		if p.Kernel != nil {
			term.Remark(w, "kernel", p.Kernel.String())
		}
	}
	if r.unsplit != "" {
		term.Remark(w, "note", r.unsplit)
	}
	if r.Interrupted() && r.HasTrace() {
		how := "was interrupted"
		if r.Stopped == power.StoppedFailed {
			how = "failed"
		}
		of := "a trace uses only the latest golden runs, and is coarser than in a complete measurement"
		if r.Recomputed != "" {
			of = "traces use all golden runs until then"
		}
		term.Remark(w, "note", "the measurement "+how+"; "+of)
	}
	if r.Simulated {
		term.Remark(w, "note", simulatedNote)
	}
	term.Remarks(w, "warning", r.Warnings)
	printSignatures(w, r.signatures)
}

// split splits the products' power by component. Without a splitter, unsplit explains why there is no split.
func (r *profileReport) split(ctx context.Context, s *measure.Splitter, unsplit string, products []cuda.Product) error {
	r.unsplit = unsplit
	if s == nil {
		return nil
	}
	for i, p := range r.Profiles[:min(len(products), len(r.Profiles))] {
		about := r.Products[i]
		d := measure.Dissected{Name: about.Name, Before: products[i : i+1], Platform: r.Platform}
		if about.Kernel != nil {
			d.Kernels = []cuda.Kernel{*about.Kernel}
		}
		for _, m := range p.Milestones {
			if m.Name == "SSP" && m.SMClock != nil {
				d.Seconds, d.Clock = p.Steady.SSP.Seconds, *m.SMClock
			}
		}
		found, err := s.Split(ctx, d)
		if err != nil {
			return err
		}
		r.signatures = append(r.signatures, found)
	}
	return nil
}

func sensorText(s stitch.Sensor) string {
	text := fmt.Sprintf("%s, %s", s.Name, term.Plural(s.Readings, "reading", "readings"))
	if s.Window > 0 {
		text += ", each over " + s.Window.String()
	}
	if !s.Used {
		return text + "; not used: " + s.Why
	}
	if s.TimeConstant > 0 {
		text += fmt.Sprintf(", behind a filter with a time constant of %v", s.TimeConstant)
	}
	switch late := s.Delay; {
	case late >= stitch.Seconds(time.Microsecond):
		text += fmt.Sprintf(", %v late", late)
	case late <= -stitch.Seconds(time.Microsecond):
		text += fmt.Sprintf(", %v early", -late)
	}
	if math.Abs(s.Gain-1) > 0.001 && s.Gain > 0 {
		text += fmt.Sprintf(", differs from the energy counter by %s %%", term.Signed(100*(s.Gain-1), 1))
	}
	return text + fmt.Sprintf(", ±%.1f W around the trace", s.Error)
}

func executionText(in profile.Execution) string {
	var parts []string
	for _, w := range in.Watts {
		parts = append(parts, fmt.Sprintf("%.0f", w))
	}
	return fmt.Sprintf("%s W in consecutive parts of %v each; mean of %s at steady power",
		strings.Join(parts, ", "), in.Length/profile.Seconds(len(in.Watts)), term.Plural(in.Executions, "execution", "executions"))
}

// executionsText returns the number of completed executions.
func executionsText(n float64) string {
	const rounding = 1e-6
	return term.Count(int(n + rounding))
}

// decimal formats a number with a typographic minus sign.
func decimal(v float64, digits int) string {
	return strings.Replace(fmt.Sprintf("%.*f", digits, v), "-", "−", 1)
}

// resolutionText says which changes of power the trace can show.
func resolutionText(p profile.Profile) string {
	text := fmt.Sprintf("%v in the first %v, %v over the whole run; shorter changes of power are not resolved",
		p.Resolution(0, profile.EarlyTime), profile.EarlyTime, p.Resolution(0, p.End()))
	if l := p.Trace.Law; l != nil && l.Exponent != 0 {
		text += fmt.Sprintf("; changes of power that follow the executions' speed are resolved down to %v: power changes by %.1f %% if speed changes by 1 %%",
			p.Trace.Step, l.Exponent)
	}
	switch {
	case len(p.Sensors) == 0:
	case p.Sensors[0].TimeConstant > 0:
		text += "; power that rises and falls as slowly as the filter cannot be told from the filter's effect"
	default:
		text += fmt.Sprintf("; a delay below %v that all sensors share is not detected, and shifts all times", stitch.UnresolvedDelay)
	}
	return text
}
