package cli

import (
	"fmt"
	"io"
	"math"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/gemm/sweep"
)

// write prints the result and draws the picture.
func (q *sweepRequest) write(c *cli.Context, r *sweep.Result) error {
	if err := replaceFile(q.picture, sweepChart(r)); err != nil {
		return err
	}
	if c.Bool("json") {
		return printJSON(c.App.Writer, r)
	}
	q.print(c.App.Writer, r)
	return nil
}

func (q *sweepRequest) print(w io.Writer, r *sweep.Result) {
	what := r.Before
	if r.After != "" {
		what += ", converted: " + r.After
	}
	how := "measured on"
	if r.Predicted {
		how = "predicted for"
	}
	fmt.Fprintln(w, wrap(fmt.Sprintf("%s %s: %s, %s, weights %v", how, r.GPU, what, r.Workload, q.role), "", "  ", lineWidth))
	shown := q.k[:min(2, len(q.k))]
	head := []string{"setting", "weights", "energy", "±", "time", "power\nW", "clock\nMHz", "EDP"}
	for _, k := range shown {
		head = append(head, fmt.Sprintf("EDS\n%g", k))
	}
	head = append(head, "gain\n− loss")
	if r.Predicted {
		head = append(head, "")
	}
	tab := newTable(head...)
	for _, p := range r.Points {
		tab.add(sweepCells(p, "original", p.Original, len(shown))...)
		if p.Converted != nil {
			tab.add(sweepCells(p, "converted", *p.Converted, len(shown))...)
		}
	}
	tab.print(w)
	fmt.Fprintln(w)
	printBest(w, r)
	q.remarks(w, r)
}

func sweepCells(p sweep.Point, name string, f sweep.Figures, k int) []string {
	clock := "–"
	if f.Clock != nil {
		clock = fmt.Sprintf("%.0f", *f.Clock)
	}
	cells := []string{p.Setting.String(), name, percent(f.RelativeEnergy), halfOf(f), percent(f.RelativeTime),
		fmt.Sprintf("%.0f", f.Watts), clock, fmt.Sprintf("%.3f", f.EDP)}
	for _, e := range f.EDS[:min(k, len(f.EDS))] {
		cells = append(cells, fmt.Sprintf("%.3f", e.Value))
	}
	cells = append(cells, signed(100*f.GainMinusLoss, 1))
	if p.Predicted {
		cells = append(cells, "predicted")
	}
	return cells
}

// halfOf is how far the energy may be off, to the side that is further.
func halfOf(f sweep.Figures) string {
	if f.Interval == nil {
		return "–"
	}
	return fmt.Sprintf("%.1f", 100*math.Max(f.RelativeEnergy-f.Interval[0], f.Interval[1]-f.RelativeEnergy))
}

// printBest prints what is best by each metric.
func printBest(w io.Writer, r *sweep.Result) {
	if len(r.Best) == 0 {
		return
	}
	tab := newTable("best by", "setting alone", "conversion alone", "both")
	alike := false
	for _, b := range r.Best {
		value := func(c *sweep.Choice, at bool) string {
			if c == nil {
				return "–"
			}
			text := fmt.Sprintf("%.3f", c.Value)
			switch b.Metric {
			case "energy":
				text = percent(c.Value)
			case "energy_gain_minus_time_loss":
				text = signed(100*c.Value, 1)
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
		tab.add(name, value(&b.Setting, true), value(b.Transform, false), value(b.Both, true))
	}
	tab.print(w)
	fmt.Fprintln(w)
	if alike {
		remark(w, "*", "other settings are as good within their ±, and which of them comes out best is chance: --json names them")
	}
}

// remarks says what the table is relative to, and how sure it is.
func (q *sweepRequest) remarks(w io.Writer, r *sweep.Result) {
	for _, p := range r.Points {
		if p.Setting == r.Reference {
			o := p.Original
			remark(w, "reference", fmt.Sprintf("the original at %v, the card's default: %s in %.4g ms, one pass through all layers; energy and time are relative to it, gain less loss in points",
				r.Reference, siJoules(o.Joules), 1e3*o.Seconds))
		}
	}
	if r.Predicted {
		remark(w, "predicted", fmt.Sprintf("nothing was measured. At %v it is what a card was measured to do; below, what follows from its clock: power is static or goes with the clock to the 2.5 (2 to 3 in ±, with and without a floor of the voltage)", r.Reference))
		remark(w, "calibration", r.Calibration)
	} else {
		remark(w, "measured", fmt.Sprintf("%s; the reference drifted by %.2f %%", plural(len(r.Visits), "visit", "visits"), 100*r.Drift))
	}
	if r.Stopped != "" {
		remark(w, "note", "it was broken off; this is what was measured so far")
	}
	if r.Simulated {
		remark(w, "note", simulatedNote)
	}
	remarks(w, "warning", r.Warnings)
	remarks(w, "INVALID", r.Invalid)
}
