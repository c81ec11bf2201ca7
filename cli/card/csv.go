package card

import (
	"fmt"
	"io"
	"strconv"

	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/gemm/predict"
	"github.com/lowtoggle/lowtoggle/gemm/serve"
)

// csvHead names the columns. An empty cell is unknown. Energy, interval and time are relative to the command's
// baseline. Joules and seconds are for one pass. Cold is true if the weights are read from memory.
var csvHead = []string{"pattern", "type", "shape", "role", "relative_energy", "interval_low", "interval_high", "joules", "seconds", "watts", "clock_mhz", "origin", "cold"}

// csvRow is a row of a table. A number that is nil or 0 is unknown.
type csvRow struct {
	name, typ, shape, role string
	relative               float64
	interval               []float64
	joules, seconds, watts float64
	clock                  *float64
	origin                 string // a calibration, or a card
	cold                   string // true or false
}

func writeCSV(w io.Writer, rows []csvRow) error {
	number := func(v float64) string {
		if v == 0 {
			return ""
		}
		return term.Cell(v)
	}
	table := [][]string{csvHead}
	for _, r := range rows {
		low, high, clock := "", "", ""
		if len(r.interval) == 2 {
			low, high = number(r.interval[0]), number(r.interval[1])
		}
		if r.clock != nil {
			clock = number(*r.clock)
		}
		table = append(table, []string{r.name, r.typ, r.shape, r.role, number(r.relative), low, high, number(r.joules), number(r.seconds), number(r.watts), clock, r.origin, r.cold})
	}
	return term.CSV(w, table)
}

// product fills in type, shape and role.
func (r csvRow) product(p *gemm.Problem) csvRow {
	if p != nil {
		r.typ, r.shape, r.role = p.Type.String(), dimensions(*p), "stationary"
		if p.Streaming {
			r.role = "streaming"
		}
	}
	return r
}

// predictedRows returns a row for every source and, with layers, also a row for each of the source's layers.
func predictedRows(r *predict.Report, layers bool) (rows []csvRow) {
	known := func(v *float64) float64 {
		if v == nil {
			return 0
		}
		return *v
	}
	for _, p := range r.Predictions {
		cold := strconv.FormatBool(p.Cold)
		row := csvRow{name: p.Name, relative: p.Relative, interval: p.Interval[:], joules: known(p.Joules), seconds: known(p.Seconds), watts: known(p.Watts), clock: p.Clock, origin: p.Calibration, cold: cold}
		rows = append(rows, row.product(p.Problem))
		for _, l := range p.Layers {
			if !layers || p.Count < 2 {
				break
			}
			row := csvRow{name: p.Name + " " + l.Layer, relative: l.Relative, interval: l.Interval[:], joules: known(l.Joules), seconds: known(l.Seconds), watts: known(l.Watts), clock: l.Clock, origin: l.Calibration, cold: cold}
			rows = append(rows, row.product(&l.Problem))
		}
	}
	return rows
}

// measuredRows returns a row for every load on every card, at every duty.
func measuredRows(r *measure.CardResults) (rows []csvRow) {
	for _, one := range r.Cards {
		origin := cardOrigin(one.Name, one.GPU, one.Card.ID())
		for _, res := range append([]*measure.Result{one.Result}, one.AtDuty...) {
			var problem *gemm.Problem
			if len(res.Products) == 1 {
				problem = &res.Products[0].Problem
			}
			from := origin
			if res.Pacing != nil {
				from += fmt.Sprintf(", duty %.3g", res.Pacing.Duty)
			}
			for i, l := range res.Loads() {
				row := csvRow{name: l.Name, relative: l.RelativeEnergy, interval: l.Interval, joules: l.Joules, seconds: l.Seconds, watts: l.Watts, clock: l.SMClock, origin: from, cold: strconv.FormatBool(res.Cold)}
				if i == 0 {
					row.relative = 1
				}
				rows = append(rows, row.product(problem))
			}
		}
	}
	return rows
}

// servedRows returns a row for every server. Joules and seconds are for one output token.
func servedRows(r *serve.Result) (rows []csvRow) {
	for i, l := range comparisonsOf(r) {
		row := csvRow{name: l.Name, relative: l.RelativeEnergy, interval: l.Interval, joules: l.Joules, seconds: l.Seconds, watts: l.Watts, clock: l.SMClock, origin: cardOrigin("", r.GPU, cardIDs(r.Cards))}
		if i == 0 {
			row.relative = 1
		}
		rows = append(rows, row)
	}
	return rows
}

// cardIDs lists the short ids of cards.
func cardIDs(cards []power.Info) (text string) {
	for _, c := range cards {
		if id := c.ID(); id != "" && text != "" {
			text += ", " + id
		} else if id != "" {
			text = id
		}
	}
	return text
}
