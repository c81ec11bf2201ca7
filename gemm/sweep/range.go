package sweep

import (
	"fmt"
	"math"
	"strings"
)

// Range is a range of settings, in watts and MHz. A lowest value of 0 or a highest value of +Inf means unknown.
type Range struct{ LowestCap, HighestCap, LowestClock, HighestClock float64 }

// SettingsError is the error for settings outside the range of a card or a calibration.
type SettingsError struct{ text string }

func (e *SettingsError) Error() string { return e.text }

// Check returns a *[SettingsError] that names all settings outside the range. words starts the part of the text that
// gives the range, for example "a card can be set".
func (r Range) Check(words string, settings []Setting) error {
	var wrong, can []string
	caps, clocks := false, false
	for _, s := range settings {
		cap := s.Cap != 0 && !(s.Cap >= r.LowestCap && s.Cap <= r.HighestCap)
		clock := s.Clock != 0 && !(s.Clock >= r.LowestClock && s.Clock <= r.HighestClock)
		if cap || clock {
			wrong = append(wrong, s.String())
		}
		caps, clocks = caps || cap, clocks || clock
	}
	if caps {
		can = append(can, rangeText(r.LowestCap, r.HighestCap, "W"))
	}
	if clocks {
		can = append(can, rangeText(r.LowestClock, r.HighestClock, "MHz"))
	}
	if wrong == nil {
		return nil
	}
	return &SettingsError{fmt.Sprintf("%s: %s %s", strings.Join(wrong, ", "), words, strings.Join(can, " and "))}
}

func rangeText(low, high float64, unit string) string {
	switch {
	case math.IsInf(high, 1):
		return fmt.Sprintf("from %g %s up", low, unit)
	case low == 0:
		return fmt.Sprintf("up to %g %s", high, unit)
	}
	return fmt.Sprintf("from %g to %g %s", low, high, unit)
}
