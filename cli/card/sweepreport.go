package card

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cli/outfile"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/gemm/profile/stitch"
	"github.com/lowtoggle/lowtoggle/gemm/sweep"
)

// report prints the result, if any, and draws the picture. It returns the sweep's error, or an error if the sweep
// misses the requested precision.
func (q *sweepRequest) report(c *cli.Context, r *sweep.Result, err error) error {
	if r == nil {
		return err
	}
	var failed error
	switch {
	case c.Bool("json"):
		failed = term.JSON(c.App.Writer, r)
	case c.Bool("csv"):
		failed = term.CSV(c.App.Writer, sweepTable(r))
	default:
		q.print(c.App.Writer, r)
	}
	switch picture := sweepChart(r); {
	case failed != nil || q.picture == "":
	case outfile.KindOf(q.picture, outfile.Pictures...) == outfile.HTML:
		failed = q.page(c, r).Write(c, q.picture)
	case len(picture.Panels) > 0:
		failed = outfile.WriteChart(c, q.picture, picture)
	case !c.Bool("json") && !c.Bool("csv"):
		term.Remark(c.App.Writer, "picture", "not drawn: a line needs at least two settings")
	}
	switch {
	case err != nil:
		return err
	case failed == nil && (!r.Valid || q.short):
		return exit.ErrShort
	}
	return failed
}

func (q *sweepRequest) print(w io.Writer, r *sweep.Result) {
	what := r.Before
	if r.After != "" {
		what += ", converted: " + r.After
	}
	fmt.Fprintln(w, term.Wrap(fmt.Sprintf("%s: %s, %s, weights %v", sweepTitle(r), what, r.Workload, q.Role), "", "  ", term.Width))
	interval := "95 %"
	if r.Predicted {
		interval = "likely"
	}
	head := []string{"setting", "weights", "energy\n%", interval, "time\n%", interval, "power\nW", "clock\nMHz", "EDP", "gain\n− loss"}
	if r.Predicted {
		head = slices.Insert(head, 1, "basis")
	}
	tab := term.NewTable(head...)
	tab.Whole = true // shortened settings would be ambiguous
	for _, p := range r.Points {
		tab.Add(sweepCells(p, "original", p.Original)...)
		if p.Converted != nil {
			tab.Add(sweepCells(p, "converted", *p.Converted)...)
		}
	}
	tab.Print(w)
	fmt.Fprintln(w)
	printBest(w, r)
	q.remarks(w, r)
}

// sweepTitle describes how the figures were obtained.
func sweepTitle(r *sweep.Result) (title string) {
	switch {
	case r.Predicted:
		title = "predicted for " + r.GPU
	case r.Simulated:
		title = "simulated, not measured: " + r.GPU
	default:
		title = "measured on " + cardLabel(r.GPU, r.CardID)
	}
	if r.Stopped != "" {
		title += ", " + stoppedWord(r)
	}
	return title
}

// stoppedWord says how an incomplete sweep ended.
func stoppedWord(r *sweep.Result) string {
	if r.Stopped == power.StoppedFailed {
		return "failed"
	}
	return "interrupted"
}

func sweepCells(p sweep.Point, name string, f sweep.Figures) []string {
	clock := "–"
	if f.Clock != nil {
		clock = fmt.Sprintf("%.0f", *f.Clock)
	}
	cells := []string{p.Setting.String()}
	switch {
	case p.Extrapolated:
		cells = append(cells, "extrap.")
	case p.Predicted:
		cells = append(cells, "pred.")
	}
	return append(cells, name, term.Signed(100*(f.RelativeEnergy-1), 1), endsOf(f.Interval), term.Signed(100*(f.RelativeTime-1), 1), endsOf(f.TimeInterval),
		fmt.Sprintf("%.0f", f.Watts), clock, fmt.Sprintf("%.3f", f.EDP), term.Signed(100*f.GainMinusLoss, 1))
}

// endsOf formats an interval of ratios in per cent; "–" if unknown.
func endsOf(in []float64) string {
	if in == nil || in[1]/in[0]-1 < 1e-9 {
		return "–"
	}
	end := func(ratio float64) string {
		digits := 1
		if ratio >= 2 { // keeps the column narrow
			digits = 0
		}
		return term.Signed(100*(ratio-1), digits)
	}
	return end(in[0]) + "…" + end(in[1])
}

// printBest prints the best setting by each metric.
func printBest(w io.Writer, r *sweep.Result) {
	if len(r.Best) == 0 {
		return
	}
	tab := term.NewTable("best by", "setting alone", "conversion alone", "both")
	alike := false
	for _, b := range r.Best {
		value := func(c *sweep.Choice, at bool) string {
			if c == nil {
				return "–"
			}
			text := fmt.Sprintf("%.3f", c.Value)
			switch b.Metric {
			case "energy":
				text = term.Change(c.Value)
			case "energy_gain_minus_time_loss":
				text = term.Signed(100*c.Value, 1)
			}
			if at {
				text = c.Setting.String() + ": " + text
			}
			if len(c.AsGood) > 0 {
				alike = true
				text += " *"
			}
			return text
		}
		name := map[string]string{"energy": "energy", "edp": "EDP", "eds": fmt.Sprintf("EDS, k = %g", b.K), "energy_gain_minus_time_loss": "gain − loss"}[b.Metric]
		tab.Add(name, value(&b.Setting, true), value(b.Transform, false), value(b.Both, true))
	}
	tab.Print(w)
	fmt.Fprintln(w)
	term.Remark(w, "EDS", "energy-delay sum, ((k − 1) · energy + time)/k, relative to the reference")
	if alike {
		term.Remark(w, "*", "other settings are as good within their intervals; --json names these settings")
	}
}

// remarks prints the reference, the origin of the figures and the warnings.
func (q *sweepRequest) remarks(w io.Writer, r *sweep.Result) {
	for _, p := range r.Points {
		if r.IsReference(p.Setting) {
			o := p.Original
			term.Remark(w, "reference", fmt.Sprintf("the original at %v, %s: %s in %v for one pass through all layers. Energy, time and the energy-delay product (EDP) are relative to this reference; gain − loss (energy gain minus time loss) is in percentage points",
				p.Setting, aboutReference(r), siJoules(o.Joules), stitch.Of(o.Seconds)))
		}
	}
	switch {
	case r.Predicted:
		term.Remark(w, "pred.", fmt.Sprintf("predicted, not measured. Only predictions for %g W rest on measurements of a card", r.Reference))
		if slices.ContainsFunc(r.Points, func(p sweep.Point) bool { return p.Extrapolated }) {
			term.Remark(w, "extrap.", "extrapolated: dynamic power follows a power law of the clock. The likely interval covers other values of the exponent, of static and memory power, of the lowest voltage, and of memory-bound work at a low clock. – means that none of these values changes the figure")
		}
		term.Remark(w, "calibration", r.Calibration)
	case r.Simulated:
		term.Remark(w, "simulated", visitsText(r))
	default:
		term.Remark(w, "measured", visitsText(r))
	}
	switch r.Stopped {
	case power.StoppedCancelled:
		term.Remark(w, "note", "the sweep was interrupted; the report has what was measured until then")
	case power.StoppedFailed:
		term.Remark(w, "note", "the sweep failed; the report has what was measured until then")
	}
	if r.Simulated {
		term.Remark(w, "note", simulatedNote)
	}
	if at := coinciding(r); len(at) > 0 {
		term.Remark(w, "note", fmt.Sprintf("at %s the conversion changes neither energy nor time, so both lines of a picture coincide", strings.Join(at, ", ")))
	}
	term.Remarks(w, "warning", r.Warnings)
	term.Remarks(w, "INVALID", r.Invalid)
}

// coinciding returns the settings at which original and converted have equal figures in the table.
func coinciding(r *sweep.Result) (at []string) {
	for _, p := range r.Points {
		if o, c := p.Original, p.Converted; c != nil && math.Abs(c.RelativeEnergy-o.RelativeEnergy) < 5e-4 && math.Abs(c.RelativeTime-o.RelativeTime) < 5e-4 {
			at = append(at, p.Setting.String())
		}
	}
	return at
}

// aboutReference says how the reference's limit was chosen.
func aboutReference(r *sweep.Result) string {
	switch {
	case r.Predicted:
		return "the power limit of the calibration"
	case r.Default == r.Reference:
		return "the card's default power limit"
	}
	return fmt.Sprintf("the power limit that was set (the card's default is %g W)", r.Default)
}

func visitsText(r *sweep.Result) string {
	return fmt.Sprintf("%s; energy at the reference drifted by %.2f %%", term.Plural(len(r.Visits), "visit", "visits"), 100*r.Drift)
}
