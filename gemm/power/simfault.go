package power

import (
	"fmt"
	"time"
)

// SimFault makes a simulated card fail in one way.
type SimFault struct {
	Kind SimFaultKind
	From time.Duration // when it begins, in the card's time
	For  time.Duration // how long it lasts; 0: for good
}

// SimFaultKind is a way to fail.
type SimFaultKind string

// Kinds of faults.
const (
	FaultCounterStops      SimFaultKind = "counter stops"      // the energy counter stands still, and its energy is lost
	FaultCounterBack       SimFaultKind = "counter jumps back" // by 100 J, at every fifth update
	FaultCounterRepeats    SimFaultKind = "counter repeats"    // every other reading is that of the update before
	FaultCounterAbsurd     SimFaultKind = "counter absurd"     // it shows 10 MJ more, at each update
	FaultPowerAbsurd       SimFaultKind = "power absurd"       // the power sensors show a gigawatt
	FaultTemperatureAbsurd SimFaultKind = "temperature absurd" // the die's sensor shows 3000 °C
	FaultClockAbsurd       SimFaultKind = "clock absurd"       // the clock shows 60 GHz
	FaultLost              SimFaultKind = "lost"               // the card falls off the bus
	FaultHeat              SimFaultKind = "heat"               // the card reduces its clock because of its temperature
	FaultProcess           SimFaultKind = "process"            // another process draws 120 W
	FaultLimit             SimFaultKind = "limit"              // something sets the power limit halfway to its least value
)

// SimFaultKinds are all kinds.
var SimFaultKinds = []SimFaultKind{FaultCounterStops, FaultCounterBack, FaultCounterRepeats, FaultCounterAbsurd, FaultPowerAbsurd, FaultTemperatureAbsurd,
	FaultClockAbsurd, FaultLost, FaultHeat, FaultProcess, FaultLimit}

// simFaults has the effects of faults on the sensors.
type simFaults struct {
	at      float64 // joules at the last update
	wrong   float64 // joules that the counter shows too much
	stale   uint64  // the counter before its last update
	reads   int     // of the counter
	updates int     // of the counter
	before  simSettings
	limited bool // FaultLimit has set the limit
}

// failing reports whether a fault of a kind is active now.
func (s *Sim) failing(kind SimFaultKind) bool {
	for _, f := range s.opt.Faults {
		if f.Kind == kind && s.now >= f.From && (f.For == 0 || s.now < f.From+f.For) {
			return true
		}
	}
	return false
}

// lost returns the error of every query and of all work on a card that has fallen off the bus.
func (s *Sim) lost() error {
	if s.failing(FaultLost) {
		return fmt.Errorf("simulated card: %w", ErrLost)
	}
	return nil
}

// spoilTick applies the faults to an update of the counter.
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

// shownCounter returns the value that a query of the counter gives.
func (s *Sim) shownCounter() uint64 {
	s.faults.reads++
	if s.failing(FaultCounterRepeats) && s.faults.reads%2 == 0 {
		return s.faults.stale
	}
	return s.counter
}

// spoilSettings sets the power limit while [FaultLimit] lasts.
func (s *Sim) spoilSettings() {
	switch on := s.failing(FaultLimit); {
	case on && !s.faults.limited:
		s.faults.before, s.faults.limited = s.settings, true
		s.settings.Limit = (s.opt.CapMin + s.settings.Limit) / 2
	case !on && s.faults.limited:
		s.settings, s.faults.limited = s.faults.before, false
	}
}
