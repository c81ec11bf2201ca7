package power

import (
	"errors"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestSimSamples: every reading is the mean of the window before it, and BufferSize readings are kept.
func TestSimSamples(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := quiet()
		o.Query = 0
		o.BufferSize = rapid.IntRange(1, 20).Draw(t, "size")
		o.BufferEvery = time.Duration(rapid.IntRange(5, 60).Draw(t, "every")) * time.Millisecond
		o.BufferWindow = time.Duration(rapid.IntRange(1, 150).Draw(t, "window")) * time.Millisecond
		s := NewSim(o)
		idle := s.power
		from := time.Duration(rapid.IntRange(0, 300).Draw(t, "load at")) * time.Millisecond
		s.advance(from)
		if err := s.Load("a", 500, 1e-3).Start(1000); err != nil {
			t.Fatal(err)
		}
		end := time.Duration(rapid.IntRange(0, 400).Draw(t, "for")) * time.Millisecond
		s.advance(from + end)
		all, err := s.Samples(time.Time{})
		if want := min(o.BufferSize, int(s.now/o.BufferEvery)); err != nil || len(all) != want {
			t.Fatalf("%d samples at %v, want %d, %v", len(all), s.now, want, err)
		}
		joule := func(at time.Duration) float64 { // idle, then an exponential rise
			if at <= from {
				return idle * at.Seconds()
			}
			dt, rise := (at - from).Seconds(), o.Rise.Seconds()
			return idle*from.Seconds() + 500*dt - (500-idle)*rise*(1-math.Exp(-dt/rise))
		}
		for i, sample := range all {
			at := s.Of(sample.At)
			if at != (s.now/o.BufferEvery-time.Duration(len(all)-1-i))*o.BufferEvery {
				t.Fatalf("sample %d of %d at %v", i, len(all), at)
			}
			want := (joule(at) - joule(at-o.BufferWindow)) / o.BufferWindow.Seconds()
			if d := sample.Watts - want; d < -0.01 || d > 0.01 {
				t.Fatalf("%v W at %v, want %v", sample.Watts, at, want)
			}
		}
		if len(all) > 0 {
			last := all[len(all)-1]
			if rest, _ := s.Samples(last.At.Add(-1)); len(rest) != 1 || rest[0] != last {
				t.Fatalf("after the last but one: %v", rest)
			}
			if rest, err := s.Samples(last.At); len(rest) != 0 || err != nil {
				t.Fatalf("after the last: %v, %v", rest, err)
			}
		}
	})
}

func TestSimWithoutBuffer(t *testing.T) {
	o := quiet()
	o.BufferSize = 0
	s := NewSim(o)
	s.advance(time.Second)
	if _, err := s.Samples(time.Time{}); !errors.Is(err, ErrAbsent) {
		t.Error(err)
	}
}

// TestSimSampleTimes: the instant reading's time is the time of its last change.
func TestSimSampleTimes(t *testing.T) {
	s := NewSim(DefaultSim())
	if err := s.Load("a", 500, 1e-3).Start(2000); err != nil {
		t.Fatal(err)
	}
	for _, sensor := range []Sensor{Instant, Average} {
		last, err := s.Sample(sensor, GPU)
		changes := 0
		for before := s.now; err == nil && changes < 10; before = s.now {
			var now Sample
			now, err = s.Sample(sensor, GPU)
			if now.Watts != last.Watts {
				changes++
				if at := s.Of(now.At); at <= before-s.opt.Query || at > s.now {
					t.Errorf("sensor %d changed between %v and %v, and says %v", sensor, before, s.now, at)
				}
			} else if now.At != last.At && sensor == Instant {
				t.Errorf("sensor %d: %v and %v have one value", sensor, now.At, last.At)
			}
			last = now
		}
		if err != nil {
			t.Fatal(err)
		}
		if w, err := s.Power(sensor, GPU); w != last.Watts || err != nil {
			t.Errorf("sensor %d: power %v, sample %v, %v", sensor, w, last.Watts, err)
		}
	}
}
