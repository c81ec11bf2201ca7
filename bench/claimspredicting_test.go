package bench

import (
	"fmt"
	"math"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/arith"
)

func predictingClaims(e *evidence) []claim {
	c := e.calibration()
	points := 0
	for i := range c.Series {
		points += len(c.Series[i].Points)
	}
	list := []claim{
		shows("$ lowtoggle predict 'normal(0,0.02) | round(4)' 'normal(0,0.02) | repeat(rows=4)' \\\n      'normal(0,0.02) | sparse(50%)' 'const(0.02)' zeros\n", e.command("predict", "normal(0,0.02) | round(4)",
			"normal(0,0.02) | repeat(rows=4)", "normal(0,0.02) | sparse(50%)", "const(0.02)", "zeros")),
		shows("$ lowtoggle predict --w 'normal(0,0.02) | round(4)' --against 'normal(0,0.02) | sparse(50%)'\n", e.command("predict", "--w", "normal(0,0.02) | round(4)",
			"--against", "normal(0,0.02) | sparse(50%)")),
		says("changed by {} with `const(0.02)` and by {} with `zeros` (", percent(change(e.of("pair-2", "const(0.02)").RelativeEnergy), 1), percent(change(e.of("pair-2", "zeros").RelativeEnergy), 1)),
		says("Each of the {} measured points is predicted", thousands(float64(points))),
	}
	for _, row := range []struct {
		text string
		typ  arith.Type
		cold bool
	}{
		{"on chip | BF16", arith.BF16, false}, {"on chip | FP16", arith.FP16, false}, {"on chip | FP8", arith.FP8, false}, {"on chip | INT8", arith.INT8, false},
		{"on chip | FP32", arith.FP32, false}, {"on chip | FP16 on CUDA cores", arith.FP16CUDA, false},
		{"weights from memory, as in decode | BF16", arith.BF16, true}, {"weights from memory, as in decode | FP16", arith.FP16, true},
		{"weights from memory, as in decode | FP8", arith.FP8, true},
	} {
		j := sumUp(row.text, in(c.LeaveOut(row.typ, row.cold, nil), func(s *cost.Series) bool { return s.Type == row.typ }))
		list = append(list, says("| "+row.text+" | {} | {} |", printed(1, 100*j.mean), printed(1, 100*j.worst)))
	}
	worst := map[string]float64{}
	for _, l := range layersTotals(e.T) {
		if !pruned(l.name) {
			worst[l.file] = max(worst[l.file], 100*math.Abs(l.predicted-l.measured))
		}
	}
	searched := 0.0
	for _, workload := range []string{"prefill", decode} {
		for _, p := range e.frontier.planned(workload) {
			searched = max(searched, 100*math.Abs(p.Predicted-e.frontier.reading(p, e.frontier.of(p.home())).RelativeEnergy))
		}
	}
	return append(list,
		says("off by at most {} points in\nprefill and {} in decode", fmt.Sprintf("%.1f", max(worst["layers-stationary"], worst["layers-streaming"])),
			fmt.Sprintf("%.1f", max(worst["layers-decode-stationary"], worst["layers-decode-streaming"]))),
		says("are off by up\nto {} point in both", fmt.Sprintf("%.1f", searched)),
	)
}
