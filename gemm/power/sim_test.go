package power

import (
	"context"
	"math"
	"os"
	"strings"
	"testing"
	"time"
)

// quiet returns a card without noise, drift and dips.
func quiet() SimOptions {
	o := DefaultSim()
	o.PowerNoise, o.TimeNoise, o.TickJitter, o.DipRate = 0, 0, 0, 0
	o.Leakage, o.Overshoot = 0, 0
	return o
}

func near(t *testing.T, what string, got, want, share float64) {
	t.Helper()
	if math.Abs(got-want) > share*math.Abs(want) {
		t.Errorf("%s: %v, want %v within %v %%", what, got, want, 100*share)
	}
}

func TestSimEnergyIsPowerTimesTime(t *testing.T) {
	s := NewSim(quiet())
	load := s.Load("a", 500, 0.002)
	begin, joule := s.now, s.joule
	if err := load.Start(1000); err != nil {
		t.Fatal(err)
	}
	if err := load.Wait(context.Background()); err != nil {
		t.Fatal(err)
	}
	near(t, "seconds", (s.now - begin).Seconds(), 2, 1e-6)
	elapsed, err := load.Elapsed()
	if err != nil {
		t.Fatal(err)
	}
	near(t, "elapsed", elapsed.Seconds(), 2, 1e-6)
	// The rise costs its time constant of the difference.
	near(t, "joules", s.joule-joule, 500*2-(500-90)*0.010, 1e-6)
}

func TestSimCounterSteps(t *testing.T) {
	s := NewSim(quiet())
	last, _ := s.Energy()
	var steps []time.Duration
	for s.now < 2*time.Second {
		if e, _ := s.Energy(); e != last {
			last = e
			steps = append(steps, s.now)
		}
	}
	if len(steps) < 19 || len(steps) > 20 {
		t.Fatalf("%d steps in 2 s, want one every 100 ms", len(steps))
	}
	for i := 1; i < len(steps); i++ {
		near(t, "tick", (steps[i] - steps[i-1]).Seconds(), 0.1, 0.002)
	}
}

func TestSimSensorsLagBehind(t *testing.T) {
	s := NewSim(quiet())
	ctx := context.Background()
	if err := s.Sleep(ctx, 2*time.Second); err != nil {
		t.Fatal(err)
	}
	load := s.Load("a", 590, 0.001)
	if err := load.Start(10000); err != nil {
		t.Fatal(err)
	}
	if err := s.Sleep(ctx, 500*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	instant, _ := s.Power(Instant, GPU)
	average, _ := s.Power(Average, GPU)
	near(t, "instant after 0.5 s", instant, 590, 0.001)
	near(t, "average after 0.5 s", average, 340, 0.05) // half of the way
	if _, err := s.Power(Average, Module); err != ErrAbsent {
		t.Errorf("module power: %v, want ErrAbsent", err)
	}
}

func TestSimClockCurve(t *testing.T) {
	o := quiet()
	s := NewSim(o)
	load := s.Load("hungry", 1000, 0.001)
	if err := load.Start(1000); err != nil {
		t.Fatal(err)
	}
	share := math.Pow((o.Cap-o.Idle)/(1000-o.Idle), 1/o.ClockExponent)
	clock, _ := s.SMClock()
	near(t, "clock", clock, share*o.MaxClock, 0.001)
	if reasons, _ := s.Throttle(); reasons != SoftwarePowerCap {
		t.Errorf("throttle %v, want the power cap", reasons.Names())
	}
	if err := load.Wait(context.Background()); err != nil {
		t.Fatal(err)
	}
	elapsed, _ := load.Elapsed()
	near(t, "seconds", elapsed.Seconds(), 1/share, 0.001)
	near(t, "watts", s.power, o.Cap, 0.001)
}

// TestSimMemory: the memory's average power is its load's power plus its idle power.
func TestSimMemory(t *testing.T) {
	s := NewSim(quiet())
	s.advance(time.Second)
	load := s.Load("copy", 350, 0.001)
	load.Draw(350, 52)
	for _, want := range []float64{38, 64, 90} { // idle, half a second of load, a second
		if w, err := s.Power(Average, Memory); math.Abs(w-want) > 2 || err != nil {
			t.Errorf("%v W at %v, %v, want %v", w, s.now, err, want)
		}
		if s.now < 1100*time.Millisecond {
			if err := load.Start(10000); err != nil {
				t.Fatal(err)
			}
		}
		s.advance(s.now + 500*time.Millisecond)
	}
	if _, err := s.Power(Instant, Memory); err != ErrAbsent {
		t.Errorf("instant: %v, want ErrAbsent", err)
	}
	if err := s.LockClock(1000); err != nil {
		t.Fatal(err)
	}
	s.advance(s.now + 1200*time.Millisecond)
	if w, err := s.Power(Average, Memory); w != 38+26 || err != nil {
		t.Errorf("%v W at half the clock, %v", w, err)
	}
}

// TestSimOther: the other process is there before anything runs.
func TestSimOther(t *testing.T) {
	o := quiet()
	o.Other = 50
	all, err := NewSim(o).Processes()
	if rest := Others(all, os.Getpid()); len(rest) != 1 || rest[0].PID != simOther || err != nil {
		t.Errorf("%v, %v", rest, err)
	}
}

// TestSimNeedsACard: options that describe no card are an error, because its time would not pass.
func TestSimNeedsACard(t *testing.T) {
	for name, change := range map[string]func(*SimOptions){
		"zero": func(o *SimOptions) { *o = SimOptions{} }, "tick": func(o *SimOptions) { o.Tick = 0 },
		"limit": func(o *SimOptions) { o.Cap = 0 }, "clock": func(o *SimOptions) { o.MaxClock = 0 },
	} {
		o := DefaultSim()
		change(&o)
		if s, err := OpenSim(o); s != nil || err == nil || !strings.Contains(err.Error(), "start from DefaultSim") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
