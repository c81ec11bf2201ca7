package power

import "time"

// simSensors are what the simulated card shows of itself.
type simSensors struct {
	counter  uint64 // millijoules, as of the last tick
	nextTick time.Duration
	marks    [simMarks]float64 // joules at the last slots' ends, a ring
	slots    int
	nextSlot time.Duration
	instant  float64
}

const (
	// simSlot is what the instant sensor samples of every four slots: 25 of 100 ms.
	simSlot = 25 * time.Millisecond
	// simWindow is the average sensor's window of 1 s, in slots.
	simWindow = 40
	simMarks  = simWindow + 1
)

// tick updates the energy counter.
func (s *Sim) tick() {
	s.counter = uint64(s.joule * 1000)
	jitter := s.opt.TickJitter.Seconds() * max(-3, min(3, s.rng.NormFloat64()))
	s.nextTick += s.opt.Tick + seconds(jitter)
}

// slot updates the power sensors.
func (s *Sim) slot() {
	if s.slots%4 == 0 {
		s.instant = (s.joule - s.mark(1)) / simSlot.Seconds()
	}
	s.marks[s.slots%simMarks] = s.joule
	s.slots++
	s.nextSlot += simSlot
}

// mark is the energy so many slots ago, 1 being the newest.
func (s *Sim) mark(ago int) float64 { return s.marks[(s.slots+simMarks-ago)%simMarks] }

// Info names the card as simulated.
func (s *Sim) Info() Info {
	return Info{Name: "simulated card", Driver: "none", PowerLimit: &s.opt.Cap, MaxSMClock: &s.opt.MaxClock}
}

// query lets the time pass that a question to the card takes.
func (s *Sim) query() {
	took := s.opt.Query
	if n := s.opt.StallEvery; n > 0 && s.rng.IntN(n) == 0 {
		took = s.opt.Stall
	}
	s.advance(s.now + took)
}

// Energy steps once a tick.
func (s *Sim) Energy() (uint64, error) {
	s.query()
	return s.counter, nil
}

// Power answers for the card, and for the memory as an average only.
func (s *Sim) Power(sensor Sensor, scope Scope) (float64, error) {
	s.query()
	switch {
	case scope == Memory && sensor == Average:
		return 38, nil
	case scope != GPU:
		return 0, ErrAbsent
	case sensor == Instant:
		return s.instant, nil
	}
	slots := min(simWindow, max(1, s.slots-1))
	return (s.mark(1) - s.mark(1+slots)) / (time.Duration(slots) * simSlot).Seconds(), nil
}

// Temperature of the simulated die, in whole degrees as cards give it.
func (s *Sim) Temperature() (float64, error) {
	s.query()
	return float64(int(s.tempC)), nil
}

// SMClock falls under the cap.
func (s *Sim) SMClock() (float64, error) {
	s.query()
	return float64(int(s.clock)), nil
}

// MemClock is not simulated.
func (s *Sim) MemClock() (float64, error) { return 0, ErrAbsent }

// Throttle knows idleness, the cap and heat.
func (s *Sim) Throttle() (Throttle, error) {
	s.query()
	return s.reasons, nil
}

// Processes are this one, numbered 1, and the other one, numbered 2, once it runs.
func (s *Sim) Processes() ([]Process, error) {
	all := []Process{{PID: 1}}
	if s.opt.Other > 0 && s.now >= s.opt.OtherFrom {
		all = append(all, Process{PID: 2})
	}
	return all, nil
}

// Close does nothing.
func (s *Sim) Close() error { return nil }

// Sample is not built.
func (s *Sim) Sample(Sensor, Scope) (Sample, error) { return Sample{}, ErrAbsent }

// Samples is not built.
func (s *Sim) Samples(time.Time) ([]Sample, error) { return nil, ErrAbsent }
