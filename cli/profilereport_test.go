package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm/profile"
)

func TestTimeText(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 ns", 12: "12 ns", 1500: "1.5 µs", -2 * time.Microsecond: "−2 µs", 2500 * time.Microsecond: "2.5 ms",
		999 * time.Millisecond: "999 ms", 999_700_000: "1 s", 1044 * time.Millisecond: "1.04 s", 3 * time.Minute: "180 s", 30 * time.Minute: "1800 s",
	} {
		if got := timeText(d); got != want {
			t.Errorf("%d ns is %q, want %q", d, got, want)
		}
	}
}

func TestSensorText(t *testing.T) {
	s := profile.Sensor{Name: profile.Instant, Readings: 1200, Window: 25 * time.Millisecond, Delay: 3 * time.Millisecond, Gain: 0.98, Error: 2.04, Used: true}
	if got, want := sensorText(s), "instant power, 1 200 readings, each over 25 ms, 3 ms late, −2.0 % off the counter, ±2.0 W"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	s.Delay, s.Gain = -time.Millisecond, 1
	if got, want := sensorText(s), "instant power, 1 200 readings, each over 25 ms, 1 ms early, ±2.0 W"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	s.Used, s.Why = false, "it contradicts the others"
	if got, want := sensorText(s), "instant power, 1 200 readings, each over 25 ms; not used: it contradicts the others"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestProfileMet: steady power and the resolution asked for, in every profile.
func TestProfileMet(t *testing.T) {
	p := profile.Profile{
		Legs:   []profile.Leg{{Name: "a", Executions: 9, End: time.Second}},
		Curve:  &profile.Curve{Step: 10 * time.Millisecond, Watts: []float64{1, 2}, Low: []float64{1, 2}, High: []float64{1, 2}, Resolution: []time.Duration{4e6, 5e6}},
		Steady: profile.SteadyState{SSP: profile.SteadyPoint{Found: true}},
	}
	r := profileReport{Result: &profile.Result{Profiles: []profile.Profile{p}}}
	for asked, want := range map[time.Duration]bool{0: true, 5e6: true, 4e6: false} {
		if r.asked = asked; r.met() != want {
			t.Errorf("5 ms where %v were asked for: %v", asked, r.met())
		}
	}
	swinging := p
	swinging.Steady.SSP = profile.SteadyPoint{Why: "power still changed: take longer runs"}
	r.asked, r.Profiles = 0, []profile.Profile{p, swinging}
	var b strings.Builder
	if r.print(&b); r.met() || !strings.Contains(b.String(), "note: power was not steady: power still changed: take longer runs (--length)\n") {
		t.Errorf("met %v:\n%s", r.met(), b.String())
	}
	r.Stopped = "cancelled"
	b.Reset()
	if r.print(&b); !strings.HasPrefix(b.String(), ": , broken off\n") || !strings.Contains(b.String(), "note: it was broken off") {
		t.Errorf("interrupted:\n%s", b.String())
	}
	none := p
	none.Curve, none.Milestones = nil, nil
	r.asked, r.Profiles = 5e6, []profile.Profile{none}
	if r.met() || !strings.Contains(string(r.picture()), "<svg") {
		t.Error("without a curve it is met, or cannot be drawn")
	}
}

// TestProfilePicture has a band, the points of steadiness, and where another product took over.
func TestProfilePicture(t *testing.T) {
	c := &profile.Curve{Start: -150 * time.Millisecond, Step: 2500 * time.Microsecond}
	for i := range 320 {
		c.Watts, c.Low, c.High = append(c.Watts, float64(i)), append(c.Low, float64(i-5)), append(c.High, float64(i+5))
		c.Resolution = append(c.Resolution, c.Step)
	}
	mhz := 1980.0
	p := profile.Profile{
		Curve: c, Legs: []profile.Leg{{Name: "a", End: 400 * time.Millisecond}, {Name: "b<c", Begin: 400 * time.Millisecond, End: 600 * time.Millisecond}},
		Steady: profile.SteadyState{SSE: profile.SteadyPoint{Found: true, At: 10 * time.Microsecond}, SSP: profile.SteadyPoint{Found: true, At: 50 * time.Millisecond}},
		States: []profile.State{{At: -time.Millisecond}, {At: time.Millisecond, SMClock: &mhz}},
	}
	text := string(profileReport{Result: &profile.Result{GPU: "card", Profiles: []profile.Profile{p}}, about: "a"}.picture())
	for _, want := range []string{"<title>card: a</title>", ">SSP<", ">SSE<", "then b&lt;c", "MHz"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "NaN") {
		t.Error("NaN in a path")
	}
}
