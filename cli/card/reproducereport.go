package card

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/bench/experiment"
	"github.com/lowtoggle/lowtoggle/bench/paper"
	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cli/term"
)

// reproduceReport reports on the series in a folder. ran is the error of the measurement before, or nil.
func reproduceReport(c *cli.Context, out string, ran error) error {
	r, err := paper.WriteReport(c.Context, out)
	switch nothing := errors.Is(err, fs.ErrNotExist); {
	case nothing && errors.Is(ran, experiment.ErrTime):
		return fmt.Errorf("%w: %w", exit.ErrShort, ran)
	case nothing && ran != nil:
		return ran // why there is nothing to report
	case nothing:
		return fmt.Errorf("%s: nothing was measured into this folder yet: leave out --report to measure", out)
	case err != nil:
		return errors.Join(ran, fmt.Errorf("%s: the report was not written: %w", out, err))
	}
	if errors.Is(ran, experiment.ErrTime) {
		r.Missing = ran.Error()
		ran = exit.ErrShort
	}
	if c.Bool("json") {
		err = term.JSON(c.App.Writer, r)
	} else {
		printReproduced(c.App.Writer, r)
	}
	if r.Doubts != nil {
		err = errors.Join(err, exit.ErrShort)
	}
	return cmp.Or(ran, err)
}

// printReproduced prints the takeaways and warnings.
func printReproduced(w io.Writer, r *paper.Report) {
	for _, t := range r.Takeaways {
		const indent = "     "
		fmt.Fprint(w, term.Wrap(t.Claim, fmt.Sprintf("%-5s", t.ID), indent, term.Width))
		text := t.Verdict
		if low, high, ok := extent(t.Effects); ok {
			text += ": energy " + changes(low, high)
		}
		fmt.Fprint(w, term.Wrap(text+"; the paper: "+t.Paper, indent, indent, term.Width))
	}
	fmt.Fprintln(w)
	points := 0
	var cards []string
	for _, s := range r.Series {
		points += s.Points
		if name := cardLabel(s.GPU, s.CardID); !slices.Contains(cards, name) {
			cards = append(cards, name)
		}
	}
	term.Remark(w, how(r.Simulated), fmt.Sprintf("%s in %d series on %s", term.Plural(points, "point", "points"), len(r.Series), strings.Join(cards, ", ")))
	term.Remark(w, "written", r.Files[0]+" with "+term.Plural(len(r.Files)-1, "figure", "figures"))
	if r.Missing != "" {
		term.Remark(w, "note", r.Missing)
	}
	if r.Simulated {
		term.Remark(w, "note", simulatedNote)
	}
	term.Remarks(w, "INVALID", r.Doubts)
}

// extent returns the smallest and the largest change of energy among the effects.
func extent(effects []paper.Effect) (low, high float64, ok bool) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, e := range effects {
		if !math.IsNaN(e.Energy) {
			low, high, ok = min(low, e.Energy), max(high, e.Energy), true
		}
	}
	return low, high, ok
}

// changes formats a range of changes.
func changes(low, high float64) string {
	if a, b := term.Signed(100*low, 1), term.Signed(100*high, 1); a != b {
		return a + " … " + b + " %"
	}
	return term.Signed(100*low, 1) + " %"
}
