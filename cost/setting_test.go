package cost

import (
	"math"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost/arith"
)

// heldWork returns work on the built-in card: a product of 8192³, and a product of a decoding layer.
func heldWork(t *testing.T) (c *Calibration, prefill, decode []Work) {
	t.Helper()
	c, err := FindCalibration("h200")
	if err != nil {
		t.Fatal(err)
	}
	make1 := func(p Product) []Work {
		s, _ := c.nearest(p)
		b := s.Baseline
		w, err := c.Work(p, Prediction{Joules: &b.Joules, Seconds: &b.Seconds, Watts: &b.Watts, Clock: &b.Clock}, 1)
		if err != nil {
			t.Fatal(err)
		}
		return []Work{w}
	}
	return c, make1(Product{Type: arith.BF16, M: 8192, N: 8192, K: 8192}), make1(Product{Type: arith.BF16, M: 16, N: 8192, K: 8192, Cold: true})
}

// TestLaunchOfAStack: matrices of a stack share the time of a launch. A measured time that is not above the launch's is kept.
func TestLaunchOfAStack(t *testing.T) {
	h200, err := FindCalibration("h200")
	if err != nil {
		t.Fatal(err)
	}
	p := Product{Type: arith.BF16, M: 16, N: 8192, K: 8192, Cold: true}
	near, _ := h200.nearest(p)
	b := near.Baseline
	for _, test := range []struct{ launch, want float64 }{{0, 1}, {0.5, 0.75}, {1, 1}, {1.5, 1}} { // relative to the measured time
		c := &Calibration{Facts: h200.Facts, Series: h200.Series, Models: h200.Models, Names: h200.Names}
		c.Facts.Kernels.LaunchSeconds = test.launch * b.Seconds
		w, err := c.Work(p, Prediction{Joules: &b.Joules, Seconds: &b.Seconds, Watts: &b.Watts, Clock: &b.Clock}, 2)
		if err != nil {
			t.Fatal(err)
		}
		if want := test.want * b.Seconds; math.Abs(w.Seconds/want-1) > 1e-9 || math.Abs(w.Watts*w.Seconds/(b.Watts*b.Seconds)-1) > 1e-9 {
			t.Errorf("a launch of %g of the time: %v s at %v W, want %v s and the same energy", test.launch, w.Seconds, w.Watts, want)
		}
	}
}

// TestAtDefaultSetting: at the calibration's settings, the outcome equals the prediction, and intervals have no
// width.
func TestAtDefaultSetting(t *testing.T) {
	c, prefill, decode := heldWork(t)
	for _, work := range [][]Work{prefill, decode, append(prefill, decode...)} {
		var joules, seconds float64
		for _, w := range work {
			joules, seconds = joules+w.Watts*w.Seconds, seconds+w.Seconds
		}
		for _, s := range []Setting{{}, {Cap: c.PowerLimit}, {Clock: 1980}, {Cap: c.PowerLimit, Clock: 1980}} {
			h, err := c.AtSetting(work, s)
			if err != nil {
				t.Fatal(err)
			}
			if near := 1e-9; math.Abs(h.Joules/joules-1) > near || math.Abs(h.Seconds/seconds-1) > near || math.Abs(h.JoulesInterval[1]/h.JoulesInterval[0]-1) > near {
				t.Errorf("%+v: %+v, want %v J in %v s", s, h, joules, seconds)
			}
		}
	}
	if drawn := c.Drawn(); drawn < 685 || drawn > 700 {
		t.Errorf("at the cap of %v W %v W are drawn", c.PowerLimit, drawn)
	}
}

// TestAtLowerCaps: power, clock and speed fall with the cap, intervals contain their figures, and the power keeps the
// same margin to the cap as at the card's default.
func TestAtLowerCaps(t *testing.T) {
	c, prefill, decode := heldWork(t)
	for name, work := range map[string][]Work{"prefill": prefill, "decode": decode} {
		last, err := c.AtSetting(work, Setting{})
		if err != nil {
			t.Fatal(err)
		}
		first, wide := last, 0.0
		for watts := 690.0; watts >= 200; watts -= 10 {
			h, err := c.AtSetting(work, Setting{Cap: watts})
			if err != nil {
				t.Fatal(err)
			}
			if h.Watts > watts || h.Watts < 0.97*watts || h.Watts > last.Watts || h.Clock > last.Clock || h.Seconds < last.Seconds {
				t.Errorf("%s at %v W: %+v after %+v", name, watts, h, last)
			}
			for _, in := range []struct {
				v  float64
				of [2]float64
			}{{h.Joules, h.JoulesInterval}, {h.Seconds, h.SecondsInterval}} {
				if !(in.of[0] <= in.v && in.v <= in.of[1]) {
					t.Errorf("%s at %v W: %v is not within %v", name, watts, in.v, in.of)
				}
			}
			if in := h.JoulesInterval; h.Clock < 0.99*first.Clock && in[1]/in[0]-1 < 1e-3 {
				t.Errorf("%s at %v W: sure of %v J", name, watts, in)
			}
			wide = max(wide, h.JoulesInterval[1]-h.JoulesInterval[0])
			last = h
		}
		if wide <= 0 {
			t.Errorf("%s: the interval has no width below the measured settings", name)
		}
		if name == "decode" {
			// Reading weights does not wait for the multipliers until they take longer.
			h, err := c.AtSetting(work, Setting{Cap: 450})
			if err != nil || h.Seconds > first.Seconds*(1+1e-9) || h.Joules > 0.7*first.Joules {
				t.Errorf("decode at 450 W: %+v, %v; at the default %+v", h, err, first)
			}
		}
	}
}

// TestAtLockedClocks: a locked clock limits every product's clock.
func TestAtLockedClocks(t *testing.T) {
	c, prefill, decode := heldWork(t)
	both := append(prefill, decode...)
	for mhz := 1900.0; mhz > 500; mhz -= 100 {
		h, err := c.AtSetting(both, Setting{Clock: mhz})
		if err != nil || h.Clock > mhz+1e-6 {
			t.Errorf("%v MHz: %+v, %v", mhz, h, err)
		}
	}
	h, err := c.AtSetting(prefill, Setting{Clock: prefill[0].Clock / 2})
	if want := 2 * prefill[0].Seconds; err != nil || math.Abs(h.Seconds-want) > 1e-9 {
		t.Errorf("at half the clock %v s, want %v (%v)", h.Seconds, want, err)
	}
}

func TestSettingsAreRefused(t *testing.T) {
	c, prefill, _ := heldWork(t)
	for _, s := range []Setting{{Cap: c.PowerLimit + 1}, {Cap: -1}, {Clock: -1}, {Cap: math.NaN()}, {Cap: math.Inf(1)}, {Cap: 199}, {Clock: 344}, {Clock: 1981}, {Cap: 500, Clock: 5000}} {
		if h, err := c.AtSetting(prefill, s); err == nil {
			t.Errorf("%+v: %+v", s, h)
		}
	}
	if _, err := c.AtSetting(nil, Setting{}); err == nil {
		t.Error("no work was held")
	}
	unknown := small(t)
	if _, err := unknown.AtSetting(prefill, Setting{Cap: 400}); err == nil {
		t.Error("a calibration without a power limit predicts a cap")
	}
	if _, err := c.Work(Product{Type: arith.BF16, M: 1, N: 1, K: 1}, Prediction{}, 1); err == nil {
		t.Error("work of a prediction without time")
	}
}

// TestExtrapolates: only settings below the calibration's are extrapolated.
func TestExtrapolates(t *testing.T) {
	c, _, _ := heldWork(t)
	for s, want := range map[Setting]bool{{}: false, {Cap: 700}: false, {Clock: 1980}: false, {Cap: 690}: true, {Clock: 1900}: true, {Cap: 700, Clock: 1000}: true} {
		if c.Extrapolates(s) != want {
			t.Errorf("%+v: %v", s, !want)
		}
	}
	if lowest, highest := c.Reach(); lowest != (Setting{200, 345}) || highest != (Setting{700, 1980}) {
		t.Error(lowest, highest)
	}
}
