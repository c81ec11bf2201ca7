package power

import (
	"math"
	"slices"
	"testing"
)

// TestRanges: the ends of a range are plausible, values beyond are not, and a card without known limits has wide ranges.
func TestRanges(t *testing.T) {
	limit, clock, none := 700.0, 2000.0, 0.0
	known := Info{PowerLimitMax: &limit, MaxSMClock: &clock}
	for name, c := range map[string]struct{ have, want Range }{
		"watts":                 {WattsRange(known), Range{0, 2100}},
		"watts, unknown":        {WattsRange(Info{}), Range{0, 20000}},
		"watts, a limit of 0":   {WattsRange(Info{PowerLimitMax: &none}), Range{0, 20000}},
		"clock":                 {ClockRange(known), Range{0, 3000}},
		"clock, unknown":        {ClockRange(Info{}), Range{0, math.MaxFloat64}},
		"temperature, any card": {TemperatureRange, Range{-60, 150}},
	} {
		if c.have != c.want {
			t.Errorf("%s: %v, want %v", name, c.have, c.want)
		}
	}
	r := Range{-2, 3}
	for v, want := range map[float64]bool{-2.1: false, -2: true, 0: true, 3: true, 3.1: false, math.Inf(1): false, math.NaN(): false} {
		if r.Holds(v) != want {
			t.Errorf("%v holds %v: %v", r, v, !want)
		}
	}
}

// TestOddReadings: a reading outside its range is left out and named, and no reading is none.
func TestOddReadings(t *testing.T) {
	var w Window
	right, wrong := 3.0, 3.5
	if w.plausible("clock", "MHz", &right, Range{0, 3}) != &right || w.plausible("clock", "MHz", nil, Range{0, 3}) != nil || w.odd != nil {
		t.Errorf("%v", w.odd)
	}
	if w.plausible("clock", "MHz", &wrong, Range{0, 3}) != nil || !slices.Equal(w.odd, []string{"the clock shows 3.5 MHz"}) {
		t.Errorf("%v", w.odd)
	}
}
