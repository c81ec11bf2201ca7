package power

import (
	"testing"
	"time"
)

// TestHostClockOf converts a time with a monotonic reading, without one, and as a driver's time stamp.
func TestHostClockOf(t *testing.T) {
	c := HostClock()
	before, at, after := c.Now(), time.Now(), c.Now()
	for _, moment := range []time.Time{at, at.Round(0), time.UnixMicro(at.UnixMicro())} {
		if v := c.Of(moment); v < before-time.Millisecond || v > after+time.Millisecond {
			t.Errorf("%v is %v, between %v and %v", moment, v, before, after)
		}
	}
	if v := c.Of(at.Round(0).Add(-time.Hour)); (before - v - time.Hour).Abs() > time.Minute {
		t.Errorf("an hour ago was %v", v)
	}
}
