package profile

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// watcher asks a card's sensors. What it learns about them holds for all runs.
type watcher struct {
	card  power.Card
	clock power.Clock
	// gap is the shortest between two readings of the energy counter.
	gap     time.Duration
	fetched time.Time // the latest reading of the driver's buffer that we have
	kept    float64   // its watts
	absent  map[string]bool
	failed  map[string]error // the first error of each that is there
}

func newWatcher(card power.Card, clock power.Clock) *watcher {
	return &watcher{card: card, clock: clock, fetched: time.Unix(0, 0), absent: map[string]bool{}, failed: map[string]error{}}
}

// recording is what the sensors say during one run, by the host's clock.
type recording struct {
	*watcher
	run      int
	begun    time.Duration
	readings []Reading
	states   []state
	late     int // readings that were seen too late to know when they changed, and left out

	energy  uint64        // of the counter, at the last step that was seen in time
	step    time.Duration // that step's moment; 0: none yet
	counter struct {
		known bool
		value uint64
		asked time.Duration
		gap   time.Duration
	}
	shown  map[string]shown
	probes []probe
}

// shown is what a power sensor said last.
type shown struct {
	watts float64
	asked time.Duration
}

// state of the card at a moment, but for its power. What is nil was not asked for then.
type state struct {
	at                 time.Duration
	clock, temperature *float64
	throttle           *power.Throttle
}

// probe is something that is asked for now and then.
type probe struct {
	name  string
	every time.Duration
	ask   func() error
	next  time.Duration
}

const (
	// pause between two rounds of questions.
	pause = 500 * time.Microsecond
	// late is how long after the question before a sensor's change is no longer dated.
	late = 10 * time.Millisecond
	// stateEvery is how often a run asks for the state of the card.
	stateEvery = 50 * time.Millisecond
)

// record begins a recording. The energy counter is asked in every round, and one other sensor at most:
// the step of the counter is dated by how close its readings are.
func (w *watcher) record(run int) *recording {
	r := &recording{watcher: w, run: run, begun: w.clock.Now(), shown: map[string]shown{}}
	// A recording begins as long before the work in every run: what is asked seldom must not be asked at
	// the same moments of all. Multiples of the golden ratio leave no part of the interval out.
	_, part := math.Modf(float64(run) * math.Phi)
	first := r.begun + time.Duration(part*float64(stateEvery))
	r.probes = []probe{
		{name: Instant, every: 2 * time.Millisecond, ask: func() error { return r.power(Instant, power.Instant) }},
		{name: Average, every: late / 2, ask: func() error { return r.power(Average, power.Average) }},
		{name: "clock", every: stateEvery, next: first, ask: func() error {
			v, err := r.card.SMClock()
			return r.state(state{clock: &v}, err)
		}},
		{name: "throttle reasons", every: stateEvery, next: first, ask: func() error {
			v, err := r.card.Throttle()
			return r.state(state{throttle: &v}, err)
		}},
		{name: "temperature", every: 4 * stateEvery, next: first, ask: func() error {
			v, err := r.card.Temperature()
			return r.state(state{temperature: &v}, err)
		}},
		// The buffer holds some 2.4 s on an H200.
		{name: Buffer, every: 2 * time.Second, ask: r.fetch, next: r.begun + 2*time.Second},
	}
	return r
}

// watch asks the sensors until the moment given.
func (r *recording) watch(ctx context.Context, until time.Duration) error {
	for {
		now := r.clock.Now()
		if now >= until {
			return ctx.Err()
		}
		r.answer(Counter, r.count)
		if p := r.due(now); p != nil {
			r.answer(p.name, p.ask)
			p.next = now + p.every
		}
		if err := r.clock.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// due is the probe that has waited longest for its turn; nil where it is no one's.
func (r *recording) due(now time.Duration) *probe {
	var first *probe
	for i := range r.probes {
		p := &r.probes[i]
		if !r.absent[p.name] && p.next <= now && (first == nil || p.next < first.next) {
			first = p
		}
	}
	return first
}

// answer asks a sensor, unless it is known not to be there. One that fails is asked again.
func (r *recording) answer(name string, ask func() error) {
	if r.absent[name] {
		return
	}
	switch err := ask(); {
	case errors.Is(err, power.ErrAbsent):
		r.absent[name] = true
	case err != nil && r.failed[name] == nil:
		r.failed[name] = err
	}
}

// count looks whether the energy counter made a step. The step lies between the two latest readings;
// one that was seen late because a question stalled is passed over, and the stretch goes on to the
// next.
func (r *recording) count() error {
	e, err := r.card.Energy()
	if err != nil {
		return err
	}
	c, now := &r.counter, r.clock.Now()
	gap := now - c.asked
	if c.known {
		if r.gap == 0 || gap < r.gap {
			r.gap = gap
		}
		switch {
		case e == c.value:
		case max(gap, c.gap) > 3*r.gap+time.Millisecond || e < c.value:
			r.late++
		default:
			at := now - gap/2
			if r.step > 0 && e > r.energy {
				watts := float64(e-r.energy) / 1000 / (at - r.step).Seconds()
				r.add(Reading{Sensor: Counter, At: at, Since: r.step, Watts: watts})
			}
			r.energy, r.step = e, at
		}
	}
	c.known, c.value, c.asked, c.gap = true, e, now, gap
	return nil
}

// power looks whether a power sensor's reading changed. The first one has stood for an unknown time.
func (r *recording) power(name string, which power.Sensor) error {
	s, err := r.card.Sample(which, power.GPU)
	if err != nil {
		return err
	}
	now := r.clock.Now()
	before, known := r.shown[name]
	r.shown[name] = shown{s.Watts, now}
	if !known || s.Watts == before.watts {
		return nil
	}
	if now-before.asked > late {
		r.late++
		return nil
	}
	r.add(Reading{Sensor: name, At: r.moment(s.At, now), Watts: s.Watts})
	return nil
}

// moment of a reading by the machine's clock. A stamp that cannot be this host's says nothing.
func (r *recording) moment(at time.Time, now time.Duration) time.Duration {
	if t := r.clock.Of(at); t > now-time.Second && t < now+late {
		return min(t, now)
	}
	return now
}

// fetch takes what the driver kept since the last time. A sensor may be slower than the buffer, which then
// repeats what it said: a value that stands is no new reading.
func (r *recording) fetch() error {
	kept, err := r.card.Samples(r.fetched)
	if err != nil {
		return err
	}
	for _, s := range kept {
		if !s.At.After(r.fetched) {
			continue
		}
		r.fetched = s.At
		repeated := s.Watts == r.kept
		r.kept = s.Watts
		if at := r.clock.Of(s.At); at >= r.begun && !repeated {
			r.add(Reading{Sensor: Buffer, At: at, Watts: s.Watts})
		}
	}
	return nil
}

func (r *recording) state(s state, err error) error {
	if err == nil {
		s.at = r.clock.Now()
		r.states = append(r.states, s)
	}
	return err
}

func (r *recording) add(reading Reading) {
	reading.Run = r.run
	r.readings = append(r.readings, reading)
}
