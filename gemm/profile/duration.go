package profile

import (
	"fmt"
	"math"
	"time"
)

// TimeText is a time with three digits, in the unit that suits it.
func TimeText(d time.Duration) string {
	sign := ""
	if d < 0 {
		sign = "−"
	}
	ns := math.Abs(float64(d))
	for _, unit := range []struct {
		size time.Duration
		name string
	}{{time.Second, "s"}, {time.Millisecond, "ms"}, {time.Microsecond, "µs"}} {
		switch v := ns / float64(unit.size); {
		case v >= 999.5: // %.3g would write an exponent
			return fmt.Sprintf("%s%.0f %s", sign, v, unit.name)
		case v >= 0.9995: // 1.00
			return fmt.Sprintf("%s%.3g %s", sign, v, unit.name)
		}
	}
	return fmt.Sprintf("%s%.0f ns", sign, ns)
}
