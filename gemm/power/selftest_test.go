package power

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSelfTestFindsTheSensors(t *testing.T) {
	for _, tick := range []time.Duration{50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond} {
		o := DefaultSim()
		o.Tick = tick
		s := NewSim(o)
		m, err := NewMeter(s, Options{Clock: s})
		if err != nil {
			t.Fatal(err)
		}
		got, err := m.SelfTest(t.Context(), s.Load("a", 500, 0.001))
		if err != nil {
			t.Fatal(err)
		}
		near(t, "tick", got.Tick, tick.Seconds(), 0.02)
		near(t, "idle", got.IdleWatts, 62, 0.05) // 90 W less the leakage that a cold die saves
		near(t, "load", got.LoadWatts, 475, 0.03)
		if got.TickJitter > 0.003 {
			t.Errorf("jitter %v s, planted 0.001", got.TickJitter)
		}
		near(t, "average window", got.Average.Window, 1, 0.15)
		near(t, "average rise", got.Average.Rise, 0.9, 0.15)
		near(t, "instant update", got.Instant.Update, 0.1, 0.05)
		if got.Instant.Rise > 0.25 || got.Instant.Window > got.Average.Window/2 {
			t.Errorf("the instant sensor %+v is as slow as the average %+v", got.Instant, got.Average)
		}
		if m.tick != seconds(got.Tick) {
			t.Error("the tick found is not used")
		}
	}
}

// still is a card whose counter does not move.
type still struct{ *Sim }

func (c still) Energy() (uint64, error) {
	c.Sim.query()
	return 12345, nil
}

// mute is a card with no sensor but the counter; silent has no counter either.
type mute struct{ *Sim }

func (mute) Power(Sensor, Scope) (float64, error) { return 0, ErrAbsent }
func (mute) Temperature() (float64, error)        { return 0, ErrAbsent }
func (mute) SMClock() (float64, error)            { return 0, ErrAbsent }
func (mute) Throttle() (Throttle, error)          { return 0, ErrAbsent }
func (mute) Processes() ([]Process, error)        { return nil, ErrAbsent }

type silent struct{ mute }

func (silent) Energy() (uint64, error) { return 0, ErrAbsent }

func TestNoCounter(t *testing.T) {
	s := NewSim(DefaultSim())
	for _, c := range []struct {
		card Card
		want error
		text string
	}{{still{s}, ErrCounterStill, "0 steps in"}, {silent{mute{s}}, ErrAbsent, "no energy counter"}} {
		m, err := NewMeter(c.card, Options{Clock: s})
		if err != nil {
			t.Fatal(err)
		}
		r, err := m.Compare(t.Context(), Loads{Baseline: s.Load("a", 500, 0.001), Null: s.Load("n", 500, 0.001)})
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) || r.Stopped != "failed" {
			t.Errorf("%T: %v", c.card, err)
		}
	}
}

// stops is a card whose counter stops after a while.
type stops struct {
	*Sim
	at time.Duration
}

func (c stops) Energy() (uint64, error) {
	e, err := c.Sim.Energy()
	if c.now > c.at {
		e = 1 << 40
	}
	return e, err
}

func TestCounterStops(t *testing.T) {
	s := NewSim(DefaultSim())
	m, err := NewMeter(stops{s, 30 * time.Second}, Options{Clock: s})
	if err != nil {
		t.Fatal(err)
	}
	r, err := m.Compare(t.Context(), Loads{Baseline: s.Load("a", 500, 0.001), Null: s.Load("n", 500, 0.001)})
	if !errors.Is(err, ErrCounterStill) || len(r.Blocks) == 0 {
		t.Errorf("%v, %d blocks", err, len(r.Blocks))
	}
}

func TestAbsentSensorsStayAbsent(t *testing.T) {
	s := NewSim(DefaultSim())
	m, err := NewMeter(mute{s}, Options{Clock: s, Time: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	r, err := m.Compare(t.Context(), Loads{Baseline: s.Load("a", 500, 0.001), Null: s.Load("n", 500, 0.001)})
	if err != nil {
		t.Fatal(err)
	}
	text := marshal(t, r)
	for _, name := range []string{"clock_mhz", "temperature_c", "capped", "throttle", "instant", "average", "memory_watts"} {
		if strings.Contains(text, `"`+name) {
			t.Errorf("%q is in the JSON of a card that does not know it", name)
		}
	}
}

func TestHostClock(t *testing.T) {
	c := HostClock()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	begin := c.Now()
	if err := c.Sleep(ctx, time.Hour); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("sleep: %v", err)
	}
	if c.Now() <= begin {
		t.Error("the clock stands still")
	}
}

// TestNoResponse: a sensor without changes at idle, with few during the step, or with the same power in both has no response.
func TestNoResponse(t *testing.T) {
	at := func(values ...float64) (list trace) {
		for i, v := range values {
			list = append(list, reading{time.Duration(i) * 100 * time.Millisecond, v})
		}
		return list
	}
	steps := at(100, 300, 500, 500, 500, 500)
	for name, r := range map[string]*Response{
		"none at idle": trace(nil).response(steps, 0),
		"few":          at(60).response(steps[:4], 0),
		"no step":      at(500).response(steps, 0),
	} {
		if r != nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if r := at(60).response(steps[:5], 0); r == nil || r.Update != 0.1 || r.Rise != 0.2 {
		t.Errorf("response %+v", r)
	}
}

// TestResponse: a sensor that follows a step of 100 W in ten steps of 10 ms is nine tenths there after 90 ms, and lags as a running mean
// of 110 ms does: the mean of the delays, 55 ms, twice.
func TestResponse(t *testing.T) {
	const begin = 40 * time.Millisecond
	idle := trace{{0, 100}}
	var step trace
	for i := 1; i <= 10; i++ {
		step = append(step, reading{begin + time.Duration(i)*10*time.Millisecond, 100 + 10*float64(i)})
	}
	for i := range 60 { // noise of the sensor's last digit
		step = append(step, reading{begin + time.Duration(11+i)*10*time.Millisecond, 200 - 1e-6*float64(i%2)})
	}
	r := idle.response(step, begin)
	near(t, "update", r.Update, 0.01, 1e-6)
	near(t, "rise", r.Rise, 0.09, 1e-6)
	near(t, "window", r.Window, 0.11, 1e-4)
	// The least step is a twentieth of the power after it.
	for low, want := range map[float64]bool{95: true, 95.5: false, 94: true} {
		tail := trace{{1, low}, {2, 100}, {3, 100}, {4, 100}, {5, 100}}
		if r := (trace{{0, low}}).response(tail, 0); (r != nil) != want {
			t.Errorf("a step from %v to 100 W: %+v", low, r)
		}
	}
}

// TestTrace: only changes are kept; slope and intervals are computed between changes.
func TestTrace(t *testing.T) {
	var l trace
	for i, v := range []float64{5, 5, 7, 7, 9, 13} {
		l.add(time.Duration(i)*time.Second, v, nil)
	}
	l.add(9*time.Second, 99, ErrAbsent)
	if want := (trace{{0, 5}, {2 * time.Second, 7}, {4 * time.Second, 9}, {5 * time.Second, 13}}); !slices.Equal(l, want) {
		t.Errorf("%v, want %v", l, want)
	}
	if got := l.intervals(); !slices.Equal(got, []float64{2, 2, 1}) {
		t.Errorf("intervals %v", got)
	}
	if got := l.slope(); got != 8.0/5 {
		t.Errorf("slope %v", got)
	}
}
