package profile

import (
	"encoding/json"
	"math"
	"testing"
	"time"
)

func ladder() *Curve {
	return &Curve{
		Start: -10 * time.Millisecond, Step: 10 * time.Millisecond,
		Watts: []float64{100, 200, 400, 400}, Low: []float64{90, 180, 390, 390}, High: []float64{110, 220, 410, 410},
		Resolution: []time.Duration{1, 2, 3, 4},
	}
}

func TestCurveMean(t *testing.T) {
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
		from, to := seconds(test.from/1000), seconds(test.to/1000)
		w, low, high := c.Mean(from, to)
		if !near64(w, test.watts) || !near64(low, test.watts-test.half) || !near64(high, test.watts+test.half) {
			t.Errorf("from %v to %v: %v in [%v, %v], want %v ± %v", from, to, w, low, high, test.watts, test.half)
		}
	}
	if w, _, _ := (&Curve{}).Mean(0, 1); w != 0 {
		t.Errorf("no curve has %v W", w)
	}
}

func TestResolutionAt(t *testing.T) {
	c := ladder()
	for at, want := range map[time.Duration]time.Duration{-time.Second: 1, -1: 1, 0: 2, 15 * time.Millisecond: 3, time.Hour: 4} {
		if r := c.ResolutionAt(at); r != want {
			t.Errorf("at %v: %v, want %v", at, r, want)
		}
	}
	if r := (&Curve{}).ResolutionAt(0); r != 0 {
		t.Errorf("no curve resolves %v", r)
	}
}

// TestIntervalsFromFile: the interval of a mean is narrower than those of its cells, whose errors differ; read
// from a file it is no narrower than that.
func TestIntervalsFromFile(t *testing.T) {
	card := truth{power: overshooting, runs: 10, until: 0.4, noise: 3, counting: true}
	c, _ := stitched(t, card.readings(), card.options())
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	read := new(Curve)
	if err := json.Unmarshal(text, read); err != nil {
		t.Fatal(err)
	}
	from, to := 100*time.Millisecond, 300*time.Millisecond
	w, low, high := c.Mean(from, to)
	w2, low2, high2 := read.Mean(from, to)
	if math.Abs(w-w2) > 1e-9 || low2 > low || high2 < high || high <= low {
		t.Errorf("%v in [%v, %v], from the file %v in [%v, %v]", w, low, high, w2, low2, high2)
	}
}

func TestAgreement(t *testing.T) {
	a, b := ladder(), ladder()
	if d := Agreement(a, b, -time.Second, time.Hour); d != (Difference{}) {
		t.Errorf("a curve differs from itself: %+v", d)
	}
	a.Watts = []float64{150, 210, 400, 440}
	if d := Agreement(a, b, 0, time.Hour); !near64(d.Largest, 0.1) || d.At != 20*time.Millisecond || !near64(d.Mean, 0.05) {
		t.Errorf("after 0: %+v", d)
	}
	if d := Agreement(a, b, -time.Second, time.Hour); !near64(d.Largest, 0.5) || d.At != a.Start {
		t.Errorf("from the begin: %+v", d)
	}
	// Other cells: 300 W on average from 0 to 20 ms.
	c := &Curve{Start: 0, Step: 20 * time.Millisecond, Watts: []float64{330, 400}}
	if d := Agreement(c, b, 0, time.Hour); !near64(d.Largest, 0.1) || !near64(d.Mean, 0.1) {
		t.Errorf("in other cells: %+v", d)
	}
	// Together the intervals allow 5 W.
	flat := &Curve{Step: 10 * time.Millisecond, Watts: []float64{100, 100, 100, 100}, Low: []float64{97, 97, 97, 97}, High: []float64{103, 103, 103, 103}}
	other := &Curve{Step: flat.Step, Watts: []float64{100, 104, 94.9, 110}, Low: []float64{96, 100, 90.9, 106}, High: []float64{104, 108, 98.9, 114}}
	if d := Agreement(flat, other, 0, time.Hour); d.Apart != 0.5 {
		t.Errorf("%v of the cells are apart, want a half", d.Apart)
	}
}
