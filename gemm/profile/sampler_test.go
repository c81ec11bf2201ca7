package profile

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/gemm/profile/stitch"
)

// still returns a simulated card without noise.
func still() power.SimOptions {
	o := power.DefaultSim()
	o.PowerNoise, o.TimeNoise, o.DipRate, o.TickJitter, o.SlowSequences, o.FirstExecutions = 0, 0, 0, 0, 0, nil
	return o
}

// watched records an idle card for two seconds.
func watched(t *testing.T, card power.Card, clock power.Clock) *recording {
	t.Helper()
	r := newSampler(card, clock).record(1)
	if err := sample(context.Background(), clock, clock.Now()+2*time.Second, r); err != nil {
		t.Fatal(err)
	}
	r.ask(stitch.Buffer, r.fetch)
	return r
}

func number(r *recording, sensor string) (n int) {
	for _, a := range r.readings {
		if a.Sensor == sensor {
			n++
		}
	}
	return n
}

// TestStepsAreDated: a stretch of the counter begins where the previous one ended, and its power is the card's.
func TestStepsAreDated(t *testing.T) {
	sim := power.NewSim(still())
	r := watched(t, sim, sim)
	idle := 90 + 1.3*(28+90*0.05-55)
	var end Seconds
	for _, a := range r.readings {
		if a.Sensor != stitch.Counter {
			continue
		}
		if end > 0 && a.Since != end {
			t.Errorf("a stretch begins at %v, and the one before ended at %v", a.Since, end)
		}
		end = a.At
		if d := a.At - a.Since; (d-100*ms).Abs() > ms || math.Abs(a.Watts-idle) > 1 {
			t.Errorf("%.1f W over %v, planted %.1f W over 100ms", a.Watts, d, idle)
		}
	}
	if n := number(r, stitch.Counter); n < 18 || n > 20 || r.late > 0 {
		t.Errorf("%d stretches in two seconds, %d late", n, r.late)
	}
	if n := number(r, stitch.Buffer); n < 99 || n > 101 {
		t.Errorf("%d readings of the buffer in two seconds", n)
	}
}

// TestLateStepsArePassedOver: where queries stall, a stretch goes on to the next step that was seen
// in time, and its power is still right.
func TestLateStepsArePassedOver(t *testing.T) {
	o := still()
	o.StallEvery, o.Stall = 100, 20*time.Millisecond
	sim := power.NewSim(o)
	r := watched(t, sim, sim)
	idle, longer := 90+1.3*(28+90*0.05-55), 0
	for _, a := range r.readings {
		if a.Sensor != stitch.Counter {
			continue
		}
		if a.At-a.Since > 150*ms {
			longer++
		}
		if math.Abs(a.Watts-idle) > 2 { // a step dated 20 ms late would be 12 W off
			t.Errorf("%.1f W over %v, planted %.1f W", a.Watts, a.At-a.Since, idle)
		}
	}
	if r.late == 0 || longer == 0 {
		t.Errorf("%d late steps, %d longer stretches", r.late, longer)
	}
}

// mute is a card with silent or broken sensors.
type mute struct {
	power.Card
	silent, broken map[string]bool
}

var errBroken = errors.New("broken")

func (m mute) says(what string) error {
	switch {
	case m.silent[what]:
		return power.ErrAbsent
	case m.broken[what]:
		return errBroken
	}
	return nil
}

func (m mute) Energy() (uint64, error) {
	if err := m.says(stitch.Counter); err != nil {
		return 0, err
	}
	return m.Card.Energy()
}

func (m mute) Sample(s power.Sensor, scope power.Scope) (power.Sample, error) {
	if err := m.says([]string{stitch.Instant, stitch.Average}[s]); err != nil {
		return power.Sample{}, err
	}
	return m.Card.Sample(s, scope)
}

func (m mute) Samples(after time.Time) ([]power.Sample, error) {
	if err := m.says(stitch.Buffer); err != nil {
		return nil, err
	}
	return m.Card.Samples(after)
}

// TestSensorsThatDoNotAnswer: absent sensors are queried once, failing ones again and again.
func TestSensorsThatDoNotAnswer(t *testing.T) {
	sim := power.NewSim(still())
	r := watched(t, mute{sim, map[string]bool{stitch.Counter: true, stitch.Buffer: true}, map[string]bool{stitch.Instant: true}}, sim)
	if r.absent[stitch.Counter] == "" || r.absent[stitch.Buffer] == "" || r.absent[stitch.Instant] != "" || !errors.Is(r.failed[stitch.Instant], errBroken) {
		t.Errorf("absent %v, failed %v", r.absent, r.failed)
	}
	if number(r, stitch.Counter)+number(r, stitch.Buffer)+number(r, stitch.Instant) > 0 || number(r, stitch.Average) == 0 || len(r.states) == 0 {
		t.Errorf("%d readings, %d of them of the average; %d states", len(r.readings), number(r, stitch.Average), len(r.states))
	}
}

// repeating is a card whose buffer repeats every value, as with a slow sensor.
type repeating struct {
	power.Card
	times int
}

func (c repeating) Samples(after time.Time) (all []power.Sample, err error) {
	kept, err := c.Card.Samples(time.Unix(0, 0))
	for i, s := range kept {
		s.Watts = 100 + float64(i/c.times)
		if s.At.After(after) {
			all = append(all, s)
		}
	}
	return all, err
}

// TestRepeats: repeated values in the driver's buffer are no readings.
func TestRepeats(t *testing.T) {
	sim := power.NewSim(still())
	r := watched(t, repeating{sim, 5}, sim)
	if n := number(r, stitch.Buffer); n < 18 || n > 21 { // in two seconds of one every 20 ms
		t.Errorf("%d readings of the buffer, planted 20 and four repeats of each", n)
	}
}

// TestSampleEndsWithItsContext: sampling ends with its context.
func TestSampleEndsWithItsContext(t *testing.T) {
	sim := power.NewSim(still())
	ctx, cancel := context.WithCancel(context.Background())
	sim.At(300*time.Millisecond, cancel)
	r := newSampler(sim, sim).record(1)
	if err := sample(ctx, sim, time.Hour, r); !errors.Is(err, context.Canceled) || sim.Now() > 350*time.Millisecond {
		t.Errorf("%v at %v", err, sim.Now())
	}
}

// TestMomentOfAnotherClock: a stamp that cannot be the host's is ignored.
func TestMomentOfAnotherClock(t *testing.T) {
	sim := power.NewSim(still())
	r := newSampler(sim, sim).record(1)
	now := 10 * time.Second
	for at, want := range map[time.Duration]time.Duration{9900 * time.Millisecond: 9900 * time.Millisecond, 11 * time.Second: now, time.Second: now} {
		if got := r.moment(time.Unix(0, int64(at)), now); got != want {
			t.Errorf("%v is %v, want %v", at, got, want)
		}
	}
}
