package bench

import (
	"fmt"

	"github.com/lowtoggle/lowtoggle/gemm/power"
)

func measuringClaims(e *evidence) []claim {
	run := recordedRun(e.T, "pair-2")
	watts := func(v float64) string { return fmt.Sprintf("%.0f W", v) }
	clock := func(s power.Summary) string { return fmt.Sprintf("%.0f MHz", *s.SMClock) }
	joules := func(v float64) string {
		if v < 1 {
			return fmt.Sprintf("%.3f mJ", 1e3*v)
		}
		return fmt.Sprintf("%.3f J", v)
	}
	last := func(s power.Summary) string {
		return fmt.Sprintf("%s %s %s", joules(s.Joules), watts(s.Watts), clock(s))
	}
	list := []claim{says("\n"+run.Baseline.Name+"                –                  –         –     {}  capped", last(run.Baseline))}
	for _, v := range append(run.Variants, run.Null) {
		list = append(list, says("\n"+v.Name+"  {}  capped", fmt.Sprintf("%s %s %% %s %s", percent(change(v.RelativeEnergy), 2), span(v.Interval, 2),
			percent(change(v.RelativeTime), 2), last(v.Summary))))
	}
	at := func(variant string) string {
		return fmt.Sprintf("%.1f", *e.of("patterns-stationary", variant).SMClock/1e3)
	}
	settle := func(name, unit string) string {
		return e.source("gemm/power/meter.go", `fill\(&o\.`+name+`, (\d+)\*time\.`+unit+`\)`)[0]
	}
	list = append(list,
		says("below the limit\nof {} W.", fmt.Sprint(*run.Card.PowerLimit)),
		says("So the next load gets {} s to settle. Between\n  loads at the cap {} ms are enough", settle("CapSettle", "Second"), settle("Settle", "Millisecond")),
		says("all-zero weights run at {} GHz, not at {} GHz.", at("patterns.safetensors:zeros"), fmt.Sprintf("%.2f", e.calibration().Facts.Settings.HighestClock/1e3)))
	for _, phase := range []struct{ name, file, source string }{{"prefill", "several-prefill", "%.4f J, %.0f W"}, {"decode", "several-decode", "%.2f mJ, %.0f W"}} {
		runs := recordedRuns(e.T, phase.file)
		text, figures, source := "| "+phase.name+", energy |", []string{}, []string{}
		for card := range 2 {
			r := runs[fmt.Sprintf("%s card %d", phase.file, card)]
			figures = append(figures, changed(r.Variants[0], 1))
			if text += " {}"; !r.Valid {
				text += " (invalid: a copy read {})"
				figures = append(figures, changed(r.Null, 2))
			}
			text += " |"
			joules := r.Baseline.Joules
			if phase.name == decode {
				joules *= 1e3
			}
			source = append(source, fmt.Sprintf(phase.source, joules, r.Baseline.Watts))
		}
		list = append(list, says(text, figures...), says("| "+phase.name+", source | {} | {} |", source...))
	}
	return list
}
