package stitch

import (
	"math"
	"testing"
	"time"
)

func TestSecondsText(t *testing.T) {
	for d, want := range map[Seconds]string{
		0: "0 ns", 12: "12 ns", 999: "999 ns", -7: "−7 ns", 1500: "1.5 µs", -2 * us: "−2 µs", 2500 * us: "2.5 ms",
		999_499: "999 µs", 999_600: "1 ms", 999 * ms: "999 ms", 999_700_000: "1 s", 1044 * ms: "1.04 s",
		3 * Seconds(time.Minute): "180 s", 30 * Seconds(time.Minute): "1800 s", math.MinInt64: "−9223372037 s",
	} {
		if got := d.String(); got != want {
			t.Errorf("%d ns is %q, want %q", d, got, want)
		}
	}
}
