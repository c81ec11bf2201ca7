package power

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestSimGovernor(t *testing.T) {
	o := quiet()
	s := NewSim(o)
	g, err := Govern(s)
	if err != nil {
		t.Fatal(err)
	}
	if low, high, preset, err := g.PowerLimits(); low != 200 || high != 700 || preset != 700 || err != nil {
		t.Errorf("limits %v to %v, default %v, %v", low, high, preset, err)
	}
	load := s.Load("a", 600, 1e-3)
	if err := load.Start(1e6); err != nil {
		t.Fatal(err)
	}
	s.advance(s.now + time.Second)
	shows := func(what string, watts, clock float64, reasons Throttle) {
		t.Helper()
		s.advance(s.now + time.Second)
		near(t, what+": watts", s.power, watts, 1e-6)
		near(t, what+": clock", s.clock, clock, 1e-6)
		if s.reasons != reasons {
			t.Errorf("%s: throttle %v, want %v", what, s.reasons.Names(), reasons.Names())
		}
	}
	at := func(share float64) float64 { return 90 + 510*math.Pow(share, o.ClockExponent) }
	shows("free", 600, 2000, 0)
	set := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	set(g.SetPowerLimit(400))
	capped := 2000 * math.Pow(310./510, 1/o.ClockExponent)
	if s.clock > 1.001*capped {
		t.Errorf("the clock is still %v when the limit is set", s.clock)
	}
	shows("capped", 400, capped, SoftwarePowerCap)
	set(g.LockClock(1500))
	shows("locked", at(1500./2000), 1500, ApplicationClocks)
	set(g.LockClock(1900))
	shows("locked above the cap's", 400, capped, ApplicationClocks|SoftwarePowerCap)
	set(g.SetPowerLimit(700))
	shows("locked, the cap lifted", at(1900./2000), 1900, ApplicationClocks)
	set(g.UnlockClock())
	shows("free again", 600, 2000, 0)
	for _, v := range []float64{0, 199, 701, math.NaN(), math.Inf(1)} {
		if g.SetPowerLimit(v) == nil {
			t.Errorf("a limit of %v W is taken", v)
		}
	}
	for _, v := range []float64{0, 299, 2001, math.NaN()} {
		if g.LockClock(v) == nil {
			t.Errorf("a clock of %v MHz is taken", v)
		}
	}
	shows("after what was refused", 600, 2000, 0)
}

// TestSimLockHolds: a locked clock stays while power oscillates about the cap.
func TestSimLockHolds(t *testing.T) {
	o := quiet()
	o.Overshoot = 0.06
	s := NewSim(o)
	if err := errors.Join(s.SetPowerLimit(400), s.LockClock(1650)); err != nil {
		t.Fatal(err)
	}
	if err := s.Load("a", 600, 1e-3).Start(1e5); err != nil {
		t.Fatal(err)
	}
	held := false
	for range 100 {
		s.advance(s.now + 20*time.Millisecond)
		if held = held || s.clock < 1620; s.clock > 1650.01 {
			t.Fatalf("%v MHz", s.clock)
		}
	}
	if !held {
		t.Error("the cap never held it lower: this test tests nothing")
	}
}

func TestSimUnprivileged(t *testing.T) {
	o := quiet()
	o.Unprivileged, o.State = true, filepath.Join(t.TempDir(), "card")
	s := NewSim(o)
	if g, err := Govern(s); g != nil || !errors.Is(err, ErrNotPermitted) || !strings.Contains(err.Error(), "root") {
		t.Errorf("%v, %v", g, err)
	}
	for _, err := range []error{s.SetPowerLimit(500), s.LockClock(1000), s.UnlockClock()} {
		if !errors.Is(err, ErrNotPermitted) {
			t.Error(err)
		}
	}
	if _, err := os.Stat(o.State); !os.IsNotExist(err) {
		t.Error("something was written")
	}
}

// plain is a card without a governor; wrapped hides a card.
type plain struct{ Card }
type wrapped struct{ plain }

func (w wrapped) Unwrap() Card { return w.Card }

func TestGovern(t *testing.T) {
	s := NewSim(quiet())
	if g, err := Govern(plain{s}); g != nil || !errors.Is(err, ErrAbsent) {
		t.Errorf("%v, %v", g, err)
	}
	if g, err := Govern(wrapped{plain{wrapped{plain{s}}}}); g != Governor(s) || err != nil {
		t.Errorf("%v, %v", g, err)
	}
	if g, err := Govern(wrapped{plain{plain{s}}}); g != nil || !errors.Is(err, ErrAbsent) {
		t.Errorf("%v, %v", g, err)
	}
}

// TestSimState: all processes see the last settings, and the card runs at them.
func TestSimState(t *testing.T) {
	o := quiet()
	folder := t.TempDir()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		o.State = filepath.Join(folder, string(rune('a'+n%26))+time.Duration(n).String())
		cards := []*Sim{NewSim(o), NewSim(o)}
		want := simSettings{Limit: o.Cap}
		for range rapid.IntRange(0, 12).Draw(t, "changes") {
			who := rapid.IntRange(0, len(cards)-1).Draw(t, "who")
			s, next := cards[who], want
			var err error
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				next.Limit = rapid.Float64Range(150, 750).Draw(t, "watts")
				err = s.SetPowerLimit(next.Limit)
			case 1:
				next.Locked = rapid.Float64Range(300, 2000).Draw(t, "MHz")
				err = s.LockClock(next.Locked)
			case 2:
				next.Locked = 0
				err = s.UnlockClock()
			case 3: // its process is killed, and another begins
				if cards[who], err = OpenSim(o); *cards[who].Info().PowerLimit != want.Limit {
					t.Fatalf("%v W after opening", *cards[who].Info().PowerLimit)
				}
			}
			if (err == nil) != (s.settable(next) == nil) {
				t.Fatalf("%+v: %v", next, err)
			}
			if err == nil {
				want = next
			}
			if next := NewSim(o); next.settings != want {
				t.Fatalf("%+v are kept, want %+v", next.settings, want)
			}
		}
		for _, s := range cards {
			if w, err := s.PowerLimit(); w != want.Limit || err != nil || s.settings != want {
				t.Fatalf("%+v are seen, %v, want %+v", s.settings, err, want)
			}
		}
	})
}

func TestSimStateBroken(t *testing.T) {
	o := quiet()
	for name, text := range map[string]string{
		"no JSON": "x", "cut off": `{"power_limit_watts":5`, "empty": "", "limit": `{"power_limit_watts":70}`,
		"clock": `{"power_limit_watts":600,"locked_clock_mhz":-1}`,
	} {
		o.State = filepath.Join(t.TempDir(), "card")
		if err := os.WriteFile(o.State, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenSim(o); err == nil || !strings.Contains(err.Error(), o.State) || !strings.Contains(err.Error(), "delete") {
			t.Errorf("%s: %v", name, err)
		}
	}
	o.State = t.TempDir() // a folder
	if _, err := OpenSim(o); err == nil {
		t.Error("a folder is read")
	}
	o.State = filepath.Join(t.TempDir(), "none", "card")
	s, err := OpenSim(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SetPowerLimit(500); err == nil || s.settings.Limit != 700 {
		t.Errorf("limit %v though it cannot be kept, %v", s.settings.Limit, err)
	}
}
