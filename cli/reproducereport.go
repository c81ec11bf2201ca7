package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/bench/experiment"
	"github.com/lowtoggle/lowtoggle/bench/paper"
	"github.com/lowtoggle/lowtoggle/cli/term"
)

// reproduced is what reproduce reports.
type reproduced struct {
	Takeaways []paper.Judgement `json:"takeaways"`
	Series    []reproducedOne   `json:"series"`
	Simulated bool              `json:"simulated,omitempty"`
	Files     []string          `json:"files"`
	// Missing says why points are, where the run ended before the last of them.
	Missing string `json:"missing,omitempty"`
	// Doubts speak against a series.
	Doubts []string `json:"doubts,omitempty"`
}

// reproducedOne is one series.
type reproducedOne struct {
	Setup  string `json:"setup"`
	GPU    string `json:"gpu"`
	Points int    `json:"points"`
}

// reproduceReport tells what the folder holds, after a run that ended with that error.
func reproduceReport(c *cli.Context, out string, ran error) error {
	all, err := experiment.LoadFolder(out)
	switch {
	case err != nil && ran != nil:
		return ran // there is nothing because of that
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: nothing was measured into this folder yet: leave out --report", out)
	case err != nil:
		return err
	}
	r := reproduced{Series: []reproducedOne{}, Files: []string{}}
	var results []paper.Result
	for _, s := range all {
		results = append(results, paper.Results(s)...)
		one := reproducedOne{Setup: s.Setup.String(), Points: len(s.Results())}
		for _, session := range s.Sessions {
			one.GPU = session.Card.Name
			r.Simulated = r.Simulated || session.Simulated
		}
		r.Series = append(r.Series, one)
		if err := s.Check(); err != nil {
			r.Doubts = append(r.Doubts, err.Error())
		}
	}
	r.Takeaways = paper.Judge(results)
	files, err := paper.Page(c.Context, all, "")
	if err != nil {
		return err
	}
	for _, f := range files {
		path := filepath.Join(out, f.Name)
		if err := replaceFile(path, f.Data); err != nil {
			return err
		}
		r.Files = append(r.Files, path)
	}
	if errors.Is(ran, experiment.ErrTime) {
		r.Missing = ran.Error()
		ran = errShort
	}
	if c.Bool("json") {
		err = term.JSON(c.App.Writer, r)
	} else {
		r.print(c.App.Writer)
	}
	if r.Doubts != nil {
		err = errors.Join(err, errShort)
	}
	return first(ran, err)
}

// print writes the takeaways and how sure they are.
func (r reproduced) print(w io.Writer) {
	for _, t := range r.Takeaways {
		const indent = "     "
		fmt.Fprint(w, term.Wrap(t.Claim, fmt.Sprintf("%-5s", t.ID), indent, term.Width))
		text := t.Verdict
		if low, high, ok := extent(t.Effects); ok {
			text += ": " + changes(low, high)
		}
		fmt.Fprint(w, term.Wrap(text+"; in the paper "+t.Paper, indent, indent, term.Width))
	}
	fmt.Fprintln(w)
	points := 0
	for _, s := range r.Series {
		points += s.Points
	}
	term.Remark(w, "measured", fmt.Sprintf("%s in %d series on %s", term.Plural(points, "point", "points"), len(r.Series), r.Series[0].GPU))
	term.Remark(w, "written", r.Files[0]+" with "+term.Plural(len(r.Files)-1, "figure", "figures"))
	if r.Missing != "" {
		term.Remark(w, "note", r.Missing)
	}
	if r.Simulated {
		term.Remark(w, "note", simulatedNote)
	}
	term.Remarks(w, "INVALID", r.Doubts)
}

// extent is the smallest and the largest change of energy among the effects.
func extent(effects []paper.Effect) (low, high float64, ok bool) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, e := range effects {
		if !math.IsNaN(e.Energy) {
			low, high, ok = min(low, e.Energy), max(high, e.Energy), true
		}
	}
	return low, high, ok
}

// changes writes a range of changes.
func changes(low, high float64) string {
	if a, b := term.Signed(100*low, 1), term.Signed(100*high, 1); a != b {
		return a + " … " + b + " %"
	}
	return term.Signed(100*low, 1) + " %"
}

// first error of two.
func first(a, b error) error {
	if a != nil {
		return a
	}
	return b
}
