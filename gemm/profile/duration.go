package profile

import (
	"fmt"
	"time"
)

// text of a duration, with three digits, in the unit that suits these.
func text(d time.Duration) string {
	for _, unit := range []struct {
		size time.Duration
		name string
	}{{time.Second, "s"}, {time.Millisecond, "ms"}, {time.Microsecond, "µs"}} {
		switch v := float64(d) / float64(unit.size); {
		case v >= 999.5: // %.3g would write an exponent
			return fmt.Sprintf("%.0f %s", v, unit.name)
		case v >= 0.9995: // 1.00
			return fmt.Sprintf("%.3g %s", v, unit.name)
		}
	}
	return fmt.Sprintf("%d ns", d)
}
