package stitch

import (
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// Seconds is a duration, or a time since the start of a run's work, in nanoseconds. JSON holds it as a number of
// seconds.
type Seconds time.Duration

const (
	us = Seconds(time.Microsecond)
	ms = Seconds(time.Millisecond)
)

// Of returns a number of seconds as Seconds, rounded to the nanosecond.
func Of(seconds float64) Seconds { return Seconds(math.Round(seconds * float64(time.Second))) }

// Seconds returns the duration as a number of seconds.
func (s Seconds) Seconds() float64 { return time.Duration(s).Seconds() }

// Duration returns the duration as Go's type.
func (s Seconds) Duration() time.Duration { return time.Duration(s) }

// Abs returns the absolute value.
func (s Seconds) Abs() Seconds { return Seconds(time.Duration(s).Abs()) }

// String returns the duration with three digits and a suitable unit, such as "2.5 ms".
func (s Seconds) String() string {
	sign := ""
	if s < 0 {
		sign = "−"
	}
	ns := math.Abs(float64(s))
	for _, unit := range []struct {
		size time.Duration
		name string
	}{{time.Second, "s"}, {time.Millisecond, "ms"}, {time.Microsecond, "µs"}} {
		switch v := ns / float64(unit.size); {
		case v >= 999.5: // %.3g would write an exponent
			return fmt.Sprintf("%s%.0f %s", sign, v, unit.name)
		case v >= 0.9995: // written as 1.00
			return fmt.Sprintf("%s%.3g %s", sign, v, unit.name)
		}
	}
	return fmt.Sprintf("%s%.0f ns", sign, ns)
}

// MarshalJSON writes a number of seconds.
func (s Seconds) MarshalJSON() ([]byte, error) { return json.Marshal(s.Seconds()) }

// UnmarshalJSON reads a number of seconds.
func (s *Seconds) UnmarshalJSON(text []byte) error {
	var v float64
	err := json.Unmarshal(text, &v)
	*s = Of(v)
	return err
}
