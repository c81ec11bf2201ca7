package power

import (
	"context"
	"errors"
	"testing"
	"time"
)

var errBroken = errors.New("broken")

// breaks counts down the calls that succeed before the failure. Later calls fail too, unless once is set.
type breaks struct {
	left int
	once bool
}

func (b *breaks) next() error {
	if b.left--; b.left == -1 || b.left < 0 && !b.once {
		return errBroken
	}
	return nil
}

// brokenLoad is a load that fails from some call on.
type brokenLoad struct {
	*SimLoad
	calls *breaks
}

func (l brokenLoad) Start(n int) error { return errors.Join(l.calls.next(), l.SimLoad.Start(n)) }
func (l brokenLoad) Rest(n int) error  { return errors.Join(l.calls.next(), l.SimLoad.Rest(n)) }
func (l brokenLoad) Wait(ctx context.Context) error {
	return errors.Join(l.SimLoad.Wait(ctx), l.calls.next())
}
func (l brokenLoad) Pace(ctx context.Context, every time.Duration) error {
	return errors.Join(l.calls.next(), l.SimLoad.Pace(ctx, every))
}
func (l brokenLoad) Bursts() (Bursts, error) {
	b, err := l.SimLoad.Bursts()
	return b, errors.Join(l.calls.next(), err)
}

// brokenCard is a card whose energy counter fails from some query on.
type brokenCard struct {
	*Sim
	calls *breaks
}

func (c brokenCard) Energy() (uint64, error) {
	e, err := c.Sim.Energy()
	return e, errors.Join(c.calls.next(), err)
}

// TestEveryFailureIsTold: if any call of a load or of the energy counter fails, the comparison ends with its error, and the
// result is invalid or marked as failed.
func TestEveryFailureIsTold(t *testing.T) {
	once := false
	compare := func(duty float64, load, counter int) (*Result, error) {
		o := quiet()
		o.Seed = 1
		s := NewSim(o)
		loads, queries := &breaks{load, once}, &breaks{counter, once}
		m, err := NewMeter(brokenCard{s, queries}, Options{Clock: s, Duty: duty, Time: 6 * time.Second, Settle: 20 * time.Millisecond, CapSettle: 20 * time.Millisecond, Window: 500 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		return m.Compare(t.Context(), Loads{Baseline: brokenLoad{s.Load("a", 500, 0.002), loads}, Null: brokenLoad{s.Load("n", 500, 0.002), loads}})
	}
	const never = 1 << 40
	for _, duty := range []float64{0, 0.5} {
		told := func(what string, n int, r *Result, err error) bool {
			if err == nil {
				return false
			}
			if !errors.Is(err, errBroken) || r.Stopped != StoppedFailed {
				t.Errorf("duty %v, %s %d fails: %v, stopped %q", duty, what, n, err, r.Stopped)
			}
			return true
		}
		n := 0
		for r, err := compare(duty, n, never); told("load call", n, r, err); r, err = compare(duty, n, never) {
			n += 1 + n/12
		}
		if n < 40 {
			t.Errorf("duty %v: the failure of load call %d is not told", duty, n)
		}
		n = 0
		for r, err := compare(duty, never, n); told("query", n, r, err); r, err = compare(duty, never, n) {
			n += 1 + n/2
		}
		if n < 1000 {
			t.Errorf("duty %v: the failure of query %d is not told", duty, n)
		}
	}
	once = true // a call that fails alone must not be covered by later ones
	for n := range 60 {
		if _, err := compare(0.5, n, never); !errors.Is(err, errBroken) {
			t.Errorf("load call %d alone fails: %v", n, err)
		}
	}
	s := NewSim(quiet())
	for _, n := range []int{0, 1, 5, 300} {
		card := brokenCard{s, &breaks{left: n}}
		if _, err := Watch(t.Context(), card, s, nil, func(begin, now time.Duration) bool { return false }); !errors.Is(err, errBroken) {
			t.Errorf("query %d of a watch fails: %v", n, err)
		}
		m, err := NewMeter(s, Options{Clock: s})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Steady(t.Context(), brokenLoad{s.Load("a", 500, 0.002), &breaks{left: n / 10}}); !errors.Is(err, errBroken) {
			t.Errorf("call %d of a warm-up fails: %v", n/10, err)
		}
	}
}

// countedPace counts how often a load was paced.
type countedPace struct {
	*SimLoad
	times *int
}

func (l countedPace) Pace(ctx context.Context, every time.Duration) error {
	*l.times++
	return l.SimLoad.Pace(ctx, every)
}

// TestPaceIsFoundSoon: the time of a burst that depends on no clock is known after two tries.
func TestPaceIsFoundSoon(t *testing.T) {
	s := NewSim(quiet())
	m, err := NewMeter(s, Options{Clock: s})
	if err != nil {
		t.Fatal(err)
	}
	times := 0
	p := Pacing{Duty: 0.25}
	if err := m.findPace(t.Context(), countedPace{s.Load("a", 400, 0.004), &times}, &p); err != nil || times > 2 {
		t.Errorf("%d tries, %v", times, err)
	}
	near(t, "time of an execution and its gaps", p.every.Seconds(), 0.016, 0.02)
}

// TestLeastBlocks: a comparison that is precise at once ends with the least number of passes, two in each block.
func TestLeastBlocks(t *testing.T) {
	if r := compare(t, quiet(), Options{}, 500, 480); len(r.Blocks) != enoughPasses/2 || r.Stopped != StoppedPrecision {
		t.Errorf("%d blocks, stopped %q", len(r.Blocks), r.Stopped)
	}
}

// TestPreciseInFewBlocks: a comparison whose time is over before the least number of passes has reached its precision if
// every interval is narrow enough.
func TestPreciseInFewBlocks(t *testing.T) {
	for precision, want := range map[float64]string{0.2: StoppedPrecision, 1e-9: StoppedTime} {
		r := compare(t, DefaultSim(), Options{Precision: precision, Time: 13 * time.Second}, 500, 480)
		if len(r.Blocks) >= enoughPasses/2 || r.Stopped != want {
			t.Errorf("precision %g: %d blocks, stopped %q, want fewer than %d and %q", precision, len(r.Blocks), r.Stopped, enoughPasses/2, want)
		}
	}
}

// TestRepeatedCounter: while the fault lasts, every other reading repeats the previous update.
func TestRepeatedCounter(t *testing.T) {
	o := quiet()
	o.Faults = []SimFault{{Kind: FaultCounterRepeats}}
	s := NewSim(o)
	s.advance(time.Second)
	for range 3 {
		for _, want := range []uint64{s.counter, s.faults.stale} {
			if e, err := s.Energy(); e != want || err != nil {
				t.Errorf("%d, %v, want %d", e, err, want)
			}
		}
	}
	if s.counter == s.faults.stale {
		t.Error("the counter stood still: this test tests nothing")
	}
}
