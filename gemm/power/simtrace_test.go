package power

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/lowtoggle/lowtoggle/internal/goldenfile"
)

// TestSimTrace: with one seed the simulated card behaves as recorded. Tests, pages and recorded commands that name a seed rely on
// it. The trace has all that a card shows, while it idles, swings at its cap, pauses between bursts, heats up and shares the
// card.
func TestSimTrace(t *testing.T) {
	var b bytes.Buffer
	ctx := t.Context()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	value := func(v float64, err error) string {
		if err != nil {
			return "-"
		}
		return fmt.Sprintf("%.5g", v)
	}
	show := func(s *Sim, what string) {
		energy, err := s.Energy()
		check(err)
		reasons, err := s.Throttle()
		check(err)
		fmt.Fprintf(&b, "%9.4f s  %8.2f J  %7s %7s %7s W  %3s °C  %5s MHz  %s %s\n", s.Now().Seconds(), float64(energy)/1000, value(s.Power(Instant, GPU)),
			value(s.Power(Average, GPU)), value(s.Power(Average, Memory)), value(s.Temperature()), value(s.SMClock()), what, strings.Join(reasons.Names(), " "))
	}
	watch := func(s *Sim, what string, length, every time.Duration) {
		for end := s.Now() + length; s.Now() < end; {
			check(s.Sleep(ctx, every))
			show(s, what)
		}
	}
	run := func(s *Sim, l *SimLoad, n int, length, every time.Duration) {
		check(l.Start(n))
		watch(s, l.Name(), length, every)
		check(l.Wait(ctx))
		took, err := l.Elapsed()
		check(err)
		bursts, _ := l.Bursts()
		fmt.Fprintf(&b, "%s: %d executions in %.5f s; %d bursts, %.5f s, %.1f MHz\n", l.Name(), n, took.Seconds(), bursts.Count, bursts.Busy.Seconds(), bursts.Clock)
	}
	o := DefaultSim()
	o.Seed, o.StallEvery, o.Stall, o.DipRate, o.AmbientRise, o.Hot, o.Addresses = 11, 40, 7*time.Millisecond, 0.1, 0.2, 60, 0.01
	o.Other, o.OtherFrom = 30, 14*time.Second
	s := NewSim(o)
	s.At(100*time.Millisecond, func() { fmt.Fprintf(&b, "called at %.4f s\n", s.Now().Seconds()) })
	watch(s, "idle", 600*time.Millisecond, 130*time.Millisecond)
	capped := s.Load("capped", 860, 0.002)
	capped.Draw(860, 200)
	run(s, capped, 3000, 4*time.Second, 210*time.Millisecond)
	run(s, s.Load("below", 450, 0.0004), 4000, time.Second, 240*time.Millisecond)
	bursts := s.Load("bursts", 980, 0.0034)
	check(bursts.Pace(ctx, 10*time.Millisecond))
	run(s, bursts, 150, time.Second, 170*time.Millisecond)
	check(bursts.Pace(ctx, 4*time.Millisecond))
	run(s, bursts, 200, time.Second, 190*time.Millisecond)
	check(bursts.Rest(20))
	check(bursts.Wait(ctx))
	show(s, "rested")
	check(s.LockClock(1200))
	check(s.SetPowerLimit(400))
	watch(s, "locked", 100*time.Millisecond, 100*time.Millisecond)
	run(s, s.Load("locked", 700, 0.001), 1500, time.Second, 300*time.Millisecond)
	check(s.UnlockClock())
	run(s, s.Load("limited", 700, 0.001), 1500, 2*time.Second, 260*time.Millisecond)
	for range 2 {
		sequence := s.NewSequence([]SimKernel{{Watts: 500, Seconds: 0.0002}, {Watts: 300, Seconds: 0.003, Memory: 50}})
		check(sequence.Start([]SimSegment{{0, 40}, {1, 3}}))
		check(sequence.Wait(ctx))
		stamps, err := sequence.Stamps()
		check(err)
		for _, stamp := range stamps {
			fmt.Fprintf(&b, "segment %d, %d done at %.7f s\n", stamp.Segment, stamp.Done, stamp.At.Seconds())
		}
		clock, err := s.ReadClock()
		check(err)
		fmt.Fprintf(&b, "clock read from %.7f to %.7f s: %.7f s\n", clock.Before.Seconds(), clock.After.Seconds(), clock.Card.Seconds())
		check(s.Sleep(ctx, 2*time.Millisecond))
	}
	kept, err := s.Samples(simEpoch.Add(s.Now() - 300*time.Millisecond))
	check(err)
	for _, k := range kept {
		fmt.Fprintf(&b, "kept %.4f s %.4f W\n", s.Of(k.At).Seconds(), k.Watts)
	}
	watch(s, "idle", 15*time.Second-s.Now(), time.Second)
	goldenfile.Same(t, "testdata/simtrace.txt", b.Bytes())
}

// TestSwing: power control overshoots, swings with its period and calms down with its decay.
func TestSwing(t *testing.T) {
	o := DefaultSim()
	s := NewSim(o)
	s.now, s.swingFrom = 3*time.Second, 3*time.Second
	near(t, "at once", s.swing(), o.Overshoot, 1e-9)
	s.now += o.SwingPeriod / 2
	near(t, "after half a period", -s.swing(), o.Overshoot*0.6930, 1e-3) // exp(−0.55/1.5)
	s.now += o.SwingPeriod / 2
	near(t, "after a period", s.swing(), o.Overshoot*0.4803, 1e-3)
}

// TestBurstsOfAKernel: about a millisecond each, and at least one.
func TestBurstsOfAKernel(t *testing.T) {
	for seconds, want := range map[float64]int{1e-5: 1, 0.0009: 1, 0.0011: 1, 0.0034: 3} {
		if got := (SimKernel{Seconds: seconds}).bursts(); got != want {
			t.Errorf("%v s: %d bursts, want %d", seconds, got, want)
		}
	}
}

// TestAbandonIdle: a card without work does not begin to be idle once more.
func TestAbandonIdle(t *testing.T) {
	s := NewSim(quiet())
	s.advance(time.Second)
	if s.abandon(); s.busy != -simIdle {
		t.Errorf("last busy at %v", s.busy)
	}
	if err := s.Load("a", 500, 1).Start(5); err != nil {
		t.Fatal(err)
	}
	s.advance(2 * time.Second)
	if s.abandon(); s.busy != 2*time.Second || len(s.queue) != 0 {
		t.Errorf("last busy at %v", s.busy)
	}
}

// TestUnreadableState: settings that cannot be read are an error of every command that needs them.
func TestUnreadableState(t *testing.T) {
	o := quiet()
	o.State = t.TempDir() + "/state"
	s := NewSim(o)
	if err := s.SetPowerLimit(500); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(o.State, []byte("{"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := s.PowerLimit(); err == nil {
		t.Error("the limit is read")
	}
	if err := s.SetPowerLimit(600); err == nil {
		t.Error("a limit is set")
	}
	if _, err := OpenSim(o); err == nil {
		t.Error("the card is opened")
	}
}

// TestSmallCards: any limit, clock and tick above zero will do.
func TestSmallCards(t *testing.T) {
	o := quiet()
	o.Idle, o.Cap, o.MaxClock, o.Tick = 0.1, 0.5, 0.5, 1
	if _, err := OpenSim(o); err != nil {
		t.Error(err)
	}
}
