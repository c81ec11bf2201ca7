package component

import (
	"fmt"
	"math"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/arith"
)

// recorded returns a model fitted to readings of H200s from the cost model's calibration: products on several cards,
// without the memory's power. It takes one of every points of a series. Points of one shape are one kernel.
func recorded(t *testing.T, every int) *Model {
	t.Helper()
	c, err := cost.FindCalibration("h200")
	if err != nil {
		t.Fatal(err)
	}
	m := &Model{Card: c.Card, PowerLimit: c.PowerLimit, FullClock: 1980, Facts: *card}
	for i := range c.Series {
		s := &c.Series[i]
		if s.Type == arith.FP16CUDA {
			continue // only one shape
		}
		b := &s.Baseline
		add := func(energy, time, clock float64, features *cost.Features, both bool) {
			g := Gemm{Type: s.Type, M: s.M, N: s.N, K: s.K, Cold: s.Cold}
			g.Bits, g.Moved = c.TogglingOf(s.Type, features, b.Features)
			if _, random := card.Random(s.Type); !both && !s.Cold {
				g.Moved = (g.Moved + random) / 2
			}
			k, err := g.Kernel(fmt.Sprintf("%s %dx%dx%d", s.Type, s.M, s.N, s.K), card)
			if err != nil {
				t.Fatal(err)
			}
			r := Reading{Kernel: k, Watts: b.Watts * energy / time}
			r.Seconds, r.Clock = b.Seconds*time, b.Clock*clock
			capped := truth(r.Clock < 1970)
			r.Capped = &capped
			m.Readings = append(m.Readings, r)
		}
		add(1, 1, 1, b.Features, false)
		for p := 0; p < len(s.Points); p += every {
			o := &s.Points[p]
			add(o.Energy, o.Time, o.Clock, o.Features, s.Change == "both")
		}
	}
	if err := m.Fit(); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestRecorded: the form of the model holds for shapes that a fit did not use. Unlike a calibration's kernels, these
// shapes determine neither static power nor the awake part, except 1024³ with 5 µs.
func TestRecorded(t *testing.T) {
	m := recorded(t, 4)
	for _, c := range m.Coefficients {
		t.Logf("%-28s %10.3g ± %.2g %s", c.Name, c.Value, c.Error, c.Unit)
	}
	t.Logf("%.1f %% off on average, %.1f %% at worst (%s), drawn %.1f W, limits %v", 100*m.Quality.Mean, 100*m.Quality.Worst, m.Quality.WorstKernel, m.Drawn, m.Limits)
	d := m.design(card.Clock.Exponent.Usual)
	for _, name := range m.fitted() {
		v := d.solve(d.y, func(row string) bool { return row == name })
		n, sum, worst := 0.0, 0.0, 0.0
		for j := range m.Readings {
			if r := &m.Readings[j]; r.Name == name {
				e := math.Abs(m.watts([]Kernel{r.Kernel}, v, everyTerm)/r.Watts - 1)
				n, sum, worst = n+1, sum+e, max(worst, e)
			}
		}
		if t.Logf("%-22s %3.0f points, left out: off by %4.1f %%, at worst %4.1f %%", name, n, 100*sum/n, 100*worst); sum/n > 0.06 {
			t.Errorf("%s is off by %.1f %%", name, 100*sum/n)
		}
	}
	if m.Quality.Mean > 0.03 {
		t.Errorf("predictions of left-out shapes are off by %.1f %%", 100*m.Quality.Mean)
	}
	value := map[string]float64{}
	for _, c := range m.Coefficients {
		value[c.Name] = c.Value
	}
	bf16, fp8 := value[opsPrefix+"bf16"+bitsPostfix], value[opsPrefix+"fp8"+bitsPostfix]
	if !(fp8 < bf16) || m.Drawn < 680 || m.Drawn > 700 || m.Limits[arith.BF16] < 7e14 || m.Limits[arith.BF16] > 8e14 {
		t.Errorf("bits of an operation %.3g J in BF16 and %.3g in FP8; drawn %v W, limits %v", bf16, fp8, m.Drawn, m.Limits)
	}
}

// TestRecordedClock: a card chooses the clock that the model predicts, for a shape within the fit.
func TestRecordedClock(t *testing.T) {
	m := recorded(t, 8)
	for _, r := range m.Readings {
		if r.Type != arith.BF16 || r.Memory == 0 || r.Ops < 1e11 || r.Clock > 0.9*m.FullClock {
			continue
		}
		if have := m.Clock([]Kernel{r.Kernel}); math.Abs(have/r.Clock-1) > 0.08 {
			t.Errorf("%s, bits %.2f: %.0f MHz, measured %.0f", r.Name, r.Bits, have, r.Clock)
		}
	}
}

// TestRecordedLimits: the built-in limits of operations agree with those of other cards, and are at least the fit's
// own rates.
func TestRecordedLimits(t *testing.T) {
	m, err := Find("h200")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range m.Readings {
		if l := m.Limits[r.Type]; l > 0 && r.Ops/r.Seconds > l*(1+1e-9) && !r.HeldOut {
			t.Errorf("%s ran at %.4g operations a second, beyond a limit of %.4g", r.Name, r.Ops/r.Seconds, l)
		}
	}
	seen := map[arith.Type]float64{}
	for _, r := range recorded(t, 1).Readings {
		seen[r.Type] = max(seen[r.Type], r.Ops/r.Seconds)
	}
	for typ, l := range m.Limits {
		seen := seen[typ]
		if t.Logf("%s: %.0f T, seen in others %.0f T", typ, l/1e12, seen/1e12); l > 0 && math.Abs(l/seen-1) > 0.05 {
			t.Errorf("the limit in %s is %.0f T operations a second, on other cards %.0f T", typ, l/1e12, seen/1e12)
		}
	}
}
