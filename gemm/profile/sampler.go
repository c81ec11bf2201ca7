package profile

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/gemm/profile/stitch"
)

// sampler reads a card's sensors. It keeps what it has learned about the sensors across all runs.
type sampler struct {
	card  power.Card
	clock power.Clock
	// gap is the shortest time between two readings of the energy counter.
	gap     time.Duration
	fetched time.Time         // when the driver's buffer was last read
	kept    float64           // the buffer's latest reading, in watts
	absent  map[string]string // sensors that are not read, with the reason
	failed  map[string]error  // the first error of each sensor that is present
	still   time.Duration     // how long the energy counter has been read without a step
}

func newSampler(card power.Card, clock power.Clock) *sampler {
	return &sampler{card: card, clock: clock, fetched: time.Unix(0, 0), absent: map[string]string{}, failed: map[string]error{}}
}

// recording holds the sensors' readings during one run, with times in the host's clock.
type recording struct {
	*sampler
	run      int
	begun    time.Duration
	readings []stitch.Reading
	states   []state
	late     int   // number of readings left out because they were seen too late to have a time
	wrong    error // a reading that makes the run invalid; nil: none

	energy  uint64        // energy counter at the latest step that was seen in time, in mJ
	step    time.Duration // moment of that step; 0: none yet
	counter struct {
		known bool
		value uint64
		asked time.Duration
		gap   time.Duration
	}
	shown  map[string]shown
	probes []probe
}

// shown is the latest reading of a power sensor.
type shown struct {
	watts float64
	asked time.Duration
}

// state is the card's state at a moment, without its power. A nil field was not read.
type state struct {
	at                 time.Duration
	clock, temperature *float64
	throttle           *power.Throttle
}

// probe is a periodic query.
type probe struct {
	name  string
	every time.Duration
	query func() error
	next  time.Duration
}

const (
	// pause is the time between two rounds of queries.
	pause = 500 * time.Microsecond
	// late is the longest time between two readings of a sensor for which a change between them still has a usable
	// time.
	late = 10 * time.Millisecond
	// patience is how long the energy counter may stay constant, over all recordings together: ten times its usual
	// step.
	patience = time.Second
	// stateEvery is the period of queries for clock, temperature and throttle reasons.
	stateEvery = 50 * time.Millisecond
)

// record begins a recording. Every round of queries reads the energy counter and at most one other sensor. Frequent
// readings of the counter give its steps precise times.
func (s *sampler) record(run int) *recording {
	r := &recording{sampler: s, run: run, begun: s.clock.Now(), shown: map[string]shown{}}
	// All recordings start equally long before the work, so the phases of rare queries are shifted from run to run.
	// Multiples of the golden ratio cover the whole period evenly.
	_, part := math.Modf(float64(run) * math.Phi)
	first := r.begun + time.Duration(part*float64(stateEvery))
	r.probes = []probe{
		{name: stitch.Instant, every: 2 * time.Millisecond, query: func() error { return r.power(stitch.Instant, power.Instant) }},
		{name: stitch.Average, every: late / 2, query: func() error { return r.power(stitch.Average, power.Average) }},
		{name: "clock", every: stateEvery, next: first, query: func() error {
			v, err := r.card.SMClock()
			if err == nil && !power.ClockRange(r.card.Info()).Holds(v) {
				err = fmt.Errorf("implausible clock: %.4g MHz", v)
			}
			return r.state(state{clock: &v}, err)
		}},
		{name: "throttle reasons", every: stateEvery, next: first, query: func() error {
			v, err := r.card.Throttle()
			if err == nil && v.Heat() {
				r.spoil("the card reduced its clock because of its temperature: let the card cool, or check its airflow")
			}
			return r.state(state{throttle: &v}, err)
		}},
		{name: "temperature", every: 4 * stateEvery, next: first, query: func() error {
			v, err := r.card.Temperature()
			if err == nil && !power.TemperatureRange.Holds(v) {
				err = fmt.Errorf("implausible temperature: %.4g °C", v)
			}
			return r.state(state{temperature: &v}, err)
		}},
		// The buffer was observed to hold 2.4 s of readings. It is read more often than that, so that no reading is
		// lost.
		{name: stitch.Buffer, every: 2 * time.Second, query: r.fetch, next: r.begun + 2*time.Second},
	}
	return r
}

// sample queries all recordings' sensors in turn until the given moment of their clock.
func sample(ctx context.Context, clock power.Clock, until time.Duration, all ...*recording) error {
	for {
		now := clock.Now()
		if now >= until {
			return ctx.Err()
		}
		for i, r := range all {
			if i > 0 {
				now = clock.Now()
			}
			r.ask(stitch.Counter, r.count)
			if p := r.due(now); p != nil {
				r.ask(p.name, p.query)
				p.next = now + p.every
			}
		}
		if err := clock.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// due returns the probe that is most overdue; nil if no probe is due.
func (r *recording) due(now time.Duration) *probe {
	var first *probe
	for i := range r.probes {
		p := &r.probes[i]
		if r.absent[p.name] == "" && p.next <= now && (first == nil || p.next < first.next) {
			first = p
		}
	}
	return first
}

// ask makes a query, unless the sensor is absent. It records an absent sensor and a sensor's first error. A failed
// query is repeated later.
func (r *recording) ask(name string, query func() error) {
	if r.absent[name] != "" {
		return
	}
	switch err := query(); {
	case errors.Is(err, power.ErrAbsent):
		r.absent[name] = fmt.Sprintf("this card has no sensor %q", name)
	case err != nil && r.failed[name] == nil:
		r.failed[name] = err
	}
}

// count reads the energy counter. A step's moment lies between the two latest readings. If a query stalls and a step is
// seen late, that step is skipped, and the averaging interval extends to the next step.
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
		if e == c.value {
			r.still += gap
		} else {
			r.still = 0
		}
		switch {
		case e < c.value:
			r.spoil("the energy counter fell from %d to %d mJ", c.value, e)
		case e == c.value && r.still > patience:
			r.spoil("the energy counter does not change")
		case e == c.value:
		case max(gap, c.gap) > 3*r.gap+time.Millisecond:
			r.late++
		default:
			at := now - gap/2
			if r.step > 0 && e > r.energy {
				watts := float64(e-r.energy) / 1000 / (at - r.step).Seconds()
				if !power.WattsRange(r.card.Info()).Holds(watts) {
					r.spoil("the energy counter gives an implausible power of %.4g W", watts)
				}
				r.add(stitch.Reading{Sensor: stitch.Counter, At: Seconds(at), Since: Seconds(r.step), Watts: watts})
			}
			r.energy, r.step = e, at
		}
	}
	c.known, c.value, c.asked, c.gap = true, e, now, gap
	return nil
}

// power reads a power sensor and records a reading when its value has changed. The first value is not recorded, because
// its age is unknown.
func (r *recording) power(name string, which power.Sensor) error {
	s, err := r.card.Sample(which, power.GPU)
	if err != nil {
		return err
	}
	if !power.WattsRange(r.card.Info()).Holds(s.Watts) {
		r.spoil("the power sensor (%s) gives an implausible power of %.4g W", name, s.Watts)
		return nil
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
	r.add(stitch.Reading{Sensor: name, At: Seconds(r.moment(s.At, now)), Watts: s.Watts})
	return nil
}

// moment converts the time of a reading to the host's clock. It ignores a time stamp that is impossible for the host.
func (r *recording) moment(at time.Time, now time.Duration) time.Duration {
	if t := r.clock.Of(at); t > now-time.Second && t < now+late {
		return min(t, now)
	}
	return now
}

// fetch takes the readings that the driver has buffered since the last fetch. If the sensor updates more slowly than
// the buffer, the buffer repeats values. Repeated values are dropped.
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
			r.add(stitch.Reading{Sensor: stitch.Buffer, At: Seconds(at), Watts: s.Watts})
		}
	}
	return nil
}

// spoil marks the run as invalid. The first reason is kept.
func (r *recording) spoil(format string, args ...any) {
	if r.wrong == nil {
		r.wrong = power.Disturbed(format, args...)
	}
}

func (r *recording) state(s state, err error) error {
	if err == nil {
		s.at = r.clock.Now()
		r.states = append(r.states, s)
	}
	return err
}

func (r *recording) add(reading stitch.Reading) {
	reading.Run = r.run
	r.readings = append(r.readings, reading)
}
