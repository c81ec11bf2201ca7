package power

import (
	"math"
	"strings"
	"testing"
	"time"
)

// paced compares, at a duty, loads of watts before and after, whose executions last 5 ms and 5·time ms.
func paced(t *testing.T, o SimOptions, duty, before, after, time float64) (*Result, *Sim, Loads) {
	t.Helper()
	s := NewSim(o)
	loads := Loads{
		Baseline: s.Load("before", before, 0.005), Null: s.Load("null", before, 0.005),
		Variants: []Load{s.Load("after", after, 0.005*time)},
	}
	m, err := NewMeter(s, Options{Clock: s, Duty: duty, Seed: o.Seed})
	if err != nil {
		t.Fatal(err)
	}
	r, err := m.Compare(t.Context(), loads)
	if err != nil {
		t.Fatal(err)
	}
	return r, s, loads
}

// Below the cap an execution's energy is exactly its bursts' energy, although the card draws idle power in the gaps and steady
// work would be capped. All loads have the same time for an execution and its gaps.
func TestGapsAreTakenOut(t *testing.T) {
	const watts, after, quicker, duty = 900, 880, 0.97, 0.4
	r, _, _ := paced(t, quiet(), duty, watts, after, quicker)
	b, v := r.Baseline, r.Variants[0]
	near(t, "joules", b.Joules, watts*0.005, 0.001)
	near(t, "seconds", b.Seconds, 0.005, 1e-4)
	near(t, "joules after", v.Joules, after*0.005*quicker, 0.001)
	near(t, "energy", v.RelativeEnergy, quicker*after/watts, 0.001)
	near(t, "time", v.RelativeTime, quicker, 1e-4)
	near(t, "duty", b.Duty, duty, 0.005)
	near(t, "duty after", v.Duty, duty*quicker, 0.005)
	near(t, "idle", r.Pacing.IdleWatts, 90, 1e-3)
	near(t, "energy of the gaps", b.IdleJoules, 90*0.005*(1/duty-1), 0.01)
	near(t, "mean power", b.Watts, 90+(watts-90)*duty, 0.005)
	near(t, "burst", r.Pacing.Burst, 0.001, 1e-3)
	near(t, "gap", r.Pacing.Gap, 0.0015, 0.01)
	near(t, "effective clock", *b.EffectiveClock, 2000, 1e-3)
	if *b.Capped || *v.Capped || *b.SMClock != 2000 {
		t.Errorf("before %+v, after %+v", b, v)
	}
	w := r.Blocks[0].Windows[0]
	if w.Duty == 0 || w.IdleJoules == 0 || w.EffectiveClock == nil {
		t.Errorf("a window does not say how it was paced: %+v", w)
	}
	joules, idle := b.Joules, b.IdleJoules
	r.Per(5)
	near(t, "joules of a part", r.Baseline.Joules, joules/5, 1e-9)
	near(t, "gaps of a part", r.Baseline.IdleJoules, idle/5, 1e-9)
	near(t, "gaps of a part, in windows", r.Blocks[0].Windows[0].IdleJoules, w.IdleJoules/5, 1e-9)
}

// With noise, a difference planted below the cap lies within the interval, and bursts at the cap are slower.
func TestDutyFindsAPlantedDifference(t *testing.T) {
	o := DefaultSim()
	o.Leakage, o.Seed = 0, 3
	const ratio = 0.97 * 880 / 900.
	r, _, _ := paced(t, o, 0.4, 900, 880, 0.97)
	v := r.Variants[0]
	if !r.Valid || !contains(v.Interval, ratio) || !contains(v.TimeInterval, 0.97) || halfWidth(v.Interval) > 0.005 {
		t.Errorf("valid %v %v, energy %v, time %v, planted %.4f and 0.97", r.Valid, r.Invalid, v.Interval, v.TimeInterval, ratio)
	}
	high, _, _ := paced(t, o, 0.9, 900, 880, 0.97)
	if !*high.Baseline.Capped || high.Baseline.Seconds < 1.02*r.Baseline.Seconds {
		t.Errorf("at a duty of 0.9: capped %v, %v s instead of %v s", *high.Baseline.Capped, high.Baseline.Seconds, r.Baseline.Seconds)
	}
}

// Below the cap, work that would exceed the card's limit for moments is slower, as much as the limit asks. NVML's clock does not
// show it, the multiprocessors' cycles do.
func TestBurstCap(t *testing.T) {
	o := quiet()
	const cap, before, after = 800, 1100, 900
	o.BurstCap = cap
	r, _, _ := paced(t, o, 0.3, before, after, 1)
	b, v := r.Baseline, r.Variants[0]
	share := func(watts float64) float64 { return math.Pow((cap-o.Idle)/(watts-o.Idle), 1/o.ClockExponent) }
	near(t, "reported", *b.SMClock, 2000, 1e-3)
	near(t, "effective", *b.EffectiveClock, 2000*share(before), 1e-3)
	near(t, "effective after", *v.EffectiveClock, 2000*share(after), 1e-3)
	near(t, "time", v.RelativeTime, share(before)/share(after), 1e-3)
	near(t, "energy", v.RelativeEnergy, share(before)/share(after), 2e-3) // at the same power
	near(t, "joules", b.Joules, cap*0.005/share(before), 2e-3)
}

// The largest duty below the cap keeps the mean power below it, and the next one does not.
func TestAutoDuty(t *testing.T) {
	for watts, want := range map[float64]float64{
		900: math.Floor((700-90.)/(900-90)*32) / 32,
		600: 1,
	} {
		r, _, _ := paced(t, quiet(), AutoDuty, watts, watts, 1)
		if p := r.Pacing; !p.Auto || p.Duty != want || *r.Baseline.Capped {
			t.Errorf("%v W: %+v, capped %v, want a duty of %v", watts, p, *r.Baseline.Capped, want)
		}
	}
	o := quiet()
	o.Cap, o.CapMin = 92, 0
	s := NewSim(o)
	m, err := NewMeter(s, Options{Clock: s, Duty: AutoDuty})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Compare(t.Context(), Loads{Baseline: s.Load("a", 900, 0.005), Null: s.Load("b", 900, 0.005)}); err == nil || !strings.Contains(err.Error(), "at its power cap even at the smallest duty, 0.03125") {
		t.Error(err)
	}
}

// A duty of 1 leaves no gaps: energy and time equal an unpaced run's, and NVML's clock is not the only one.
func TestDutyOfOne(t *testing.T) {
	steady, _, _ := paced(t, quiet(), 0, 600, 590, 1)
	r, s, loads := paced(t, quiet(), 1, 600, 590, 1)
	near(t, "joules", r.Baseline.Joules, steady.Baseline.Joules, 1e-4)
	near(t, "seconds", r.Baseline.Seconds, steady.Baseline.Seconds, 1e-4)
	near(t, "energy", r.Variants[0].RelativeEnergy, 590./600, 1e-4)
	if r.Baseline.IdleJoules != 0 || r.Pacing.IdleWatts != 0 || r.Baseline.EffectiveClock == nil || steady.Baseline.EffectiveClock != nil || steady.Pacing != nil {
		t.Errorf("%+v, %+v", r.Pacing, r.Baseline)
	}
	// After the comparison the loads run without bursts.
	load := loads.Baseline.(*SimLoad)
	if err := load.Start(4); err != nil {
		t.Fatal(err)
	}
	if len(s.queue) != 1 {
		t.Errorf("%d pieces of work for a run that is not paced", len(s.queue))
	}
}

// unpaced is a load that cannot pause.
type unpaced struct{ Load }

func TestDutyNeedsPacedLoads(t *testing.T) {
	s := NewSim(quiet())
	m, err := NewMeter(s, Options{Clock: s, Duty: 0.5})
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.Compare(t.Context(), Loads{Baseline: s.Load("a", 500, 0.005), Null: unpaced{s.Load("b", 500, 0.005)}})
	if err == nil || !strings.Contains(err.Error(), `load "b" cannot run in bursts`) {
		t.Error(err)
	}
	for _, duty := range []float64{-0.5, 1.5, math.NaN()} {
		if err := (Options{Duty: duty}).Validate(); err == nil {
			t.Errorf("duty %v is accepted", duty)
		}
	}
	if _, err := s.Load("a", 500, 0.005).Bursts(); err == nil {
		t.Error("a load that never ran has bursts")
	}
	load := s.Load("c", 500, 0.005)
	if err := load.Pace(t.Context(), 20*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if err := load.Start(3); err != nil {
		t.Fatal(err)
	}
	if _, err := load.Bursts(); err == nil {
		t.Error("bursts before they have run")
	}
}
