package bench

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/gemm/profile"
	"github.com/lowtoggle/lowtoggle/internal/goldenfile"
)

// clockRow holds the time, clock and power of GEMMs in one part of a record.
type clockRow struct {
	what     string
	seconds  float64 // of one GEMM
	reported float64 // clock by NVML, in MHz
	watts    string
}

// steadyClocks returns the clocks of 8192³ back to back at the driver's power cap.
func steadyClocks(t *testing.T) (rows []clockRow) {
	var r measure.Result
	read(t, recorded+"pair-2.json", &r)
	for _, s := range r.Loads() {
		if s.Name != r.Null.Name {
			rows = append(rows, clockRow{s.Name + ", back to back", s.Seconds, *s.SMClock, fmt.Sprintf("%.0f W", s.Watts)})
		}
	}
	return rows
}

// milestone returns a profile's milestone.
func milestone(t *testing.T, p *profile.Profile, name string) profile.Milestone {
	for _, m := range p.Milestones {
		if m.Name == name {
			return m
		}
	}
	t.Fatalf("no milestone %q", name)
	return profile.Milestone{}
}

// between returns the mean time of a GEMM from one milestone to another, and the clock at the second milestone.
func between(t *testing.T, p *profile.Profile, from, to string) clockRow {
	a, b := milestone(t, p, from), milestone(t, p, to)
	return clockRow{seconds: (b.At - a.At).Seconds() / (b.Executions - a.Executions), reported: *b.SMClock}
}

// TestClockPage checks the part of docs/bursts.md about reported and effective clocks.
func TestClockPage(t *testing.T) {
	goldenfile.SameBetween(t, "../docs/bursts.md", "<!-- clocks: go test ./bench -run ClockPage -update -->\n", "<!-- end of clocks -->\n", clockPart(t))
}

// dutyDecode is the record of a comparison in decode at several duties. The file may be missing.
const dutyDecode = "duty-decode.json"

func clockPart(t *testing.T) string {
	var b strings.Builder
	var tables []string
	var cycles []float64
	for _, file := range []string{"duty-steady.json", "duty-prefill.json"} {
		var r measure.Result
		read(t, recorded+file, &r)
		tables = append(tables, dutyTable(file, &r))
		for _, run := range append([]*measure.Result{&r}, r.AtDuty...) {
			for _, c := range run.Loads() {
				cycles = append(cycles, c.Seconds**c.EffectiveClock)
			}
		}
	}
	if exists(recorded + dutyDecode) { // a GEMM of another shape, with another number of cycles
		var r measure.Result
		read(t, recorded+dutyDecode, &r)
		var grid []string
		for _, run := range append([]*measure.Result{&r}, r.AtDuty...) {
			at := slices.IndexFunc(run.Variants, func(c power.Comparison) bool { return strings.HasSuffix(c.Name, "| grid(4)") })
			grid = append(grid, fmt.Sprintf("%s %% at duty %.2g", signed(change(run.Variants[at].RelativeEnergy), 1), run.Pacing.Duty))
		}
		tables = append(tables, "\nThe last record is of decode: the weights come from memory, and the card is below its cap. Within the intervals, energy\n"+
			"changes by the same percentage in bursts as back to back. `grid(4)` changes it by "+strings.Join(grid, ", ")+".\n"+
			"Within the intervals, a GEMM takes the same time with the copy and with coarser weights.\n"+dutyTable(dutyDecode, &r))
	}
	needed := stat.Mean(cycles, nil)
	fmt.Fprintf(&b, "The first table has GEMMs of 8192³ back to back (duty 1), and the second table has bursts of one GEMM on the same H200. With all\n"+
		"weights and duties, a GEMM took %.3f million cycles at the effective clock, within %.1f %%. For each duty, the first row gives energy\n"+
		"and time of one GEMM. The other rows give changes relative to the first row, with `±` half of the 95 %% interval. The power column has\nthe average over bursts and gaps, and then the power in bursts.\n", needed, math.Ceil(1e3*(slices.Max(cycles)/slices.Min(cycles)-1))/10)
	for _, table := range tables {
		b.WriteString(table)
	}
	b.WriteString("\nOther records have no effective clock. In the next table, the effective clock is the number of cycles of a GEMM of 8192³, divided by\nthe GEMM's time.\n\n")
	b.WriteString("| GEMMs | time of a GEMM | clock, NVML | effective clock | power |\n|---|---|---|---|---|\n")
	line := func(r clockRow) {
		fmt.Fprintf(&b, "| %s | %s | %.0f MHz | %.0f MHz | %s |\n", r.what, shortTime(r.seconds), r.reported, needed/r.seconds, r.watts)
	}
	for _, r := range steadyClocks(t) {
		line(r)
	}
	for i, run := range profiledProducts(t)[0].runs {
		const from, to = "10 ms", "20 ms"
		r := between(t, run, from, to)
		r.what, r.watts = fmt.Sprintf("random, %s to %s after idle, run %d", from, to, i+1), within(run.Trace.Mean(10*ms, 20*ms))
		line(r)
	}
	return b.String()
}

// dutyTable returns Markdown with the comparison at every duty of a record.
func dutyTable(file string, r *measure.Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nThis command wrote the record `%s` on %s:\n\n```\n%s\n```\n\n", file, r.Card.ID(), r.Command)
	b.WriteString("| weights | duty | energy | time | average power, power in bursts | clock, NVML | effective clock | limit |\n|---|---|---|---|---|---|---|---|\n")
	for _, run := range append([]*measure.Result{r}, r.AtDuty...) {
		duty := fmt.Sprintf("%.2g", run.Pacing.Duty)
		if !run.Valid {
			duty += ", invalid"
		}
		for i, c := range run.Loads() {
			energy, time := fmt.Sprintf("%.4g mJ", 1e3*c.Joules), shortTime(c.Seconds)
			if i > 0 {
				energy, time = energyCell(c), timeCell(c)
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %.0f, %.0f W | %.0f MHz | %.0f MHz | %s |\n", strings.ReplaceAll(c.Name, "|", "\\|"), duty, energy, time, c.Watts, c.Joules/c.Seconds,
				*c.SMClock, *c.EffectiveClock, cmp.Or(strings.ReplaceAll(string(c.Limit), "_", " "), "none"))
		}
	}
	return b.String()
}

// timeCell returns a change of time in per cent, with its interval.
func timeCell(c power.Comparison) string {
	return fmt.Sprintf("%s %% ± %.2f", signed(change(c.RelativeTime), 2), 50*(c.TimeInterval[1]-c.TimeInterval[0]))
}

func shortTime(seconds float64) string {
	if seconds < 1e-4 {
		return fmt.Sprintf("%.2f µs", 1e6*seconds)
	}
	return fmt.Sprintf("%.3f ms", 1e3*seconds)
}

// TestBurstClock checks the cost model's ratio of the clock below the cap to the clock at the cap. The ratio must agree with the
// recorded bursts, and with the recorded profiles before the card's controller reacts.
func TestBurstClock(t *testing.T) {
	c, err := cost.FindCalibration("h200")
	if err != nil {
		t.Fatal(err)
	}
	var base *cost.Baseline
	for i := range c.Series {
		if s := &c.Series[i]; s.Type == arith.BF16 && s.M == 8192 && s.N == 8192 && s.K == 8192 && s.Role == cost.Stationary && !s.Cold {
			base = &s.Baseline
		}
	}
	var steady, bursts measure.Result
	read(t, recorded+"duty-steady.json", &steady)
	read(t, recorded+"duty-prefill.json", &bursts)
	ratios := []float64{steady.Baseline.Seconds / bursts.Baseline.Seconds, steady.Baseline.Seconds / bursts.AtDuty[0].Baseline.Seconds}
	for _, run := range profiledProducts(t)[0].runs {
		ratios = append(ratios, base.Seconds/between(t, run, "10 ms", "20 ms").seconds)
	}
	for _, ratio := range ratios {
		if b := c.Facts.Power.Bursts; math.Abs(ratio/b.Usual-1) > 0.01 || ratio < b.Low || ratio > b.High {
			t.Errorf("below the cap GEMMs run at %.3f times the clock at the cap, and the cost model has %+v", ratio, b)
		}
	}
}
