package bench

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/internal/goldenfile"
)

// sweepUnit is the factor and the unit in which the page gives figures.
type sweepUnit struct {
	end, text string // the end of a figure's name, and the page's text
	factor    float64
	digits    int
}

var sweepUnits = []sweepUnit{
	{" J", "energy, mJ", 1e3, 4}, {" s", "time, µs", 1e6, 4}, {" W", "power, W", 1, 3}, {" MHz", "clock, MHz", 1, 4},
	{" energy", "energy", 1, 3}, {" time", "time", 1, 3}, {" power", "power", 1, 3},
}

// sweepRow is a figure of several recorded runs.
type sweepRow struct {
	name   string
	points []sweepPoint
}

// TestSweepPage checks the table of docs/sweep.md: figures recorded at the default cap beside those of today's simulation.
func TestSweepPage(t *testing.T) {
	model := llama17m(t)
	if model == "" {
		t.Skip("no llama-17m here")
	}
	c, err := cost.FindCalibration("h200")
	if err != nil {
		t.Fatal(err)
	}
	goldenfile.SameBetween(t, "../docs/sweep.md", "<!-- simulated: go test ./bench -run SweepPage -update -->\n", "<!-- end of simulated -->\n",
		sweepTable(append(squarePoints(t, c), llamaPoints(t, c, model)...)))
}

func sweepTable(points []sweepPoint) string {
	rows := map[string]*sweepRow{}
	for _, p := range points {
		phase := ""
		switch {
		case strings.Contains(p.file, "decode"):
			phase = "decode"
		case !strings.HasPrefix(p.what, "8192³") && !strings.HasPrefix(p.file, "patterns"):
			phase = "prefill"
		}
		name := phase + " " + p.what
		if rows[name] == nil {
			rows[name] = &sweepRow{name: name}
		}
		rows[name].points = append(rows[name].points, p)
	}
	var b strings.Builder
	b.WriteString("| figure | runs | recorded | predicted | error |\n|---|---|---|---|---|\n")
	for _, r := range slices.SortedFunc(maps.Values(rows), func(a, b *sweepRow) int { return cmp.Compare(a.name, b.name) }) {
		b.WriteString(r.line())
	}
	fmt.Fprintf(&b, "\nThe next table lists the errors above %v %% with their likely reasons. Records are in `bench/results/h200`:\n\n| record | figure | likely reason |\n|---|---|---|\n", 100*simulatedWithin)
	for _, o := range simulatedOff {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", strings.Join(o.files, ", "), strings.NewReplacer(" J", " energy", " s", " time", " W", " power", " MHz", " clock").Replace(strings.Join(o.what, ", ")), o.why)
	}
	return b.String()
}

func (r *sweepRow) line() string {
	u := sweepUnits[slices.IndexFunc(sweepUnits, func(u sweepUnit) bool { return strings.HasSuffix(r.name, u.end) })]
	span := func(of func(p sweepPoint) float64) string {
		low, high := math.Inf(1), math.Inf(-1)
		for _, p := range r.points {
			low, high = min(low, of(p)), max(high, of(p))
		}
		one, other := fmt.Sprintf("%.*g", u.digits, low*u.factor), fmt.Sprintf("%.*g", u.digits, high*u.factor)
		if one == other {
			return one
		}
		return one + " to " + other
	}
	low, high := math.Inf(1), math.Inf(-1)
	for _, p := range r.points {
		low, high = min(low, 100*p.off()), max(high, 100*p.off())
	}
	off := percent(low, 1)
	if signed(low, 1) != signed(high, 1) {
		off = signed(low, 1) + " to " + percent(high, 1)
	}
	name := strings.TrimSpace(strings.TrimSuffix(r.name, u.end))
	return fmt.Sprintf("| %s: %s | %d | %s | %s | %s |\n", name, u.text, len(r.points), span(func(p sweepPoint) float64 { return p.measured }),
		span(func(p sweepPoint) float64 { return p.predicted }), off)
}
