package profile

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/gemm/profile/stitch"
	"github.com/lowtoggle/lowtoggle/weights"
)

const planted = 450 // watts of weights that are all alike, on a simulated machine

// product multiplies by weights of zeros; if toggling is true, every fourth row has other bits.
func product(name string, toggling bool) cuda.Product {
	const side = 64
	x := gemm.Matrix{DType: weights.BF16, Rows: side, Cols: side, Data: make([]byte, 2*side*side)}
	w := x
	w.Data = make([]byte, 2*side*side)
	for i := range w.Data {
		if toggling && i/(2*side)%4 == 0 {
			w.Data[i] = 0x3f
		}
	}
	return cuda.Product{Name: name, Problem: gemm.Problem{M: side, N: side, K: side, Type: arith.BF16}, X: x, W: w}
}

// plain returns a card whose loads draw the planted power at any temperature.
func plain() power.SimOptions {
	o := still()
	o.Leakage = 0
	o.FirstExecutions = []float64{1.5, 1.2, 1.05}
	return o
}

var quick = Options{Length: 300 * time.Millisecond, Runs: 40, Step: 5 * time.Millisecond, Resamples: 20}

// fewer is for tests that need figures, but no precise ones.
var fewer = Options{Length: 300 * time.Millisecond, Runs: 20, Step: 5 * time.Millisecond, Resamples: 10}

// quicker is for tests that do not look at figures.
var quicker = Options{Length: 300 * time.Millisecond, Runs: 12, Step: 5 * time.Millisecond, Resamples: 2}

func measured(t *testing.T, m measure.Machine, o Options, products ...cuda.Product) *Result {
	t.Helper()
	r, err := Measure(context.Background(), m, products, nil, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

var measuredOnce = sync.OnceValues(func() (*Result, error) {
	return Measure(context.Background(), measure.Simulated(plain()), []cuda.Product{product("still", false)}, nil, quick)
})

// usual returns a measurement of a plain card, which several tests look at.
func usual(t *testing.T) *Result {
	t.Helper()
	r, err := measuredOnce()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// near checks that a value is within a share of the planted one.
func near(t *testing.T, what string, got, want, share float64) {
	t.Helper()
	if !(math.Abs(got-want) <= share*want) {
		t.Errorf("%s is %.5g, want %.5g within %.1f %%", what, got, want, 100*share)
	}
}

// TestFindsWhatWasPlanted: idle and steady power, the sensors' time constant, and the slow first executions.
func TestFindsWhatWasPlanted(t *testing.T) {
	o := plain()
	r := usual(t)
	p := r.Profiles[0]
	if p.Taken != 40 || p.Golden != 40 || r.Stopped != "runs" || len(p.Runs) != 40 {
		t.Errorf("%d of %d runs are golden, stopped by %s", p.Golden, p.Taken, r.Stopped)
	}
	if sse := p.Steady.SSE; !sse.Found || sse.Execution < 3 || sse.Execution > 4 { // the third takes 5 % longer
		t.Errorf("SSE %+v, planted: three slow executions", sse)
	}
	if !p.Steady.SSP.Found || !r.Steady() {
		t.Fatalf("SSP %+v", p.Steady.SSP)
	}
	near(t, "power at SSP", p.Steady.SSP.Watts, planted, 0.02)
	idle, _, _ := p.Trace.Mean(-100*ms, -20*ms)
	near(t, "idle power", idle, o.Idle, 0.05)
	for _, at := range []Seconds{20 * ms, 50 * ms, 200 * ms} {
		got, _, _ := p.Trace.Mean(at-p.Trace.Step/2, at+p.Trace.Step/2)
		near(t, "power at "+at.String(), got, planted, 0.05)
	}
	near(t, "the sensors' lag", p.Sensors[0].TimeConstant.Seconds(), o.Rise.Seconds(), 0.1)
	near(t, "the mean execution", p.Runs[0].Seconds, 3e-6, 0.01)
	for _, m := range p.Milestones {
		if m.Low > m.Watts || m.Watts > m.High || m.TooCoarse() != (m.Watts == 0) || m.Over < p.Trace.Step || math.Abs(m.Executions-m.At.Seconds()/3e-6) > 2+0.01*m.Executions {
			t.Errorf("milestone %+v", m)
		}
		if m.SMClock == nil || *m.SMClock != o.MaxClock {
			t.Errorf("clock %v at %s, planted %v", m.SMClock, m.Name, o.MaxClock)
		}
	}
	if len(p.Milestones) < 10 || p.Milestones[1].Name != "500 µs" {
		t.Errorf("milestones %+v", p.Milestones)
	}
	if p.Execution == nil || !strings.Contains(p.Execution.Why, "an execution takes 3 µs") {
		t.Errorf("inside %+v", p.Execution)
	}
	if s := r.Sync; s == nil || math.Abs(s.Drift-o.ClockDrift) > 1 || s.Launch.Abs() > 10*microsecond || s.Delay < Seconds(o.ClockDelay/2) {
		t.Errorf("clocks %+v, planted drift %v", s, o.ClockDrift)
	}
	if p.Readings != nil || len(r.Warnings) > 0 || r.SelfTest == nil {
		t.Errorf("%d readings, warnings %q, self-test %v", len(p.Readings), r.Warnings, r.SelfTest)
	}
}

// TestBandHoldsThePlanted: on a card whose sensors' filter must be found from the readings, the intervals hold the planted
// power from the start on.
func TestBandHoldsThePlanted(t *testing.T) {
	o := Options{Length: 100 * time.Millisecond, Runs: 16, Resamples: 30}
	held, all := 0, 0
	for seed := range uint64(10) {
		sim := plain()
		sim.Seed, sim.TickJitter, sim.PowerNoise = seed, time.Millisecond, 0.002
		p := measured(t, measure.Simulated(sim), o, product("still", false)).Profiles[0]
		for at := Seconds(0); at < 50*ms; at += p.Trace.Step {
			if _, low, high := p.Trace.Mean(at, at+p.Trace.Step); low <= planted && planted <= high {
				held++
			}
			all++
		}
	}
	if held < all*9/10 {
		t.Errorf("%d of %d intervals hold the planted power", held, all)
	}
}

// TestPhases: runs begin at all phases of sensors with periods of 20 and 100 ms, without gaps.
func TestPhases(t *testing.T) {
	r := usual(t)
	for _, period := range []float64{0.02, 0.1} {
		var phases []float64
		for _, run := range r.Profiles[0].Runs {
			phases = append(phases, math.Mod(run.Begin, period))
		}
		slices.Sort(phases)
		gap := phases[0] + period - phases[len(phases)-1]
		for i := range phases[1:] {
			gap = max(gap, phases[i+1]-phases[i])
		}
		if even := period / float64(len(phases)); gap > 3.5*even {
			t.Errorf("of %d runs none begins in %.2g of %.2g s", len(phases), gap, period)
		}
	}
}

// TestGoldenRuns: runs in which all executions take longer are dropped.
func TestGoldenRuns(t *testing.T) {
	o := plain()
	o.SlowSequences, o.SlowBy = 0.2, 0.08
	r := measured(t, measure.Simulated(o), quick, product("still", false))
	p, golden := r.Profiles[0], 0
	for i, run := range p.Runs {
		if run.Golden {
			golden++
		}
		if slow := run.Seconds > 1.05*3e-6; slow == run.Golden {
			t.Errorf("run %d takes %.3g s each; golden %v", i, run.Seconds, run.Golden)
		}
	}
	if golden != p.Golden || golden == 0 || golden == p.Taken {
		t.Errorf("%d of %d are golden, %d by the runs", p.Golden, p.Taken, golden)
	}
}

// TestUnsteadyPower: a card at its cap oscillates for seconds, and does not stay steady.
func TestUnsteadyPower(t *testing.T) {
	o := plain()
	o.Cap, o.Overshoot = 500, 0.1
	r := measured(t, measure.Simulated(o), fewer, product("toggling", true))
	if p := r.Profiles[0]; p.Steady.SSP.Lasts || !strings.Contains(p.Steady.SSP.Why, "power cap") || r.Steady() || p.Execution.Why == "" {
		t.Errorf("SSP %+v, inside %+v", p.Steady.SSP, p.Execution)
	}
}

// TestAfterAnother: the sensors' filter is not taken for an effect of one product on the next.
func TestAfterAnother(t *testing.T) {
	o := plain()
	light, heavy := product("light", false), product("heavy", true)
	r := measured(t, measure.Simulated(o), fewer, light, heavy)
	if len(r.Profiles) != 2 || len(r.Interleaved) != 2 {
		t.Fatalf("%d profiles, %d after another", len(r.Profiles), len(r.Interleaved))
	}
	alone := [2]float64{r.Profiles[0].Steady.SSP.Watts, r.Profiles[1].Steady.SSP.Watts}
	if alone[1] < alone[0]+30 {
		t.Fatalf("alone they draw %v W", alone)
	}
	for _, a := range r.Interleaved {
		near(t, "power after the other", a.Watts, alone[a.Product], 0.01)
		if a.Other == a.Product || a.Interval[0] > a.Ratio || a.Interval[1] < a.Ratio {
			t.Errorf("%+v", a)
		}
	}
	for i, p := range r.Profiles {
		if len(p.Segments) != 2 || p.Segments[0].Product != i || p.Segments[1].Begin != p.Segments[0].End {
			t.Errorf("segments %+v", p.Segments)
		}
		near(t, "the first segment's length", p.Segments[0].End.Seconds(), 0.3, 0.02)
		near(t, "the second segment's length", (p.Segments[1].End - p.Segments[1].Begin).Seconds(), 0.15, 0.02)
	}
}

// TestTime: Options.Time bounds the whole measurement, and the result shows that there are fewer runs than advised.
func TestTime(t *testing.T) {
	m := measure.Simulated(plain())
	o := quick
	o.Runs, o.Time = 0, 40*time.Second
	r := measured(t, m, o, product("still", false))
	p, took := r.Profiles[0], m.Clock().Now()
	if r.Stopped != "time" || p.Taken >= p.Advised || p.Taken < 10 || took > o.Time {
		t.Errorf("%d of %d runs, in all %v of %v, stopped by %s", p.Taken, p.Advised, took, o.Time, r.Stopped)
	}
}

// TestSameSeed: the same seed gives the same result, and another seed another.
func TestSameSeed(t *testing.T) {
	var texts [3][]byte
	for i, seed := range []uint64{1, 1, 2} {
		o := quicker
		o.Runs, o.Seed, o.Readings = 8, seed, true
		r := measured(t, measure.Simulated(plain()), o, product("still", false))
		r.Seed = 0
		var err error
		if texts[i], err = json.Marshal(r); err != nil {
			t.Fatal(err)
		}
		if len(r.Profiles[0].Readings) == 0 {
			t.Error("no readings, although they were asked for")
		}
	}
	if !bytes.Equal(texts[0], texts[1]) || bytes.Equal(texts[0], texts[2]) {
		t.Error("the same seed gives another result, or another seed the same")
	}
}

// TestCancelled: cancelled in the middle of a run, it ends there and keeps the runs before.
func TestCancelled(t *testing.T) {
	sim := plain()
	m := measure.Simulated(sim)
	card := m.Card().(*power.Sim)
	ctx, cancel := context.WithCancel(context.Background())
	var at time.Duration
	o := Options{Runs: 100}
	o.Progress = func(e Event) {
		if e.Stage == "runs" && e.Done == 5 {
			at = card.Now() + 1500*time.Millisecond
			card.At(at, cancel)
		}
	}
	r, err := Measure(ctx, m, []cuda.Product{product("still", false)}, nil, o)
	if !errors.Is(err, context.Canceled) || r == nil {
		t.Fatal(r, err)
	}
	if spent := card.Now() - at; spent > time.Second {
		t.Errorf("it ended %v after its context", spent)
	}
	if p := r.Profiles[0]; r.Stopped != "cancelled" || p.Taken != 5 {
		t.Errorf("stopped by %s with %d runs", r.Stopped, p.Taken)
	} else if p.Trace != nil && p.Steady.SSP.Found { // a slow machine may have no time for it
		near(t, "power at SSP", p.Steady.SSP.Watts, planted, 0.05)
	}
	if _, err := Measure(ctx, measure.Simulated(sim), []cuda.Product{product("still", false)}, nil, quick); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context at its end: %v", err)
	}
}

// TestCancelledLate: cancelled while the trace is made, it makes a coarser one if there is time.
func TestCancelledLate(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	o := quick
	o.Progress = func(e Event) {
		if e.Stage == "stitch" {
			cancel()
		}
	}
	r, err := Measure(ctx, measure.Simulated(plain()), []cuda.Product{product("still", false)}, nil, o)
	if !errors.Is(err, context.Canceled) || r == nil {
		t.Fatal(r, err)
	}
	if p := r.Profiles[0]; r.Stopped != "cancelled" || p.Taken != o.Runs {
		t.Errorf("stopped by %s with %d runs", r.Stopped, p.Taken)
	} else if p.Trace != nil && p.Steady.SSP.Found {
		near(t, "power at SSP", p.Steady.SSP.Watts, planted, 0.05)
	}
}

// other is a machine with something replaced.
type other struct {
	measure.Machine
	card    power.Card
	noClock error
}

func (o other) Card() power.Card {
	if o.card == nil {
		return o.Machine.Card()
	}
	return o.card
}

func (o other) ReadClock() (cuda.ClockReading, error) {
	if o.noClock != nil {
		return cuda.ClockReading{}, o.noClock
	}
	return o.Machine.ReadClock()
}

// TestSilentSensors: without the energy counter the trace comes from the others, with a warning; without any
// sensor there is none.
func TestSilentSensors(t *testing.T) {
	m := measure.Simulated(plain())
	r := measured(t, other{Machine: m, card: mute{Card: m.Card(), silent: map[string]bool{stitch.Counter: true}}}, fewer, product("still", false))
	near(t, "power at the end", r.Profiles[0].Milestones[len(r.Profiles[0].Milestones)-1].Watts, planted, 0.03)
	all := strings.Join(r.Warnings, "\n")
	if !strings.Contains(all, "the self-test of the sensors was skipped") || !strings.Contains(all, "no energy counter") {
		t.Errorf("warnings %q", r.Warnings)
	}
	m = measure.Simulated(plain())
	none := mute{Card: m.Card(), silent: map[string]bool{stitch.Counter: true, stitch.Instant: true, stitch.Average: true, stitch.Buffer: true}}
	o := quicker
	o.Runs = 3
	r, err := Measure(context.Background(), other{Machine: m, card: none}, []cuda.Product{product("still", false)}, nil, o)
	if !errors.Is(err, stitch.ErrTooFew) || r == nil || r.Profiles[0].Trace != nil || r.Steady() {
		t.Errorf("without sensors: %v", err)
	}
}

// TestNoClock: a card whose clock cannot be read is profiled by the host's clock, with a warning.
func TestNoClock(t *testing.T) {
	m := measure.Simulated(plain())
	r := measured(t, other{Machine: m, noClock: errBroken}, fewer, product("still", false))
	if r.Sync != nil || !strings.Contains(strings.Join(r.Warnings, "\n"), "the card's clock cannot be used (broken)") {
		t.Errorf("clocks %+v, warnings %q", r.Sync, r.Warnings)
	}
	near(t, "power at SSP", r.Profiles[0].Steady.SSP.Watts, planted, 0.02)
}

// TestOtherProcess: another process on the card gives a warning.
func TestOtherProcess(t *testing.T) {
	o := plain()
	o.Other = 50
	r := measured(t, measure.Simulated(o), quicker, product("still", false))
	if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "another process uses the card (PID ") {
		t.Errorf("warnings %q", r.Warnings)
	}
}

func TestWrongOptions(t *testing.T) {
	m := measure.Simulated(plain())
	p := product("still", false)
	for _, n := range []int{0, 9} {
		if _, err := Measure(context.Background(), m, make([]cuda.Product, n), nil, Options{}); err == nil {
			t.Errorf("%d products were profiled", n)
		}
	}
	for want, o := range map[string]Options{
		"length 1ms: give 50ms to 1m": {Length: time.Millisecond},
		"runs 1":                      {Runs: 1},
		"time 1s":                     {Time: time.Second},
		"idle 100ms":                  {Idle: 100 * time.Millisecond},
		"step 1µs":                    {Step: time.Microsecond},
		"tolerance 2":                 {Tolerance: 2},
	} {
		if _, err := Measure(context.Background(), m, []cuda.Product{p}, nil, o); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestWithinExecution: power within an execution is the mean over all executions.
func TestWithinExecution(t *testing.T) {
	const each, n = 100 * ms, 10
	c := &stitch.Trace{Step: 5 * ms}
	for i := range int(n * each / c.Step) {
		watts := 400.0 + 100*float64(i%20/10) // twice as long at the one as at the other is neither
		c.Watts, c.Low, c.High = append(c.Watts, watts), append(c.Low, watts-3), append(c.High, watts+3)
		c.Resolution = append(c.Resolution, 25*ms)
	}
	p := &Profile{Trace: c, Segments: []Segment{{Executions: n, End: n * each}}}
	for i := range n + 1 {
		p.mean.Done, p.mean.At = append(p.mean.Done, i), append(p.mean.At, Seconds(i)*each)
	}
	if in := withinExecution(p); in.Why != "power was not steady" {
		t.Errorf("%+v", in)
	}
	p.Steady.SSP = SteadyPoint{Found: true, Execution: 2, Until: n * each}
	in := withinExecution(p)
	if !in.Resolved || in.Why != "" || in.Executions != n-2 || in.Length != each || len(in.Watts) != 4 {
		t.Fatalf("%+v", in)
	}
	for i, want := range []float64{400, 400, 500, 500} {
		near(t, "a quarter", in.Watts[i], want, 1e-9)
		if in.Low[i] > in.Watts[i] || in.High[i] < in.Watts[i] {
			t.Errorf("%v is not between %v and %v", in.Watts[i], in.Low[i], in.High[i])
		}
	}
	for i := range c.Resolution {
		c.Resolution[i] = 60 * ms
	}
	p.Sensors = []stitch.Sensor{{Name: stitch.Average, Window: Seconds(time.Second)}, {Name: stitch.Instant, Window: 25 * ms, Used: true}}
	want := "an execution takes 100 ms, the fastest sensor (instant power) averages over 25 ms, and the trace resolves 60 ms"
	if in := withinExecution(p); in.Why != want || in.Resolved || in.Length != each || in.Resolution != 60*ms {
		t.Errorf("%q, want %q", in.Why, want)
	}
}
