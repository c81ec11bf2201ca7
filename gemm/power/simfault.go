package power

import (
	"fmt"
	"time"
)

// SimFault is a fault of a simulated card.
type SimFault struct {
	Kind SimFaultKind
	From time.Duration // when the fault starts, in the card's time
	For  time.Duration // how long the fault lasts; 0: to the end
}

// SimFaultKind is a kind of fault.
type SimFaultKind string

// Kinds of faults.
const (
	FaultCounterStops      SimFaultKind = "counter stops"      // the energy counter stays constant, and the energy meanwhile is lost
	FaultCounterBack       SimFaultKind = "counter jumps back" // the counter falls by 100 J at every fifth update
	FaultCounterRepeats    SimFaultKind = "counter repeats"    // every other reading shows the value before the last update
	FaultCounterAbsurd     SimFaultKind = "counter absurd"     // the counter shows 10 MJ more at each update
	FaultPowerAbsurd       SimFaultKind = "power absurd"       // the power sensors show a gigawatt
	FaultTemperatureAbsurd SimFaultKind = "temperature absurd" // the die's temperature sensor shows 3000 °C
	FaultClockAbsurd       SimFaultKind = "clock absurd"       // the clock shows 60 GHz
	FaultLost              SimFaultKind = "lost"               // the card falls off the bus
	FaultHeat              SimFaultKind = "heat"               // the card reduces its clock because of its temperature
	FaultProcess           SimFaultKind = "process"            // another process draws 120 W
	FaultLimit             SimFaultKind = "limit"              // another process sets the power limit halfway to its least value
)

// SimFaultKinds lists all kinds of faults.
var SimFaultKinds = []SimFaultKind{FaultCounterStops, FaultCounterBack, FaultCounterRepeats, FaultCounterAbsurd, FaultPowerAbsurd, FaultTemperatureAbsurd,
	FaultClockAbsurd, FaultLost, FaultHeat, FaultProcess, FaultLimit}

// simFaults holds the effects of faults on the sensors.
type simFaults struct {
	at      float64 // energy in joules at the last update
	wrong   float64 // joules that the counter shows in excess
	stale   uint64  // counter before its last update
	reads   int     // number of readings of the counter
	updates int     // number of updates of the counter
	before  simSettings
	limited bool // whether FaultLimit has set the limit
}

// failing reports whether a fault of the given kind is active now.
func (s *Sim) failing(kind SimFaultKind) bool {
	for _, f := range s.opt.Faults {
		if f.Kind == kind && s.now >= f.From && (f.For == 0 || s.now < f.From+f.For) {
			return true
		}
	}
	return false
}

// lost returns the error of queries and work on a card that has fallen off the bus; nil otherwise.
func (s *Sim) lost() error {
	if s.failing(FaultLost) {
		return fmt.Errorf("simulated card: %w", ErrLost)
	}
	return nil
}

// spoilTick applies the faults to an update of the energy counter.
func (s *Sim) spoilTick() {
	since := s.joule - s.faults.at
	s.faults.updates++
	s.faults.at, s.faults.stale = s.joule, s.counter
	switch {
	case s.failing(FaultCounterStops):
		s.faults.wrong -= since
	case s.failing(FaultCounterBack) && s.faults.updates%5 == 0:
		s.faults.wrong -= 100
	case s.failing(FaultCounterAbsurd):
		s.faults.wrong += 10e6
	}
}

// shownCounter returns the value that a query of the energy counter returns.
func (s *Sim) shownCounter() uint64 {
	s.faults.reads++
	if s.failing(FaultCounterRepeats) && s.faults.reads%2 == 0 {
		return s.faults.stale
	}
	return s.counter
}

// spoilSettings sets the power limit while [FaultLimit] is active.
func (s *Sim) spoilSettings() {
	switch on := s.failing(FaultLimit); {
	case on && !s.faults.limited:
		s.faults.before, s.faults.limited = s.settings, true
		s.settings.Limit = (s.opt.CapMin + s.settings.Limit) / 2
	case !on && s.faults.limited:
		s.settings, s.faults.limited = s.faults.before, false
	}
}
