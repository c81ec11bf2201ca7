package stitch

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestPatternSearch: it finds a minimum, and ends where there is none and with its context.
func TestPatternSearch(t *testing.T) {
	right := func(x *float64, step float64) { *x += step }
	falls := func(x float64) float64 { return -x }
	if x, _ := patternSearch(context.Background(), 0, 0.5, falls, right); x < 100 {
		t.Errorf("it went to %v only", x)
	}
	ctx, end := context.WithCancel(context.Background())
	calls := 0
	patternSearch(ctx, 0, 0.5, func(x float64) float64 {
		if calls++; calls == 10 {
			end()
		}
		return -x
	}, right)
	if calls != 10 {
		t.Errorf("%d calls, the context ended with the tenth", calls)
	}
	if x, l := patternSearch(context.Background(), 3, 0.01, func(x float64) float64 { return (x - 0.25) * (x - 0.25) }, right); x != 0.25 || l != 0 {
		t.Errorf("the least is at %v, of %v, want 0.25", x, l)
	}
}

// TestWattScale: steps grow only for powers that no card draws.
func TestWattScale(t *testing.T) {
	for jump, want := range map[float64]float64{0: 1, -700: 1, 1000: 1, -5e5: 500} {
		if have := wattScale(jump); have != want {
			t.Errorf("%v W: %v, want %v", jump, have, want)
		}
	}
}

// TestReadingsEnds: it ends with its context, and also for impossible readings.
func TestReadingsEnds(t *testing.T) {
	c := ended{lag: 0.012, gain: 1, runs: 4}
	readings := c.readings()
	for i, r := range readings {
		if over := r.At.Seconds() - endedAfter; over > 0 && over < 0.1 {
			readings[i].Watts = 1e9
		}
	}
	if _, _, err := Readings(t.Context(), readings, c.options()); err != nil && !errors.Is(err, ErrTooFew) {
		t.Error(err)
	}
	ctx, end := context.WithCancel(t.Context())
	end()
	if _, _, err := Readings(ctx, readings, c.options()); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestRefineWindowEnds: the search ends when its context does.
func TestRefineWindowEnds(t *testing.T) {
	c := ended{box: 0.02, gain: 1, runs: 10}
	ctx, end := context.WithCancel(t.Context())
	s, err := newStitcher(ctx, c.readings(), c.options())
	if err != nil {
		t.Fatal(err)
	}
	const off = 5 * ms
	buffer := s.sensors[1]
	buffer.Delay = off
	solved, err := s.fit(ctx, s.sensors, initialSmoothness)
	if err != nil {
		t.Fatal(err)
	}
	end()
	if s.refineWindow(ctx, buffer, s.sensors, solved); buffer.Delay != off {
		t.Error("it went on when its context had ended")
	}
	if s.refineWindow(t.Context(), buffer, s.sensors, solved); buffer.Delay == off {
		t.Error("a delay that is none stays")
	}
}

// TestCount: it counts up to minReadings, and allocates nothing.
func TestCount(t *testing.T) {
	s := stitcher{cells: cells{step: 0.01, n: 10}}
	src := &sensor{Sensor: Sensor{Window: 10 * ms}}
	for n := range 2 * minReadings {
		if got := s.count(src); got != min(n, minReadings) {
			t.Errorf("%d of %d readings", got, n)
		}
		src.readings = append(src.readings, Reading{Sensor: Buffer, At: 50 * ms}, Reading{Sensor: Buffer, At: Seconds(time.Second)})
	}
	src.readings = make([]Reading, 1e6)
	if n := testing.AllocsPerRun(1, func() { s.count(src) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
