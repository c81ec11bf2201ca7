package collective

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// Joint presents several cards as one card, for a [power.Meter] of work that needs all of them. Energy and power are sums, the
// temperature is the highest, and clocks are means. Joint is also a [power.Clock] of the cards.
//
// The cards' energy counters step at different times. Joint's counter steps when every card's counter has stepped twice since
// Joint's last step. Joint extrapolates a card's energy since the card's last step with the mean power of that step. So all
// energies of a sum belong to one moment.
type Joint struct {
	cards  []power.Card
	clocks []power.Clock
	steps  []step
	sum    uint64 // millijoules
	known  bool
}

// step is the state of a card's counter. Its times are zero before the first poll.
type step struct {
	value  uint64
	at     time.Duration // time of the step to value
	watts  float64       // between the two last steps
	fresh  int           // steps with known times since Joint's last step
	polled time.Duration // time of the last poll
}

// NewJoint returns a Joint of cards with their clocks. Real cards share the host's clock. Simulated cards have virtual clocks,
// which Joint synchronises.
func NewJoint(cards []power.Card, clocks []power.Clock) *Joint {
	return &Joint{cards: cards, clocks: clocks, steps: make([]step, len(cards))}
}

// prompt is the longest time between two polls of a card that give the time of a step between them: a quarter of the usual time between
// the counter's steps. On some virtual machines a query takes milliseconds, and all sensors of two cards take 17 ms.
const prompt = 25 * time.Millisecond

// poll stores the counter's value at a time.
func (s *step) poll(value uint64, now time.Duration) {
	gap := now - s.polled
	switch {
	case value == s.value:
	case s.polled == 0 || gap > prompt:
		s.fresh = 0
	default:
		at := now - gap/2
		if s.fresh > 0 {
			s.watts = float64(value-s.value) / 1000 / (at - s.at).Seconds()
		}
		s.at = at
		s.fresh++
	}
	s.value, s.polled = value, now
}

// Energy returns the sum of the cards' counters at its last step.
func (j *Joint) Energy() (uint64, error) {
	ready := true
	for i, c := range j.cards {
		value, err := c.Energy()
		if err != nil {
			return 0, fmt.Errorf("card %d: %w", i, err)
		}
		j.steps[i].poll(value, j.Now())
		ready = ready && j.steps[i].fresh > 1
	}
	if !ready && j.known {
		return j.sum, nil
	}
	now, joules := j.Now(), 0.0
	for i := range j.steps {
		s := &j.steps[i]
		joules += float64(s.value) / 1000
		if s.fresh > 0 {
			joules += s.watts * (now - s.at).Seconds()
		}
		s.fresh = 0
	}
	j.sum, j.known = max(j.sum, uint64(math.Round(1000*joules))), true
	return j.sum, nil
}

// Info returns the first card's description, with the number of cards in its name and the sum of their power limits. The UUID is
// empty.
func (j *Joint) Info() power.Info {
	info := j.cards[0].Info()
	info.Name, info.UUID = fmt.Sprintf("%d × %s", len(j.cards), info.Name), ""
	sum := func(of func(power.Info) *float64) *float64 {
		all := 0.0
		for _, c := range j.cards {
			v := of(c.Info())
			if v == nil {
				return nil
			}
			all += *v
		}
		return &all
	}
	info.PowerLimit = sum(func(i power.Info) *float64 { return i.PowerLimit })
	info.PowerLimitMin = sum(func(i power.Info) *float64 { return i.PowerLimitMin })
	info.PowerLimitMax = sum(func(i power.Info) *float64 { return i.PowerLimitMax })
	info.PowerLimitPreset = sum(func(i power.Info) *float64 { return i.PowerLimitPreset })
	return info
}

// total returns the sum of a query over all cards.
func (j *Joint) total(query func(power.Card) (float64, error)) (sum float64, err error) {
	for _, c := range j.cards {
		v, err := query(c)
		if err != nil {
			return 0, err
		}
		sum += v
	}
	j.sync()
	return sum, nil
}

// Power returns the sum of the cards' powers in watts.
func (j *Joint) Power(sensor power.Sensor, scope power.Scope) (float64, error) {
	return j.total(func(c power.Card) (float64, error) { return c.Power(sensor, scope) })
}

// Sample fails, because the cards have no common time stamp.
func (j *Joint) Sample(power.Sensor, power.Scope) (power.Sample, error) {
	return power.Sample{}, power.ErrAbsent
}

// Samples fails, because the cards have no common time stamps.
func (j *Joint) Samples(time.Time) ([]power.Sample, error) { return nil, power.ErrAbsent }

// Temperature returns the highest temperature of the cards in °C.
func (j *Joint) Temperature() (float64, error) {
	most := math.Inf(-1)
	_, err := j.total(func(c power.Card) (float64, error) {
		v, err := c.Temperature()
		most = max(most, v)
		return v, err
	})
	return most, err
}

// SMClock returns the mean of the cards' SM clocks in MHz.
func (j *Joint) SMClock() (float64, error) {
	sum, err := j.total(power.Card.SMClock)
	return sum / float64(len(j.cards)), err
}

// MemClock returns the mean of the cards' memory clocks in MHz.
func (j *Joint) MemClock() (float64, error) {
	sum, err := j.total(power.Card.MemClock)
	return sum / float64(len(j.cards)), err
}

// Throttle returns the union of the cards' throttle reasons.
func (j *Joint) Throttle() (all power.Throttle, err error) {
	for _, c := range j.cards {
		reasons, failed := c.Throttle()
		all |= reasons
		err = errors.Join(err, failed)
	}
	j.sync()
	return all, err
}

// Processes returns the processes on any card, each once.
func (j *Joint) Processes() (all []power.Process, err error) {
	for _, c := range j.cards {
		own, failed := c.Processes()
		err = errors.Join(err, failed)
		for _, p := range own {
			if !slices.ContainsFunc(all, func(q power.Process) bool { return q.PID == p.PID }) {
				all = append(all, p)
			}
		}
	}
	return all, err
}

// Close does nothing: the cards stay open.
func (j *Joint) Close() error { return nil }

// Now returns the latest time of the cards' clocks.
func (j *Joint) Now() time.Duration {
	j.sync()
	return j.clocks[0].Now()
}

// Of converts a wall-clock time with the first clock.
func (j *Joint) Of(t time.Time) time.Duration { return j.clocks[0].Of(t) }

// Sleep advances all clocks by d.
func (j *Joint) Sleep(ctx context.Context, d time.Duration) error {
	err := j.clocks[0].Sleep(ctx, d)
	j.sync()
	return err
}

// sync advances virtual clocks to the latest one. Real cards share one clock.
func (j *Joint) sync() {
	if len(j.clocks) == 0 || allEqual(j.clocks) {
		return
	}
	latest := j.clocks[0].Now()
	for _, c := range j.clocks[1:] {
		latest = max(latest, c.Now())
	}
	for _, c := range j.clocks {
		if late := latest - c.Now(); late > 0 {
			_ = c.Sleep(context.Background(), late) // virtual: it returns at once
		}
	}
}

func allEqual(clocks []power.Clock) bool {
	return !slices.ContainsFunc(clocks, func(c power.Clock) bool { return c != clocks[0] })
}
