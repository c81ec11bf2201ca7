package bench

import (
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// TestDutyTable prints a comparison on a simulated card whose loads have a known difference.
func TestDutyTable(t *testing.T) {
	s := power.NewSim(power.DefaultSim())
	loads := power.Loads{Baseline: s.Load("a | b", 900, 0.005), Null: s.Load("copy", 900, 0.005), Variants: []power.Load{s.Load("half", 450, 0.004)}}
	var runs []*measure.Result
	for _, duty := range []float64{1, 0.4} {
		m, err := power.NewMeter(s, power.Options{Clock: s, Duty: duty, Command: "measure --duty"})
		if err != nil {
			t.Fatal(err)
		}
		r, err := m.Compare(t.Context(), loads)
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, &measure.Result{Result: r})
	}
	runs[0].AtDuty = runs[1:]
	got := dutyTable("duty.json", runs[0])
	for _, want := range []string{"`duty.json` on ", "\nmeasure --duty\n", "\n| a \\| b | 1 | ", " | average power |\n", "\n| half | 0.4 | −", " % ± 0.", " | 2000 MHz | 2000 MHz | none |\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing:\n%s", want, got)
		}
	}
	if lines := strings.Count(got, "\n| "); lines != 7 {
		t.Errorf("%d lines:\n%s", lines, got)
	}
}
