package stitch

import (
	"encoding/json"
	"math"
	"testing"
	"time"
)

func ladder() *Trace {
	return &Trace{
		Start: -10 * ms, Step: 10 * ms,
		Watts: []float64{100, 200, 400, 400}, Low: []float64{90, 180, 390, 390}, High: []float64{110, 220, 410, 410},
		Resolution: []Seconds{1, 2, 3, 4},
	}
}

func TestTraceMean(t *testing.T) {
	c := ladder()
	for _, test := range []struct{ from, to, watts, half float64 }{
		{-10, 0, 100, 10},
		{-5, 5, 150, 15},
		{0, 30, 1000.0 / 3, 40.0 / 3},
		{5, 5, 200, 20},     // a moment
		{-100, 0, 100, 10},  // beyond the begin
		{15, 500, 400, 10},  // beyond the end
		{500, 600, 400, 10}, // all beyond it
	} {
		from, to := Of(test.from/1000), Of(test.to/1000)
		w, low, high := c.Mean(from, to)
		if !near64(w, test.watts) || !near64(low, test.watts-test.half) || !near64(high, test.watts+test.half) {
			t.Errorf("from %v to %v: %v in [%v, %v], want %v ± %v", from, to, w, low, high, test.watts, test.half)
		}
	}
	if w, _, _ := (&Trace{}).Mean(0, 1); w != 0 {
		t.Errorf("no trace has %v W", w)
	}
}

func TestResolutionAt(t *testing.T) {
	c := ladder()
	for at, want := range map[Seconds]Seconds{-Seconds(time.Second): 1, -1: 1, 0: 2, 15 * ms: 3, Seconds(time.Hour): 4} {
		if r := c.ResolutionAt(at); r != want {
			t.Errorf("at %v: %v, want %v", at, r, want)
		}
	}
	if r := (&Trace{}).ResolutionAt(0); r != 0 {
		t.Errorf("no trace resolves %v", r)
	}
}

// TestIntervalsFromFile: the interval of a mean is narrower than its cells' intervals, because their errors differ. A trace from
// a file gives no narrower interval.
func TestIntervalsFromFile(t *testing.T) {
	card := truth{power: overshooting, runs: 10, until: 0.4, noise: 3, counting: true}
	c, _ := stitched(t, card.readings(), card.options())
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	read := new(Trace)
	if err := json.Unmarshal(text, read); err != nil {
		t.Fatal(err)
	}
	from, to := 100*ms, 300*ms
	w, low, high := c.Mean(from, to)
	w2, low2, high2 := read.Mean(from, to)
	if math.Abs(w-w2) > 1e-9 || low2 > low || high2 < high || high <= low {
		t.Errorf("%v in [%v, %v], from the file %v in [%v, %v]", w, low, high, w2, low2, high2)
	}
}
