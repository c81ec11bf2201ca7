package card

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/predict"
	"github.com/lowtoggle/lowtoggle/internal/printable"
)

// writeMeasured prints a comparison on one card or on several, in the format that the flags choose.
func writeMeasured(c *cli.Context, r *measure.CardResults, title string, covered map[string]*predict.Coverage) error {
	w := c.App.Writer
	if c.Bool("json") {
		return term.JSON(w, measuredDocument{r, covered})
	}
	if c.Bool("csv") {
		return writeCSV(w, measuredRows(r))
	}
	if !c.Bool("bench") {
		printMeasured(w, r, title)
		return nil
	}
	for _, one := range r.Cards {
		measureReport{one.Result, title, one.Name}.bench(w)
	}
	return nil
}

// printMeasured prints the report of every card and of all cards together.
func printMeasured(w io.Writer, r *measure.CardResults, title string) {
	for _, one := range r.Cards {
		report := measureReport{one.Result, title, one.Name}
		if !r.Several() {
			report.print(w)
			continue
		}
		fmt.Fprintf(w, "%s:\n", printable.Quote(one.Name))
		report.print(w)
		fmt.Fprintln(w)
	}
	if r.Several() {
		printTogether(w, r)
	}
}

// measuredDocument is the JSON document of a comparison, with the part of models that it covers.
type measuredDocument struct {
	*measure.CardResults
	covered map[string]*predict.Coverage
}

// MarshalJSON adds the coverage of models to the results' document.
func (d measuredDocument) MarshalJSON() ([]byte, error) {
	results, err := json.Marshal(d.CardResults)
	if err != nil || len(d.covered) == 0 {
		return results, err
	}
	covered, err := json.Marshal(d.covered)
	return slices.Concat(results[:len(results)-1], []byte(`,"coverage":`), covered, []byte("}")), err
}

// printTogether prints several cards' totals and differences.
func printTogether(w io.Writer, r *measure.CardResults) {
	if r.Total != nil {
		printTotals(w, len(r.Cards), "weights", r.Total.Loads)
		printSpreads(w, "weights", r.Spread.Loads)
		if null := r.Spread.Loads[1]; null.Differ != nil && *null.Differ {
			term.Remark(w, "warning", null.Name+" has the baseline's weights, so a difference between the cards is a measurement error; by chance such an error occurs in one run of twenty")
		}
	}
	if slices.ContainsFunc(r.Cards, func(c measure.CardResult) bool { return c.Simulated }) {
		term.Remark(w, "note", simulatedNote)
	}
	term.Remarks(w, "INVALID", r.Invalid)
}

// printTotals prints the totals over all cards.
func printTotals(w io.Writer, cards int, head string, loads []measure.Total) {
	fmt.Fprintf(w, "total of %d cards\n\n", cards)
	tab := term.NewTable(head, "energy", "95 %", "time", "energy\nper pass", "power")
	for _, t := range loads {
		cells := []string{t.Name, "–", term.Interval(t.Interval), "–", "–", "–"}
		if t.RelativeEnergy > 0 {
			cells[1] = term.MeasuredChange(t.RelativeEnergy, t.Interval)
		}
		if t.RelativeTime > 0 {
			cells[3] = term.MeasuredChange(t.RelativeTime, t.TimeInterval)
		}
		if t.Joules > 0 {
			cells[4] = siJoules(t.Joules)
		}
		if t.Watts > 0 {
			cells[5] = fmt.Sprintf("%.0f W", t.Watts)
		}
		tab.Add(cells...)
	}
	tab.Print(w)
	fmt.Fprintln(w)
}

// printSpreads prints the differences between cards.
func printSpreads(w io.Writer, head string, loads []measure.Spread) {
	fmt.Fprintf(w, "smallest and largest values among the cards\n\n")
	tab := term.NewTable(head, "energy", "energy\nper pass", "power, W", "clock, MHz", "°C", "")
	for _, s := range loads {
		note := ""
		if s.Differ != nil && *s.Differ {
			note = "differ"
		}
		change := func(v float64) string { return term.Signed(100*(v-1), 2) }
		tab.Add(s.Name, ends(s.RelativeEnergy, change, " %"), ends(s.Joules, siJoules, ""),
			ends(s.Watts, whole, ""), ends(s.Clock, whole, ""), ends(s.Temperature, whole, ""), note)
	}
	tab.Print(w)
	fmt.Fprintln(w)
	spreadRemarks(w, loads)
}

// spreadRemarks says whether the cards agree, and which card uses most energy.
func spreadRemarks(w io.Writer, loads []measure.Spread) {
	agree, known := true, false
	for _, s := range loads {
		r := s.RelativeEnergy
		switch {
		case r == nil:
		case s.Differ == nil:
			agree = false
			term.Remark(w, "cards", s.Name+": whether the cards agree is unknown, because a card's energy change has no interval: measure longer (--time)")
		case *s.Differ:
			agree = false
			term.Remark(w, "cards", fmt.Sprintf("%s: energy changes by %s %% on %s and by %s %% on %s, and the difference is larger than the intervals explain", s.Name,
				term.Signed(100*(r.Smallest-1), 2), r.SmallestCard, term.Signed(100*(r.Largest-1), 2), r.LargestCard))
		default:
			known = true
		}
	}
	if agree && known {
		term.Remark(w, "cards", "the cards agree within their intervals")
	}
	if s := loads[0]; s.Joules != nil && s.Joules.Largest/s.Joules.Smallest >= 1.0005 {
		term.Remark(w, "cards", fmt.Sprintf("%s takes %s per pass on %s and %s on %s: %.1f %% more", s.Name,
			joulesBeside(s.Joules.Smallest, s.Joules.Largest), s.Joules.SmallestCard, siJoules(s.Joules.Largest), s.Joules.LargestCard, 100*(s.Joules.Largest/s.Joules.Smallest-1)))
	}
}

// ends formats a range. Equal ends and a common unit are written once.
func ends(r *measure.Range, write func(float64) string, unit string) string {
	if r == nil {
		return "–"
	}
	low, high := write(r.Smallest), write(r.Largest)
	if low == high {
		return low + unit
	}
	if number, of, ok := strings.Cut(low, " "); ok && strings.HasSuffix(high, " "+of) {
		low = number
	}
	return low + " … " + high + unit
}

func whole(v float64) string { return fmt.Sprintf("%.0f", v) }
