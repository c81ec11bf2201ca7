package card

import (
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm/sweep"
)

// sweepTable is the output of sweep --csv: a row for the original and a row for the converted weights at every setting.
// Energy and time are relative to the original at the reference setting. Joules and seconds are for one pass. An
// empty cell is an unknown number, or a setting that is not changed.
func sweepTable(r *sweep.Result) [][]string {
	table := [][]string{{"weights", "workload", "cap_watts", "locked_mhz", "relative_energy", "energy_low", "energy_high", "relative_time", "time_low", "time_high",
		"joules", "seconds", "watts", "clock_mhz", "relative_edp", "origin"}}
	origin := r.Calibration
	if origin == "" {
		origin = cardOrigin("", r.GPU, r.CardID)
	}
	setting := func(v float64) string {
		if v == 0 {
			return ""
		}
		return term.Cell(v)
	}
	for _, p := range r.Points {
		for _, of := range []struct {
			weights string
			figures *sweep.Figures
		}{{r.Before, &p.Original}, {r.After, p.Converted}} {
			f := of.figures
			if f == nil {
				continue
			}
			low, high := term.Ends(f.Interval)
			fast, slow := term.Ends(f.TimeInterval)
			table = append(table, []string{of.weights, r.Workload, setting(p.Cap), setting(p.Clock), term.Cell(f.RelativeEnergy), low, high,
				term.Cell(f.RelativeTime), fast, slow, term.Cell(f.Joules), term.Cell(f.Seconds), term.Cell(f.Watts), term.CellOf(f.Clock), term.Cell(f.EDP), origin})
		}
	}
	return table
}
