package bench

import (
	"fmt"
	"math"

	"github.com/lowtoggle/lowtoggle/cost"
)

// calibration returns the built-in one of the H200.
func (e *evidence) calibration() *cost.Calibration {
	e.Helper()
	c, err := cost.FindCalibration("h200")
	if err != nil {
		e.Fatal(err)
	}
	return c
}

func orderingClaims(e *evidence) []claim {
	const first, second, decoded = "order-stationary-1", "order-stationary-2", "order-decode"
	at := func(file, variant string) string { return e.measured(file, variant, 2) }
	share := e.calibration().Facts.LagShares
	lag := e.calibration().Facts.Memory
	adds := func(order, alone string) string {
		return signed(change(e.of(second, order).RelativeEnergy)-change(e.of(second, alone).RelativeEnergy), 2)
	}
	return []claim{
		says("| a copy | {} | {} |", at(first, "copy"), at(second, "copy")),
		says("| `reorder,signs`; second run: `--recipe exact` | {} | {} |", at(first, "order"), at(second, "exact")),
		says("| `grid=2` | {} | {} |\n| `reorder,signs,grid=2`", at(first, "grid"), at(second, "grid2")),
		says("| `reorder,signs,grid=2` | {} | {} |", at(first, "grid-order"), at(second, "grid2-order")),
		says("| `round=5` | {} | {} |", at(first, "round5"), at(second, "round5")),
		says("| `reorder,signs,round=5` | – | {} |", at(second, "round5-order")),
		says("| no lossy pass | {} (a copy) | {} |", at(decoded, "copy"), at(decoded, "order-d")),
		says("| `grid=2` | {} | {} |\n\nThe", at(decoded, "grid"), at(decoded, "grid-order-d")),
		says("differences below {}. The second run", printed(1, math.Abs(change(e.of(first, "copy").RelativeEnergy))+100*halfWidth(e.of(first, "copy")))+" %"),
		says("by {} percentage points\nwith `round=5`, and by {} points with `grid=2`. A", adds("round5-order", "round5"), adds("grid2-order", "grid2")),
		says("layers' own inputs, gives {} of\nenergy for `reorder`", e.measured("layers-stationary", "reorder", 1)),
		says("4 5 6 7 12 13 … | {} |", fmt.Sprintf("%.2f", share.Streaming)),
		says("elements {} bytes apart in a row of the file | {} (weights) |", fmt.Sprint(lag.Line), fmt.Sprint(share.Line)),
		says("elements {} and {} bytes apart | {} and {} |", fmt.Sprint(lag.Element), fmt.Sprint(lag.Sector), fmt.Sprint(share.Element), fmt.Sprint(share.Sector)),
	}
}
