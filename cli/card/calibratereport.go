package card

import (
	"fmt"
	"io"

	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/internal/printable"
)

// calibrateJSON is the output of calibrate --json.
type calibrateJSON struct {
	File     string       `json:"file"`
	Replaced bool         `json:"replaced,omitempty"` // File replaced an earlier calibration
	Card     string       `json:"card"`
	Models   []cost.Model `json:"models"`
	// Rows is the number of rows in a table of measurements. Copies of the baseline were left out, and Repeated rows
	// were averaged with earlier ones.
	Rows     int      `json:"rows,omitempty"`
	Copies   int      `json:"copies,omitempty"`
	Repeated int      `json:"repeated,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

func (r *calibrateJSON) print(w io.Writer) {
	fmt.Fprintf(w, "%s: prediction errors for families of patterns that the fit did not use\n\n", printable.Quote(r.Card))
	tab := term.NewTable("type", "weights", "points", "mean error", "worst error")
	for _, m := range r.Models {
		from := "on chip"
		if m.Cold {
			from = "from memory"
		}
		mean, worst := points(m.Quality.Mean), points(m.Quality.Worst)
		if m.Quality.Points == 0 { // too few points to leave a family out
			mean, worst = "not tested", "–"
		}
		tab.Add(m.Type.String(), from, fmt.Sprint(m.Quality.Points), mean, worst)
	}
	tab.Print(w)
	fmt.Fprintf(w, "\npoints: predictions for families of patterns that the fit left out; errors are in %% of the energy with random weights\n")
	if r.Copies+r.Repeated > 0 {
		term.Remark(w, "rows", fmt.Sprintf("%d in the table; left out as a copy of the random weights: %d; averaged with an earlier row of the same pattern: %d",
			r.Rows, r.Copies, r.Repeated))
	}
	term.Remarks(w, "warning", r.Warnings)
	written := "written"
	if r.Replaced {
		written = "replaced"
	}
	fmt.Fprintf(w, "%s: %s\n", written, printable.Quote(r.File))
}

// points formats a share as percentage points.
func points(v float64) string { return fmt.Sprintf("%.2f", 100*v) }
