package power

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestWatch: mean power between two steps of the counter, in the host's time.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		card, clock := NewLiveSim(quiet()), HostClock()
		for _, watts := range []float64{300, 500, 0} {
			card.Draw(watts)
			time.Sleep(time.Second) // of the bubble
			steps, from := 0, clock.Now()
			s, err := Watch(t.Context(), card, clock, func(now time.Duration) bool { return now-from >= 500*time.Millisecond }, func(begin, now time.Duration) bool {
				steps++
				return now-begin >= 2*time.Second
			})
			if err != nil {
				t.Fatal(err)
			}
			want := max(watts, quiet().Idle)
			near(t, "power", s.Watts, want, 0.002)
			near(t, "instant power", *s.InstantWatts, want, 0.002)
			if s.Length < 1.99 || s.Length > 2.11 || s.Begin < from.Seconds()+0.5 || s.Begin > from.Seconds()+0.61 || steps < 20 || steps > 22 {
				t.Errorf("%v W: from %v, %v s, %d steps", watts, s.Begin, s.Length, steps)
			}
			if idle := len(s.Throttle) > 0; idle != (watts == 0) {
				t.Errorf("%v W: %v", watts, s.Throttle)
			}
		}
	})
}

// TestWatchEnds: Watch ends with its context, and if the counter does not move.
func TestWatchEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		never := func(begin, now time.Duration) bool { return false }
		clock := HostClock()
		if _, err := Watch(ctx, NewLiveSim(quiet()), clock, nil, never); !errors.Is(err, context.DeadlineExceeded) || clock.Now() > 5*time.Second {
			t.Errorf("%v after %v", err, clock.Now())
		}
		o := quiet()
		o.Tick = time.Hour
		if _, err := Watch(t.Context(), NewLiveSim(o), clock, nil, never); !errors.Is(err, ErrCounterStill) {
			t.Error(err)
		}
	})
}

// TestLiveSimTimes: samples carry the host's time.
func TestLiveSimTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		card := NewLiveSim(quiet())
		card.Draw(400)
		time.Sleep(time.Second)
		now := time.Now()
		s, err := card.Sample(Instant, GPU)
		if age := now.Sub(s.At); err != nil || age < 0 || age > 100*time.Millisecond || math.Abs(s.Watts-400) > 1 {
			t.Errorf("%v, %v old: %v", s, age, err)
		}
		list, err := card.Samples(now.Add(-200 * time.Millisecond))
		if err != nil || len(list) < 9 || len(list) > 11 || now.Sub(list[0].At) > 200*time.Millisecond {
			t.Errorf("%v: %v", list, err)
		}
	})
}

// slowClock counts from 0; the sleeps that begin at late times take 40 ms longer.
type slowClock struct {
	Clock
	now  time.Duration
	late []time.Duration
}

func (c *slowClock) Now() time.Duration { return c.now }

func (c *slowClock) Sleep(_ context.Context, d time.Duration) error {
	if slices.Contains(c.late, c.now) {
		d += 40 * time.Millisecond
	}
	c.now += d
	return nil
}

// stepping is a card whose counter steps every 100 ms of a clock.
type stepping struct {
	Card
	clock Clock
}

func (s stepping) Energy() (uint64, error) {
	return uint64(s.clock.Now() / (100 * time.Millisecond)), nil
}

// TestLateStepIsSkipped: a step that falls into a slow reading has an unknown time, so the next step is taken. How slow is known from the
// quickest reading, whatever the first one took.
func TestLateStepIsSkipped(t *testing.T) {
	for _, c := range []struct {
		late []time.Duration // in ms
		want time.Duration
	}{{[]time.Duration{20}, 100}, {[]time.Duration{80}, 200}, {[]time.Duration{0, 80}, 200}} {
		clock := &slowClock{}
		for _, at := range c.late {
			clock.late = append(clock.late, at*time.Millisecond)
		}
		w := watcher{card: stepping{clock: clock}, clock: clock}
		e, at, err := w.step(t.Context())
		if want := c.want * time.Millisecond; err != nil || at != want || e != uint64(want/(100*time.Millisecond)) {
			t.Errorf("late at %v: step %d at %v (%v), want one at %v", c.late, e, at, err, want)
		}
	}
}

// TestSpanOfNoEnergy: a counter that shows as much at the end as at the begin is no measurement, and one that shows more gives power.
func TestSpanOfNoEnergy(t *testing.T) {
	w := watcher{card: NewSim(quiet())}
	for _, end := range []uint64{4000, 3999} {
		if _, err := w.span(4000, end, 0, time.Second); err == nil {
			t.Errorf("from 4000 to %d mJ: no error", end)
		}
	}
	s, err := w.span(4000, 5000, time.Second, 3*time.Second)
	if err != nil || s.Begin != 1 || s.Length != 2 || s.Joules != 1 || s.Watts != 0.5 {
		t.Errorf("%+v, %v", s, err)
	}
}
