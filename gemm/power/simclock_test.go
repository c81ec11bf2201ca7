package power

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestSimClock: readings bound the card's clock, and time stamps are by that clock.
func TestSimClock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := quiet()
		o.ClockOffset = time.Duration(rapid.Int64Range(-1e13, 1e13).Draw(t, "offset"))
		o.ClockDrift = rapid.Float64Range(-100, 100).Draw(t, "drift")
		o.ClockDelay = time.Duration(rapid.Int64Range(0, 1e5).Draw(t, "delay"))
		o.ClockJitter = time.Duration(rapid.Int64Range(0, 1e5).Draw(t, "jitter"))
		s := NewSim(o)
		s.advance(time.Duration(rapid.Int64Range(0, 5e9).Draw(t, "at")))
		card := func(at time.Duration) time.Duration {
			return o.ClockOffset + at + time.Duration(float64(at)*o.ClockDrift*1e-6)
		}
		r, err := s.ReadClock()
		if err != nil {
			t.Fatal(err)
		}
		if low, high := card(r.Before+o.ClockDelay/2), card(r.After-o.ClockDelay/2); r.Card < low-2 || r.Card > high+2 || r.After != s.Now() {
			t.Fatalf("%+v: want %v to %v", r, low, high)
		}
		begin := s.Now()
		tr := s.NewSequence([]SimKernel{{Watts: 300, Seconds: 1e-3}})
		if err := tr.Start([]SimSegment{{0, 1}}); err != nil {
			t.Fatal(err)
		}
		if err := tr.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		list, err := tr.Stamps()
		if err != nil {
			t.Fatal(err)
		}
		for i, at := range []time.Duration{begin, s.Now()} {
			if off := list[i].At - card(at); off < -2 || off > 2 {
				t.Fatalf("stamp %d is %v off", i, off)
			}
		}
	})
}

// TestSimWallClock: wall-clock times convert back to the card's time.
func TestSimWallClock(t *testing.T) {
	s := NewSim(quiet())
	s.advance(1234567890)
	if got := s.Of(s.wall()); got != s.Now() {
		t.Errorf("%v, want %v", got, s.Now())
	}
}
