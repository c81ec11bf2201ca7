package measure

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// endless are options for a measurement that runs until it is cancelled.
func endless(stage func(string)) Options {
	o := Options{Meter: power.Options{Precision: 1e-9, Time: time.Hour}}
	last := ""
	o.Progress = func(e Event) {
		if e.Stage != last && e.Stage != "prepare" && stage != nil {
			stage(e.Stage)
		}
		last = e.Stage
	}
	return o
}

// stages returns the card's time at the start of each stage and of the second block.
func stages(t *testing.T) map[string]time.Duration {
	t.Helper()
	base, variants := pair()
	m := Simulated(power.DefaultSim())
	begin := map[string]time.Duration{}
	o := endless(func(name string) { begin[name] = simOf(m).Now() })
	o.Meter.Time = time.Second
	if _, err := Compare(t.Context(), m, base, variants, o); err != nil {
		t.Fatal(err)
	}
	begin["second block"] = simOf(m).Now()
	return begin
}

// TestCancel: in every stage a cancelled measurement ends within a second with its figures so far.
func TestCancel(t *testing.T) {
	begin := stages(t)
	for _, c := range []struct {
		when, stage            string
		selfTest, steady, null bool
	}{
		{when: "self-test", stage: "self-test"},
		{when: "warm-up", stage: "warm-up", selfTest: true, steady: true},
		{when: "measure", stage: "measure", selfTest: true, steady: true},
		{when: "second block", stage: "measure", selfTest: true, steady: true, null: true},
	} {
		base, variants := pair()
		m := &counting{Machine: Simulated(power.DefaultSim())}
		ctx, cancel := context.WithCancel(t.Context())
		at := begin[c.when] + 300*time.Millisecond
		simOf(m).At(at, cancel)
		var stage string
		r, err := Compare(ctx, m, base, variants, endless(func(name string) { stage = name }))
		if !errors.Is(err, context.Canceled) || r == nil || r.Stopped != "cancelled" || stage != c.stage {
			t.Fatalf("%s: result %v, error %v, in stage %s", c.when, r, err, stage)
		}
		if late := simOf(m).Now() - at; late < 0 || late > time.Second {
			t.Errorf("%s: ended %v after it was cancelled", c.when, late)
		}
		if m.opened != 3 || m.closed != 0 { // which would wait for what is queued: the machine's Close does
			t.Errorf("%s: %d batches of %d were closed", c.when, m.closed, m.opened)
		}
		if (r.SelfTest != nil) != c.selfTest || (r.Steady != nil) != c.steady {
			t.Errorf("%s: self-test %v, steady state %v", c.when, r.SelfTest, r.Steady)
		}
		if (r.Null.Blocks == 1) != c.null || (r.Variants[0].RelativeEnergy > 0) != c.null || (r.Teraflops > 0) != c.null {
			t.Errorf("%s: %d blocks, energy %v, %v TFLOP/s", c.when, r.Null.Blocks, r.Variants[0].RelativeEnergy, r.Teraflops)
		}
		if n := len(r.Blocks); n > 0 && r.Blocks[n-1].Complete {
			t.Errorf("%s: the block that was broken off counts", c.when)
		}
		if _, err := json.Marshal(r); err != nil {
			t.Errorf("%s: %v", c.when, err)
		}
		cancel()
	}
}

// TestCancelWhilePreparing: nothing stays on the card, and there is no result.
func TestCancelWhilePreparing(t *testing.T) {
	for prepared := range 3 {
		base, variants := pair()
		m := &counting{Machine: Simulated(power.DefaultSim())}
		ctx, cancel := context.WithCancel(t.Context())
		if prepared == 0 {
			cancel()
		}
		o := Options{Progress: func(e Event) {
			if e.Stage == "prepare" && e.Done == int64(prepared) {
				cancel()
			}
		}}
		r, err := Compare(ctx, m, base, variants, o)
		if r != nil || !errors.Is(err, context.Canceled) || m.opened != prepared || m.closed != prepared {
			t.Errorf("after %d: result %v, error %v, %d of %d batches closed", prepared, r, err, m.closed, m.opened)
		}
		if now := simOf(m).Now(); now != 0 {
			t.Errorf("after %d: the card was used for %v", prepared, now)
		}
		cancel()
	}
}
