package power

import (
	"fmt"
	"math"
)

// Range is a range of plausible readings. A reading outside it is a sensor error.
type Range struct{ Least, Most float64 }

// Holds reports whether a reading is in the range, including its ends. NaN is in no range.
func (r Range) Holds(v float64) bool { return r.Least <= v && v <= r.Most }

// TemperatureRange is the range of plausible temperatures of a card, in °C.
var TemperatureRange = Range{-60, 150}

// WattsRange returns the range of plausible powers of a card in watts, including short peaks.
func WattsRange(info Info) Range {
	if most := info.PowerLimitMax; most != nil && *most > 0 {
		return Range{0, 3 * *most}
	}
	return Range{0, 20e3}
}

// ClockRange returns the range of plausible clocks of a card's multiprocessors, in MHz.
func ClockRange(info Info) Range {
	if most := info.MaxSMClock; most != nil {
		return Range{0, 1.5 * *most}
	}
	return Range{0, math.MaxFloat64}
}

// plausible returns v, or nil if v is outside the range. It then notes the reading in the window.
func (w *Window) plausible(name, unit string, v *float64, r Range) *float64 {
	if v == nil || r.Holds(*v) {
		return v
	}
	w.odd = append(w.odd, fmt.Sprintf("the %s shows %.4g %s", name, *v, unit))
	return nil
}
