package sweep

import (
	"fmt"
	"math"
	"strings"
)

// Reach is what settings lie within, in watts and MHz. A lowest of 0 and a highest of +Inf are not known.
type Reach struct{ LowestCap, HighestCap, LowestClock, HighestClock float64 }

// Check names all settings that lie outside, and says what does not, after words such as "a card can be set".
func (r Reach) Check(words string, settings []Setting) error {
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
		can = append(can, span(r.LowestCap, r.HighestCap, "W"))
	}
	if clocks {
		can = append(can, span(r.LowestClock, r.HighestClock, "MHz"))
	}
	if wrong == nil {
		return nil
	}
	return fmt.Errorf("%s: %s %s", strings.Join(wrong, ", "), words, strings.Join(can, " and "))
}

func span(low, high float64, unit string) string {
	switch {
	case math.IsInf(high, 1):
		return fmt.Sprintf("from %g %s up", low, unit)
	case low == 0:
		return fmt.Sprintf("up to %g %s", high, unit)
	}
	return fmt.Sprintf("from %g to %g %s", low, high, unit)
}
