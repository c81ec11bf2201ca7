package power

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"
)

// SelfTest describes the card's sensors, measured on an idle card and during a step of load.
type SelfTest struct {
	// Tick is the mean time between steps of the energy counter in seconds, and TickJitter its standard deviation.
	Tick       float64 `json:"tick_seconds"`
	TickJitter float64 `json:"tick_jitter_seconds"`
	// IdleWatts and LoadWatts are measured with the energy counter. LoadWatts is measured at the end of the load step.
	IdleWatts float64 `json:"idle_watts"`
	LoadWatts float64 `json:"load_watts"`
	// Instant and Average are absent if the sensor does not respond or the load step was too small.
	Instant *Response `json:"instant,omitempty"`
	Average *Response `json:"average,omitempty"`
}

// Response is a power sensor's response to a load step. Times are in seconds.
type Response struct {
	Update float64 `json:"update_seconds"` // median time between changes of the reading
	Rise   float64 `json:"rise_seconds"`   // time from the step to 90 % of the response
	// Window is the length of a running mean with the sensor's delay: twice the mean delay.
	Window float64 `json:"window_seconds"`
}

const (
	idleTime = 1500 * time.Millisecond
	stepTime = 3 * time.Second
)

// SelfTest measures the energy counter's tick and the power sensors' windows and rise times. It takes about 5 s. It
// fails with ErrCounterStill if the counter does not change.
func (m *Meter) SelfTest(ctx context.Context, load Load) (SelfTest, error) {
	if err := energyCounter(m.card); err != nil {
		return SelfTest{}, err
	}
	about, err := m.estimate(ctx, load)
	if err != nil {
		return SelfTest{}, err
	}
	idle, err := m.record(ctx, idleTime)
	if err != nil {
		return SelfTest{}, err
	}
	r, err := m.begin(load, executions(stepTime*21/20, about))
	if err != nil {
		return SelfTest{}, err
	}
	step, err := m.record(ctx, stepTime)
	if err != nil {
		r.abandon(ctx)
		return SelfTest{}, err
	}
	if _, err := r.finish(ctx); err != nil {
		return SelfTest{}, err
	}
	ticks := append(idle.energy.intervals(), step.energy.intervals()...)
	if len(idle.energy) < 3 || len(step.energy) < 5 {
		return SelfTest{}, fmt.Errorf("%s: the energy counter made %d steps in %v on the idle card and %d steps in %v under load %q: %w",
			m.card.Info().Name, len(idle.energy), idleTime, len(step.energy), stepTime, load.Name(), ErrCounterStill)
	}
	t := SelfTest{
		IdleWatts: idle.energy.slope() / 1000,
		LoadWatts: step.energy[len(step.energy)/2:].slope() / 1000,
		Instant:   idle.instant.response(step.instant, r.begin),
		Average:   idle.average.response(step.average, r.begin),
	}
	t.Tick, t.TickJitter = stat.MeanStdDev(ticks, nil)
	m.learn(t)
	return t, nil
}

// learn stores the self-test's results that the windows need.
func (m *Meter) learn(t SelfTest) {
	m.tick = seconds(t.Tick)
	m.quick = t.Instant != nil && t.Instant.Window <= quickWindow
}

// trace holds a sensor's readings, one for each change of its value.
type trace []reading

type reading struct {
	at    time.Duration
	value float64
}

// traces holds the traces of one recording.
type traces struct{ energy, instant, average trace }

// record polls the sensors for d.
func (m *Meter) record(ctx context.Context, d time.Duration) (traces, error) {
	const pause = time.Millisecond
	var t traces
	for begin := m.clock.Now(); m.since(begin) < d; {
		e, err := m.card.Energy()
		if err != nil {
			return t, fmt.Errorf("%s: energy counter: %w", m.card.Info().Name, err)
		}
		if n := len(t.energy); n > 0 && float64(e) < t.energy[n-1].value {
			return t, m.wentBack(uint64(t.energy[n-1].value), e)
		}
		t.energy.add(m.clock.Now(), float64(e), nil)
		instant, err := m.card.Power(Instant, GPU)
		t.instant.add(m.clock.Now(), instant, err)
		average, err := m.card.Power(Average, GPU)
		t.average.add(m.clock.Now(), average, err)
		if err := m.clock.Sleep(ctx, pause); err != nil {
			return t, err
		}
	}
	// The first reading is not a change of the value.
	t.energy = t.energy[1:]
	return t, nil
}

func (t *trace) add(at time.Duration, value float64, err error) {
	if err == nil && (len(*t) == 0 || (*t)[len(*t)-1].value != value) {
		*t = append(*t, reading{at, value})
	}
}

// intervals returns the times between changes, in seconds.
func (t trace) intervals() []float64 {
	var s []float64
	for i := 1; i < len(t); i++ {
		s = append(s, (t[i].at - t[i-1].at).Seconds())
	}
	return s
}

// slope returns the mean rate from the first to the last change, per second.
func (t trace) slope() float64 {
	first, last := t[0], t[len(t)-1]
	return (last.value - first.value) / (last.at - first.at).Seconds()
}

// response returns a sensor's response to a load step that starts at begin. t was recorded on the idle card and step
// during the load. The result is nil if the sensor did not respond or the power step is less than a twentieth of the
// final power.
func (t trace) response(step trace, begin time.Duration) *Response {
	if len(t) == 0 || len(step) < 5 {
		return nil
	}
	low := t[len(t)-1].value
	tail := step[len(step)*3/4:]
	high := 0.0
	for _, r := range tail {
		high += r.value / float64(len(tail))
	}
	if high-low < high/20 {
		return nil
	}
	intervals := step.intervals()
	slices.Sort(intervals)
	resp := Response{Update: stat.Quantile(0.5, stat.Empirical, intervals, nil)}
	delay, before, shown := 0.0, begin, low
	for _, r := range step {
		at := max(r.at, begin)
		delay += (high - shown) / (high - low) * (at - before).Seconds()
		before, shown = at, r.value
		if resp.Rise == 0 && r.value-low >= 0.9*(high-low) {
			resp.Rise = (at - begin).Seconds()
		}
	}
	resp.Window = max(0, 2*delay)
	return &resp
}

// energyCounter returns an error if the card has no energy counter.
func energyCounter(card Card) error {
	_, err := card.Energy()
	if errors.Is(err, ErrAbsent) {
		return fmt.Errorf("%s: no energy counter (cards before Volta and some virtual cards have none): measure on another card: %w", card.Info().Name, err)
	}
	if err != nil {
		return fmt.Errorf("%s: energy counter: %w", card.Info().Name, err)
	}
	return nil
}
