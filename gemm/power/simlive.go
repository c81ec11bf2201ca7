package power

import (
	"sync"
	"time"
)

// LiveSim is a simulated card that runs in the host's time. It serves work in real time, such as requests to a server.
// The work reports the power that it draws ([LiveSim.Draw]). Queries take no time. A LiveSim can be used from several
// goroutines; a [Sim] cannot.
type LiveSim struct {
	mu    sync.Mutex
	sim   *Sim
	start time.Time
}

// NewLiveSim returns a card that has been idle for a long time. o.Query and o.Stall are not used.
func NewLiveSim(o SimOptions) *LiveSim {
	o.Query, o.StallEvery = 0, 0
	return &LiveSim{sim: NewSim(o), start: time.Now()}
}

// Draw sets the power of the work that runs from now on, in watts at the maximum clock and the reference temperature.
// 0: no work.
func (l *LiveSim) Draw(watts float64) {
	const long = 1 << 30 // seconds
	defer l.now().Unlock()
	l.sim.abandon()
	if watts > 0 {
		l.sim.enqueue(SimKernel{Watts: watts, Seconds: 1}, long)
	}
}

// now advances the card to the host's time. It returns the locked mutex, which the caller must unlock.
func (l *LiveSim) now() *sync.Mutex {
	l.mu.Lock()
	l.sim.advance(time.Since(l.start))
	return &l.mu
}

// Info returns a description of the card. The name marks the card as simulated.
func (l *LiveSim) Info() Info { return l.sim.Info() }

// Energy returns the energy counter in mJ, which steps once per tick.
func (l *LiveSim) Energy() (uint64, error) {
	defer l.now().Unlock()
	return l.sim.Energy()
}

// Power returns the power of the card in watts. For the memory it supports only the average sensor.
func (l *LiveSim) Power(sensor Sensor, scope Scope) (float64, error) {
	defer l.now().Unlock()
	return l.sim.Power(sensor, scope)
}

// Sample returns Power's value with the end of its averaging window.
func (l *LiveSim) Sample(sensor Sensor, scope Scope) (Sample, error) {
	defer l.now().Unlock()
	s, err := l.sim.Sample(sensor, scope)
	s.At = l.start.Add(l.sim.Of(s.At))
	return s, err
}

// Samples returns the readings stored after a time.
func (l *LiveSim) Samples(after time.Time) ([]Sample, error) {
	defer l.now().Unlock()
	list, err := l.sim.Samples(simEpoch.Add(after.Sub(l.start)))
	for i := range list {
		list[i].At = l.start.Add(l.sim.Of(list[i].At))
	}
	return list, err
}

// Temperature returns the simulated die's temperature in whole °C.
func (l *LiveSim) Temperature() (float64, error) {
	defer l.now().Unlock()
	return l.sim.Temperature()
}

// SMClock returns the clock in whole MHz.
func (l *LiveSim) SMClock() (float64, error) {
	defer l.now().Unlock()
	return l.sim.SMClock()
}

// MemClock returns ErrAbsent, because the memory clock is not simulated.
func (l *LiveSim) MemClock() (float64, error) { return l.sim.MemClock() }

// Throttle returns the simulated reasons for a reduced clock: idle, a locked clock, the cap and temperature.
func (l *LiveSim) Throttle() (Throttle, error) {
	defer l.now().Unlock()
	return l.sim.Throttle()
}

// Processes lists this process, and the simulated other process once it runs.
func (l *LiveSim) Processes() ([]Process, error) {
	defer l.now().Unlock()
	return l.sim.Processes()
}

// Close does nothing.
func (l *LiveSim) Close() error { return nil }
