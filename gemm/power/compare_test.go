package power

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// compare runs baseline, null and one variant of these powers, with executions of one millisecond.
func compare(t *testing.T, o SimOptions, opt Options, before, after float64) *Result {
	t.Helper()
	s := NewSim(o)
	opt.Clock, opt.Self = s, os.Getpid()
	m, err := NewMeter(s, opt)
	if err != nil {
		t.Fatal(err)
	}
	r, err := m.Compare(t.Context(), Loads{
		Baseline: s.Load("before", before, 0.001), Null: s.Load("null", before, 0.001),
		Variants: []Load{s.Load("after", after, 0.001)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// planted returns the true ratio at the run's mean temperature: leakage adds to both loads.
func planted(o SimOptions, r *Result, before, after float64) float64 {
	leak := o.Leakage * (*r.Baseline.Temperature + 0.5 - o.ReferenceC) // the sensor rounds down
	return (after + leak) / (before + leak)
}

func contains(interval []float64, v float64) bool { return interval[0] <= v && v <= interval[1] }

// TestCoverage: a true effect of 1 % is found, one of 0 % is not, intervals contain the truth as often as they
// claim, and comparisons stop at the precision.
func TestCoverage(t *testing.T) {
	if testing.Short() {
		t.Skip("300 runs")
	}
	const seeds = 300
	for _, plant := range []float64{1.01, 1} {
		t.Run(fmt.Sprint(plant), func(t *testing.T) {
			t.Parallel()
			holds, excludes, nullOff, reached := 0, 0, 0, 0
			var blocks, took, half mean
			for seed := range uint64(seeds) {
				o := DefaultSim()
				o.Seed = seed
				r := compare(t, o, Options{Seed: seed}, 500, 500*plant)
				v := r.Variants[0].Interval
				holds += count(contains(v, planted(o, r, 500, 500*plant)))
				excludes += count(!contains(v, 1))
				nullOff += count(!contains(r.Null.Interval, 1))
				reached += count(r.Stopped == "precision")
				blocks.add(float64(len(r.Blocks)), nil)
				took.add(r.Seconds, nil)
				half.add(r.widest(), nil)
				if r.Valid != contains(r.Null.Interval, 1) {
					t.Errorf("seed %d: valid is %v with a null of %v", seed, r.Valid, r.Null.Interval)
				}
			}
			t.Logf("mean of %.1f blocks, %.1f s, half width %.5f", *blocks.value(), *took.value(), *half.value())
			t.Logf("of %d: truth inside %d, 1 outside %d, null off %d, ±0.3 %% reached %d", seeds, holds, excludes, nullOff, reached)
			if holds < seeds*92/100 {
				t.Errorf("the truth lies in %d of %d intervals, want 95 %%", holds, seeds)
			}
			if plant == 1 && excludes > seeds*7/100 {
				t.Errorf("a difference is found in %d of %d runs where there is none", excludes, seeds)
			}
			if plant != 1 && excludes < seeds*95/100 {
				t.Errorf("the planted difference is found in %d of %d runs only", excludes, seeds)
			}
			if nullOff > seeds*7/100 {
				t.Errorf("%d of %d null comparisons exclude 1", nullOff, seeds)
			}
			if reached < seeds*85/100 {
				t.Errorf("±0.3 %% within 60 s in %d of %d runs only", reached, seeds)
			}
		})
	}
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// TestDriftDoesNotBias: the air warms by 20 °C during the measurement, which adds 26 W of leakage.
func TestDriftDoesNotBias(t *testing.T) {
	if testing.Short() {
		t.Skip("200 runs")
	}
	t.Parallel()
	var bias mean
	holds := 0
	const seeds = 200
	for seed := range uint64(seeds) {
		o := DefaultSim()
		o.Seed, o.AmbientRise = seed, 20.0/60
		r := compare(t, o, Options{Seed: seed, WarmUp: 10 * time.Second}, 500, 505)
		truth := planted(o, r, 500, 505)
		bias.add(r.Variants[0].RelativeEnergy-truth, nil)
		holds += count(contains(r.Variants[0].Interval, truth))
		first, last := r.Blocks[0].Windows[0], r.Blocks[len(r.Blocks)-1].Windows[0]
		if rise := *last.Temperature - *first.Temperature; rise < 10 {
			t.Fatalf("the card warmed by %v °C only: this test tests nothing", rise)
		}
	}
	t.Logf("mean error %.5f, truth inside %d of %d", *bias.value(), holds, seeds)
	if math.Abs(*bias.value()) > 0.0004 {
		t.Errorf("mean error %v over %d runs, want none", *bias.value(), seeds)
	}
	if holds < seeds*91/100 {
		t.Errorf("the truth lies in %d of %d intervals, want 95 %%", holds, seeds)
	}
}

// TestCoverageAtTheCap: at the cap, too, intervals contain the truth as often as they claim, without bias.
func TestCoverageAtTheCap(t *testing.T) {
	if testing.Short() {
		t.Skip("300 runs")
	}
	t.Parallel()
	const seeds = 300
	holds := 0
	var bias mean
	for seed := range uint64(seeds) {
		o := DefaultSim()
		o.Leakage, o.Seed = 0, seed
		v := compare(t, o, Options{Seed: seed}, 900, 860).Variants[0]
		truth := math.Pow((860-o.Idle)/(900-o.Idle), 1/o.ClockExponent)
		holds += count(contains(v.Interval, truth))
		bias.add(v.RelativeEnergy-truth, nil)
	}
	t.Logf("truth inside %d of %d, mean error %.5f", holds, seeds, *bias.value())
	if holds < seeds*92/100 || math.Abs(*bias.value()) > 0.0002 {
		t.Errorf("the truth lies in %d of %d intervals, mean error %v", holds, seeds, *bias.value())
	}
}

// TestCap compares two loads above the cap: power is equal, and time and energy follow the clock.
func TestCap(t *testing.T) {
	o := DefaultSim()
	o.Leakage = 0
	r := compare(t, o, Options{}, 900, 860)
	v := r.Variants[0]
	want := math.Pow((860-o.Idle)/(900-o.Idle), 1/o.ClockExponent)
	near(t, "time", v.RelativeTime, want, 0.003)
	near(t, "watts", v.Watts, o.Cap, 0.005)
	if !*v.Capped || !*r.Baseline.Capped || !slices.Contains(v.Throttle, "software_power_cap") {
		t.Errorf("capped %v and %v, throttle %v", *r.Baseline.Capped, *v.Capped, v.Throttle)
	}
	share := math.Pow((o.Cap-o.Idle)/(860-o.Idle), 1/o.ClockExponent)
	near(t, "clock", *v.SMClock, share*o.MaxClock, 0.01)
	near(t, "EDP", v.EDP, want*want, 0.01)
	if free := compare(t, o, Options{}, 500, 505); *free.Variants[0].Capped {
		t.Error("505 W count as capped at 700")
	}
}

// TestAverageSensorWouldMislead: half a second into a load, the 1 s average still shows the load before.
func TestAverageSensorWouldMislead(t *testing.T) {
	s := NewSim(quiet())
	m, err := NewMeter(s, Options{Clock: s})
	if err != nil {
		t.Fatal(err)
	}
	a, b := s.Load("a", 600, 0.001), s.Load("b", 500, 0.001)
	if _, err := m.burst(t.Context(), a, 3000); err != nil {
		t.Fatal(err)
	}
	if _, err := m.burst(t.Context(), b, 500); err != nil {
		t.Fatal(err)
	}
	naive, _ := s.Power(Average, GPU)
	if naive < 540 || naive > 560 {
		t.Errorf("the average sensor says %v W half a second after 600 W became 500", naive)
	}
	w, err := m.window(t.Context(), b, 0.001)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "window", w.Watts, 500, 0.0005)
	near(t, "joules", w.PerExecution, 0.5, 0.0005)
}

// TestOutliersAreDropped simulates many dips of the clock.
func TestOutliersAreDropped(t *testing.T) {
	o := DefaultSim()
	o.DipRate = 0.04
	r := compare(t, o, Options{Precision: 1e-6, Time: 200 * time.Second}, 500, 505)
	if r.Dropped == 0 || r.Variants[0].Dropped == 0 {
		t.Fatal("nothing was dropped")
	}
	v := r.Variants[0]
	if v.Blocks+v.Dropped != len(r.Blocks) {
		t.Errorf("%d blocks used and %d dropped of %d", v.Blocks, v.Dropped, len(r.Blocks))
	}
	if truth := planted(o, r, 500, 505); !contains(v.Interval, truth) {
		t.Errorf("%v does not hold %v", v.Interval, truth)
	}
	near(t, "time", v.RelativeTime, 1, 0.002)
}

// TestShortTime gets a narrow null out of 20 s, at the cap and below it.
func TestShortTime(t *testing.T) {
	for _, watts := range []float64{500, 900} {
		s := NewSim(DefaultSim())
		m, err := NewMeter(s, Options{Clock: s, Self: os.Getpid(), Time: 20 * time.Second, Precision: 0.001})
		if err != nil {
			t.Fatal(err)
		}
		r, err := m.Compare(t.Context(), Loads{Baseline: s.Load("a", watts, 0.001), Null: s.Load("n", watts, 0.001)})
		if err != nil {
			t.Fatal(err)
		}
		if r.Seconds > 20 || len(r.Blocks) < 3 || halfWidth(r.Null.Interval) > 0.005 {
			t.Errorf("%v W: %d blocks in %v s, null %v", watts, len(r.Blocks), r.Seconds, r.Null.Interval)
		}
	}
}

// TestLateReadings: a stalled reading of the counter sees its step late. Used as the end of a window, it would be
// wrong by several per cent.
func TestLateReadings(t *testing.T) {
	o := quiet()
	o.Query, o.Stall, o.StallEvery = 3*time.Millisecond, 25*time.Millisecond, 30
	r := compare(t, o, Options{Precision: 1e-6}, 500, 500)
	for _, b := range r.Blocks {
		for _, w := range b.Windows {
			near(t, "watts", w.Watts, 500, 0.005)
		}
	}
}

// TestSwingAtTheCap: after a load of lower power, the power control overshoots and oscillates. A meter that waits
// for it has a null interval several times narrower than one that does not.
func TestSwingAtTheCap(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and nothing in it is shared by goroutines")
	}
	null := func(capSettle time.Duration) float64 {
		var width mean
		for seed := range uint64(20) {
			o := quiet()
			o.Overshoot, o.Seed = DefaultSim().Overshoot, seed
			r := compare(t, o, Options{Seed: seed, CapSettle: capSettle, Precision: 1e-6, Time: 80 * time.Second}, 900, 500)
			width.add(r.Resolvable, nil)
		}
		return *width.value()
	}
	hasty, patient := null(time.Millisecond), null(0)
	t.Logf("half width of the null: %.4f, %.4f without waiting", patient, hasty)
	if patient > hasty/3 {
		t.Errorf("waiting narrows the null from %v to %v only", hasty, patient)
	}
}

// hasty takes 1.6 ms per execution at its first start and 1 ms later. Of many executions it runs only a share.
type hasty struct {
	*SimLoad
	share int
}

func (l *hasty) Start(n int) error {
	l.kernel.Seconds = 0.001
	if l.runs == nil {
		l.kernel.Seconds = 0.0016
	}
	if n > 500 {
		n /= l.share
	}
	return l.SimLoad.Start(n)
}

// TestWorkOutlastsTheWindow: a window whose work ended early is repeated.
func TestWorkOutlastsTheWindow(t *testing.T) {
	s := NewSim(quiet())
	m, err := NewMeter(s, Options{Clock: s, CapSettle: 150 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	w, err := m.window(t.Context(), &hasty{s.Load("once", 500, 1), 1}, 0.001)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "watts", w.Watts, 500, 0.0005)
	near(t, "seconds", w.Seconds, 0.001, 0.0005)
	if _, err := m.window(t.Context(), &hasty{s.Load("always", 500, 1), 9}, 0.001); err == nil || !strings.Contains(err.Error(), `"always" ended before its window`) {
		t.Errorf("error %v", err)
	}
}

// TestLongExecutions: a window has at least ten executions, and there is a warning.
func TestLongExecutions(t *testing.T) {
	s := NewSim(quiet())
	m, err := NewMeter(s, Options{Clock: s})
	if err != nil {
		t.Fatal(err)
	}
	r, err := m.Compare(t.Context(), Loads{Baseline: s.Load("a", 500, 0.2), Null: s.Load("n", 500, 0.2)})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range r.Blocks[0].Windows {
		if w.Length < 1.9 {
			t.Errorf("a window of %v s for executions of 0.2 s", w.Length)
		}
	}
	if !slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, `one execution of "a" takes 200ms`) }) {
		t.Errorf("warnings %v", r.Warnings)
	}
}

// TestNothingMeasured: a result without a block is invalid.
func TestNothingMeasured(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := NewSim(quiet())
	m, err := NewMeter(s, Options{Clock: s, Progress: func(e Event) {
		if e.Stage == stageMeasure {
			cancel()
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := m.Compare(ctx, Loads{Baseline: s.Load("a", 500, 0.001), Null: s.Load("n", 500, 0.001)})
	if !errors.Is(err, context.Canceled) || r.Valid || !strings.Contains(strings.Join(r.Invalid, ""), "no block was completed") {
		t.Errorf("%v, valid %v: %v", err, r.Valid, r.Invalid)
	}
}

// TestHeldDown: a clock that was limited from outside is a warning.
func TestHeldDown(t *testing.T) {
	r := Result{Null: Comparison{Interval: []float64{0.99, 1.01}}, Blocks: []Block{{Windows: []Window{{Throttle: HardwarePowerBrake.Names()}}}}}
	r.validate()
	if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "hardware_power_brake") {
		t.Errorf("warnings %v", r.Warnings)
	}
}

// TestDroppedVariants: a variant without blocks makes a result invalid only if its blocks were dropped.
func TestDroppedVariants(t *testing.T) {
	for dropped, valid := range map[int]bool{0: true, 1: false} {
		r := Result{Null: Comparison{Interval: []float64{0.99, 1.01}}, Variants: []Comparison{{Dropped: dropped}}}
		if r.validate(); (len(r.Invalid) == 0) != valid {
			t.Errorf("%d dropped: %q", dropped, r.Invalid)
		}
	}
}

func TestTimeIsKept(t *testing.T) {
	r := compare(t, DefaultSim(), Options{Precision: 1e-6, Time: 90 * time.Second}, 500, 505)
	if r.Stopped != "time" || r.Seconds > 90 || r.Seconds < 75 {
		t.Errorf("stopped by %q after %v s", r.Stopped, r.Seconds)
	}
}

// TestCancel cancels in every stage.
func TestCancel(t *testing.T) {
	for _, at := range []time.Duration{0, time.Second, 3 * time.Second, 6 * time.Second, 20 * time.Second, 37 * time.Second, 51 * time.Second} {
		s := NewSim(DefaultSim())
		ctx, cancel := context.WithCancel(t.Context())
		s.At(at, cancel)
		m, err := NewMeter(s, Options{Clock: s, Precision: 1e-6})
		if err != nil {
			t.Fatal(err)
		}
		r, err := m.Compare(ctx, Loads{Baseline: s.Load("a", 500, 0.001), Null: s.Load("n", 500, 0.001)})
		if !errors.Is(err, context.Canceled) || r == nil || r.Stopped != "cancelled" {
			t.Fatalf("cancelled at %v: %v", at, err)
		}
		if late := s.now - at; late > time.Second {
			t.Errorf("cancelled at %v: ended %v later", at, late)
		}
		if at > 30*time.Second && (r.Null.RelativeEnergy == 0 || len(r.Blocks) == 0 || r.SelfTest == nil) {
			t.Errorf("cancelled at %v: nothing is left of what was measured", at)
		}
		cancel()
	}
}

// broken fails after a number of starts.
type broken struct {
	*SimLoad
	left int
}

func (b *broken) Start(n int) error {
	if b.left--; b.left < 0 {
		return errors.New("out of memory")
	}
	return b.SimLoad.Start(n)
}

func TestLoadFails(t *testing.T) {
	s := NewSim(DefaultSim())
	m, err := NewMeter(s, Options{Clock: s})
	if err != nil {
		t.Fatal(err)
	}
	r, err := m.Compare(t.Context(), Loads{
		Baseline: s.Load("a", 500, 0.001), Null: s.Load("n", 500, 0.001),
		Variants: []Load{&broken{s.Load("b", 500, 0.001), 20}},
	})
	if err == nil || !strings.Contains(err.Error(), `load "b": start`) || !strings.Contains(err.Error(), "out of memory") {
		t.Fatalf("error %v", err)
	}
	if r.Stopped != "failed" || len(r.Blocks) == 0 {
		t.Errorf("stopped %q, %d blocks", r.Stopped, len(r.Blocks))
	}
}

func TestWarnings(t *testing.T) {
	other := DefaultSim()
	other.Other = 50
	const want = "another process uses the card (PID 4194304)"
	if r := compare(t, other, Options{}, 500, 505); !slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, want) }) {
		t.Errorf("warnings %q, want %q", r.Warnings, want)
	}
	if r := compare(t, DefaultSim(), Options{}, 500, 505); len(r.Warnings) > 0 {
		t.Errorf("warnings %q on a quiet card", r.Warnings)
	}
}

// TestNullTellsOnItself: a null load of another power than the baseline makes the run invalid.
func TestNullTellsOnItself(t *testing.T) {
	s := NewSim(DefaultSim())
	m, err := NewMeter(s, Options{Clock: s})
	if err != nil {
		t.Fatal(err)
	}
	r, err := m.Compare(t.Context(), Loads{Baseline: s.Load("a", 500, 0.001), Null: s.Load("n", 510, 0.001)})
	if err != nil {
		t.Fatal(err)
	}
	if r.Valid || len(r.Invalid) != 1 || !strings.Contains(r.Invalid[0], "does not contain 1") {
		t.Errorf("valid %v: %q", r.Valid, r.Invalid)
	}
}

func TestSameSeedSameResult(t *testing.T) {
	a := compare(t, DefaultSim(), Options{Seed: 3}, 500, 505)
	b := compare(t, DefaultSim(), Options{Seed: 3}, 500, 505)
	c := compare(t, DefaultSim(), Options{Seed: 4}, 500, 505)
	if !slices.Equal(a.Variants[0].Interval, b.Variants[0].Interval) {
		t.Error("the same seed gave two results")
	}
	order := func(r *Result) (names []string) {
		for _, w := range r.Blocks[0].Windows {
			names = append(names, w.Load)
		}
		return
	}
	if slices.Equal(order(a), order(c)) && slices.Equal(a.Variants[0].Interval, c.Variants[0].Interval) {
		t.Error("the seed changes nothing")
	}
	names := order(a)
	mirror := slices.Clone(names)
	slices.Reverse(mirror)
	if !slices.Equal(names, mirror) || len(names) != 6 {
		t.Errorf("block %v is no palindrome of three loads", names)
	}
}

func TestBadLoadsAndOptions(t *testing.T) {
	s := NewSim(DefaultSim())
	m, err := NewMeter(s, Options{Clock: s})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Compare(t.Context(), Loads{Baseline: s.Load("a", 1, 1)}); err == nil || !strings.Contains(err.Error(), "null load") {
		t.Errorf("without a null load: %v", err)
	}
	if _, err := m.Compare(t.Context(), Loads{Baseline: s.Load("a", 1, 1), Null: s.Load("a", 1, 1)}); err == nil || !strings.Contains(err.Error(), `"a"`) {
		t.Errorf("two of one name: %v", err)
	}
	_, err = NewMeter(s, Options{Precision: -1, Window: time.Millisecond, EDSk: 1})
	for _, want := range []string{"precision -1", "window 1ms", "k 1 "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not say %q", err, want)
		}
	}
}
