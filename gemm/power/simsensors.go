package power

import (
	"math"
	"os"
	"time"
)

// simSensors are the simulated card's sensors.
type simSensors struct {
	counter  uint64 // in millijoules, at the last tick
	nextTick time.Duration
	marks    [simMarks]float64 // energy in joules at the ends of the last slots, a ring buffer
	memMarks [simMarks]float64 // energy of the memory, likewise
	slots    int
	nextSlot time.Duration
	instant  Sample
	average  time.Time // time of the latest average readings
	buffer   simBuffer
}

const (
	// simSlot is the window of the instant sensor. It samples one of four slots, 25 ms of every 100 ms.
	simSlot = 25 * time.Millisecond
	// simWindow is the window of the average sensor, in slots (1 s).
	simWindow = 40
	simMarks  = simWindow + 1
	// simMemoryIdle is the memory's power without traffic, in watts. The number is invented, like those of DefaultSim.
	simMemoryIdle = 38
)

// tick updates the energy counter.
func (s *Sim) tick() {
	s.spoilTick()
	s.counter = uint64(max(0, s.joule+s.faults.wrong) * 1000)
	jitter := s.opt.TickJitter.Seconds() * max(-3, min(3, s.rng.NormFloat64()))
	s.nextTick += s.opt.Tick + seconds(jitter)
}

// slot updates the power sensors.
func (s *Sim) slot() {
	if s.slots%4 == 0 {
		s.instant = Sample{s.wall(), (s.joule - s.mark(1)) / simSlot.Seconds()}
	}
	s.marks[s.slots%simMarks], s.memMarks[s.slots%simMarks] = s.joule, s.memJoule
	s.slots++
	s.nextSlot += simSlot
	s.average = s.wall()
}

// wall returns the wall-clock time.
func (s *Sim) wall() time.Time { return simEpoch.Add(s.now) }

// mark returns the energy at the end of an earlier slot. 1 is the newest slot.
func (s *Sim) mark(ago int) float64 { return s.marks[(s.slots+simMarks-ago)%simMarks] }

// running returns the running mean of power from a ring of energies.
func (s *Sim) running(marks *[simMarks]float64) float64 {
	slots := min(simWindow, max(1, s.slots-1))
	newest, oldest := (s.slots+simMarks-1)%simMarks, (s.slots+simMarks-1-slots)%simMarks
	return (marks[newest] - marks[oldest]) / (time.Duration(slots) * simSlot).Seconds()
}

// Info returns a description of the card. The name marks the card as simulated.
func (s *Sim) Info() Info { return s.info }

// query advances virtual time by the duration of one query.
func (s *Sim) query() {
	took := s.opt.Query
	if n := s.opt.StallEvery; n > 0 && s.rng.IntN(n) == 0 {
		took = s.opt.Stall
	}
	s.advance(s.now + took)
}

// Energy returns the energy counter in mJ, which changes once per Tick.
func (s *Sim) Energy() (uint64, error) {
	s.query()
	return s.shownCounter(), s.lost()
}

// Power returns the power of the card in watts. For the memory it supports only the average sensor.
func (s *Sim) Power(sensor Sensor, scope Scope) (float64, error) {
	v, err := s.Sample(sensor, scope)
	return v.Watts, err
}

// Sample returns a power sensor's reading, with the end of its averaging window as the time.
func (s *Sim) Sample(sensor Sensor, scope Scope) (Sample, error) {
	s.query()
	if err := s.lost(); err != nil {
		return Sample{}, err
	}
	switch {
	case scope == GPU && s.failing(FaultPowerAbsurd):
		return Sample{s.average, 1e9}, nil
	case scope == Memory && sensor == Average:
		return Sample{s.average, milliwatts(s.running(&s.memMarks))}, nil
	case scope != GPU:
		return Sample{}, ErrAbsent
	case sensor == Instant:
		return s.instant, nil
	}
	return Sample{s.average, s.running(&s.marks)}, nil
}

// Temperature returns the simulated die's temperature in whole °C.
func (s *Sim) Temperature() (float64, error) {
	s.query()
	if s.failing(FaultTemperatureAbsurd) {
		return 3000, nil
	}
	return float64(int(s.tempC)), s.lost()
}

// SMClock returns the clock in whole MHz.
func (s *Sim) SMClock() (float64, error) {
	s.query()
	if s.failing(FaultClockAbsurd) {
		return 60e3, nil
	}
	return float64(int(s.clock)), s.lost()
}

// MemClock returns ErrAbsent, because the memory clock is not simulated.
func (s *Sim) MemClock() (float64, error) { return 0, ErrAbsent }

// Throttle returns the simulated reasons for a reduced clock: idle, a locked clock, the cap and temperature.
func (s *Sim) Throttle() (Throttle, error) {
	s.query()
	return s.reasons, s.lost()
}

// simOther is the ID of the simulated other process. No real process has such a high ID.
const simOther = 1 << 22

// simOtherWatts is the power of the process of [FaultProcess] in watts.
const simOtherWatts = 120

// Processes lists this process, and the simulated other process once it runs.
func (s *Sim) Processes() ([]Process, error) {
	all := []Process{{PID: os.Getpid()}}
	if s.opt.Other > 0 && s.now >= s.opt.OtherFrom {
		all = append(all, Process{PID: simOther})
	}
	if s.failing(FaultProcess) {
		all = append(all, Process{PID: simOther + 1})
	}
	return all, s.lost()
}

// Close does nothing.
func (s *Sim) Close() error { return nil }

// milliwatts rounds a power in watts to milliwatts, as sensors do.
func milliwatts(watts float64) float64 { return math.Round(watts*1000) / 1000 }
