package probe

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/bench/experiment"
	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// measured returns a small series on the simulated card.
func measured(t *testing.T, role cost.Role) *experiment.Series {
	t.Helper()
	w, err := job(prefill(arith.BF16, 64, role), short)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := experiment.Run(t.Context(), measure.Simulated(power.DefaultSim()), folder, []experiment.Job{w}, experiment.Options{}); err != nil {
		t.Fatal(err)
	}
	all, err := experiment.LoadFolder(folder)
	if err != nil {
		t.Fatal(err)
	}
	return all[0]
}

// TestCalibrate fits to a simulated card whose energy depends on toggles between rows, and finds the streaming operand.
func TestCalibrate(t *testing.T) {
	all := []*experiment.Series{measured(t, cost.Stationary), measured(t, cost.Streaming)}
	like, err := cost.FindCalibration("h200")
	if err != nil {
		t.Fatal(err)
	}
	facts := &cost.Calibration{Facts: like.Facts} // and no model to be drawn towards
	facts.Facts.Memory = cost.MemoryLags{Element: 4, Sector: 16, Line: 128}
	if _, err := Calibrate(t.Context(), all, facts, nil); err == nil || !strings.Contains(err.Error(), "simulated card") {
		t.Fatalf("a simulated card was learnt from: %v", err)
	}
	for _, s := range all {
		for i := range s.Sessions {
			s.Sessions[i].Simulated = false
			s.Sessions[i].Card.Name = "Pretended"
			least, most := 111., 2222.
			s.Sessions[i].Card.MinSMClock, s.Sessions[i].Card.MaxSMClock = &least, &most
		}
	}
	done, total := 0, 0
	c, err := Calibrate(t.Context(), all, facts, func(d, n int) { done, total = d, n })
	if err != nil {
		t.Fatal(err)
	}
	if c.Card != "Pretended" || len(c.Series) != 2 || len(c.Models) != 1 || done == 0 || done > total {
		t.Errorf("%s, %d series, %d models, told of %d of %d", c.Card, len(c.Series), len(c.Models), done, total)
	}
	for i := range c.Series {
		if s := &c.Series[i]; len(s.Points) != len(all[i].Results())-2 || s.Baseline.Features == nil { // less the nulls
			t.Errorf("%d points of %d", len(s.Points), len(all[i].Results()))
		}
	}
	if !slices.Contains(c.Names, "memory_128") || slices.Contains(c.Names, "memory_64") {
		t.Errorf("features are not those of the facts that it began with: %v", c.Names)
	}
	if s := c.Facts.Settings; s.LowestClock != 111 || s.HighestClock != 2222 || s.LowestCap != 200 {
		t.Errorf("settings are not those that the device told: %+v", s)
	}
	if c.Facts.LagShares == like.Facts.LagShares {
		t.Error("the lags' shares are those of another card")
	}
	if fromBuiltIn, err := Calibrate(t.Context(), all, nil, nil); err != nil || !slices.Contains(fromBuiltIn.Names, "memory_64") {
		t.Errorf("a card that is not built in does not begin with the usual one's facts: %v", err)
	}
	all[1].Sessions[0].Card.Name = "Another"
	if _, err := Calibrate(t.Context(), all, facts, nil); err == nil || !strings.Contains(err.Error(), "calibrate each kind of card separately") {
		t.Errorf("two cards: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	all[1].Sessions[0].Card.Name = "Pretended"
	if _, err := Calibrate(ctx, all, facts, nil); err == nil {
		t.Error("cancelled, and done")
	}
}
