package stitch

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func stitched(t testing.TB, readings []Reading, o Options) (*Trace, map[string]Sensor) {
	t.Helper()
	c, sensors, err := Readings(context.Background(), readings, o)
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]Sensor{}
	for _, s := range sensors {
		by[s.Name] = s
	}
	return c, by
}

// difference between two traces with the same cells, relative to the second.
type difference struct {
	Largest float64
	At      Seconds // of the largest
	Mean    float64
}

// differenceOf compares two traces from one moment to another.
func differenceOf(a, b *Trace, from, to Seconds) (d difference) {
	n := 0.0
	for i, w := range a.Watts {
		at := a.Start + Seconds(i)*a.Step
		if at < from || at+a.Step > to {
			continue
		}
		off := math.Abs(w-b.Watts[i]) / math.Abs(b.Watts[i])
		if off > d.Largest {
			d.Largest, d.At = off, at
		}
		d.Mean += off
		n++
	}
	d.Mean /= max(1, n)
	return d
}

// inRise returns the mean resolution while the power of overshooting rises.
func inRise(c *Trace) Seconds {
	const up = 10 * ms
	sum, n := Seconds(0), Seconds(0)
	for at := Seconds(0); at < up; at += c.Step {
		sum += c.ResolutionAt(at)
		n++
	}
	return sum / n
}

// TestReadings finds a known trace from readings of an H200's sensors, none of them quicker than 20 ms. Some readings are
// late, and the assumed windows are wrong.
func TestReadings(t *testing.T) {
	const tolerance = 2 * ms
	var traces []*Trace
	covered, cells := 0, 0
	for seed := range uint64(3) { // errors of neighbouring cells go together: one trace says little of the intervals
		card := truth{
			power: overshooting, runs: 60, until: 0.45, noise: 3, stalled: 0.01, counting: true,
			sensors: []sampling{instant, buffer, overSecond}, seed: seed,
		}
		card.sensors[0].gain = 1.02
		o := card.options()
		o.Resamples = 60 // whose intervals are tested
		o.Sensors = []Sensor{{Name: Instant, Window: 40 * ms}, {Name: Buffer, Window: 50 * ms, Delay: 10 * ms}}
		c, found := stitched(t, card.readings(), o)
		exact := card.trace(c)
		if d := differenceOf(c, exact, 50*ms, Seconds(time.Hour)); d.Largest > 0.015 {
			t.Errorf("seed %d: off by %.2f %% at %v", seed, 100*d.Largest, d.At)
		}
		for i, w := range exact.Watts {
			cells++
			if c.Low[i] <= w && w <= c.High[i] {
				covered++
			}
		}
		if r := inRise(c); r > 5*ms {
			t.Errorf("seed %d: resolution %v in the rise", seed, r)
		}
		for _, s := range card.sensors[:2] {
			f := found[s.name]
			if (f.Window-Of(s.window)).Abs() > tolerance || f.Delay.Abs() > tolerance || !f.Used {
				t.Errorf("seed %d: %+v, planted a window of %v s", seed, f, s.window)
			}
			if math.Abs(f.Gain-s.gain) > 0.002 || math.Abs(f.Error-card.noise) > 0.5 {
				t.Errorf("seed %d: %+v, planted gain %v and error %v W", seed, f, s.gain, card.noise)
			}
		}
		if a := found[Average]; a.Used || !strings.Contains(a.Why, "its averaging window") {
			t.Errorf("seed %d: %+v", seed, a)
		}
		traces = append(traces, c)
	}
	if covered < cells*9/10 {
		t.Errorf("the intervals hold the truth in %d of %d cells", covered, cells)
	}
	if d := differenceOf(traces[0], traces[1], 50*ms, Seconds(time.Hour)); d.Largest > 0.03 {
		t.Errorf("two measurements of one card differ by %.2f %% at %v", 100*d.Largest, d.At)
	}
}

// TestSlowSensors: from slow sensors alone the trace is coarse, and its resolution shows it.
func TestSlowSensors(t *testing.T) {
	rise := func(card truth) (*Trace, Seconds) {
		card.power, card.runs, card.noise = overshooting, 20, 3
		c, _ := stitched(t, card.readings(), card.options())
		return c, inRise(c)
	}
	_, counter := rise(truth{counting: true, until: 0.4})
	_, quick := rise(truth{counting: true, sensors: []sampling{instant, buffer}, until: 0.4})
	slow, second := rise(truth{sensors: []sampling{overSecond}, until: 1.15})
	if quick > 5*ms || counter < quick*5/4 {
		t.Errorf("resolution %v with the energy counter alone, %v with quicker sensors", counter, quick)
	}
	if second < 20*ms || slow.Step != 20*ms {
		t.Errorf("resolution %v in cells of %v from an average over a second", second, slow.Step)
	}
}

// TestDelayOfAll: a delay common to all sensors shows in the moment at which power rises.
func TestDelayOfAll(t *testing.T) {
	const delay = 30 * ms
	card := truth{power: overshooting, runs: 25, until: 0.3, noise: 3, counting: true, delay: delay.Seconds()}
	_, found := stitched(t, card.readings(), card.options())
	if d := found[Counter].Delay; (d - delay).Abs() > 6*ms {
		t.Errorf("delay %v, planted %v", d, delay)
	}
	card.delay = 0
	if _, found = stitched(t, card.readings(), card.options()); found[Counter].Delay != 0 {
		t.Errorf("delay %v, planted none", found[Counter].Delay)
	}
}

// TestContradiction: a sensor that does not show this card's power is left out, with a reason.
func TestContradiction(t *testing.T) {
	card := truth{power: overshooting, runs: 20, until: 0.4, noise: 3, counting: true, sensors: []sampling{instant}}
	for name, spoil := range map[string]func(*Reading){
		"0.50 times":          func(r *Reading) { r.Watts /= 2 },
		"no averaging window": func(r *Reading) { r.At += Seconds(r.Run%7) * 15 * ms },
	} {
		readings := card.readings()
		for i := range readings {
			if readings[i].Sensor == Instant {
				spoil(&readings[i])
			}
		}
		c, found := stitched(t, readings, card.options())
		if s := found[Instant]; s.Used || !strings.Contains(s.Why, name) {
			t.Errorf("%s: %+v", name, s)
		}
		if d := differenceOf(c, card.trace(c), 50*ms, Seconds(time.Hour)); d.Mean > 0.01 {
			t.Errorf("%s: the trace is off by %.2f %%", name, 100*d.Mean)
		}
	}
}

// TestBreaks: power jumps where it may, also within a cell, and is smooth elsewhere.
func TestBreaks(t *testing.T) {
	jump := func(t float64) float64 {
		switch {
		case t < 0:
			return 90
		case t < 0.201:
			return 690
		}
		return 450
	}
	card := truth{power: jump, runs: 40, until: 0.5, noise: 1, counting: true, sensors: []sampling{buffer}}
	o := card.options()
	o.Breaks = append(o.Breaks, 201*ms)
	c, _ := stitched(t, card.readings(), o)
	for at, want := range map[Seconds]float64{-10: 90, 10: 690, 190: 690, 210: 450, 400: 450} {
		if w, _, _ := c.Mean(at*ms, (at+5)*ms); math.Abs(w-want) > 5 {
			t.Errorf("%.1f W at %d ms, want %.0f", w, at, want)
		}
	}
	if w, _, _ := c.Mean(200*ms, 202500*us); math.Abs(w-546) > 50 {
		t.Errorf("%.1f W in the cell of the jump, want 546", w)
	}
}

// few returns few readings, which are quickly stitched.
func few(t *rapid.T) ([]Reading, Options) {
	level := rapid.Float64Range(100, 800).Draw(t, "watts")
	card := truth{
		power: func(t float64) float64 {
			if t < 0 {
				return 90
			}
			return level
		},
		runs: rapid.IntRange(2, 5).Draw(t, "runs"), until: 0.25, noise: 2, counting: rapid.Bool().Draw(t, "counter"),
		sensors: []sampling{buffer}, seed: rapid.Uint64().Draw(t, "seed"),
	}
	o := card.options()
	o.Step, o.Resamples = 20*ms, 5
	return card.readings(), o
}

// alike reports whether two numbers agree but for rounding errors of the fit.
func alike(a, b float64) bool { return math.Abs(a-b) <= 1e-4*math.Max(math.Abs(a), math.Abs(b)) }

// stitchFew passes over readings that are too few for a trace.
func stitchFew(t *rapid.T, readings []Reading, o Options) *Trace {
	c, _, err := Readings(context.Background(), readings, o)
	if errors.Is(err, ErrTooFew) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestConstantPower: constant readings make a constant trace with narrow intervals.
func TestConstantPower(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		readings, o := few(t)
		for i := range readings {
			readings[i].Watts = 500
		}
		c := stitchFew(t, readings, o)
		for i, w := range c.Watts {
			if !alike(w, 500) || !alike(c.Low[i], 500) || !alike(c.High[i], 500) {
				t.Fatalf("cell %d: %v W in [%v, %v]", i, w, c.Low[i], c.High[i])
			}
		}
	})
}

// TestTwiceAndLater: the trace scales with the watts and shifts with the time.
func TestTwiceAndLater(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		readings, o := few(t)
		c := stitchFew(t, readings, o)
		by := Seconds(rapid.Int64Range(-1e9, 1e9).Draw(t, "later"))
		for i := range readings {
			readings[i].Since += by
			readings[i].At += by
			readings[i].Watts *= 2
		}
		o.From, o.To, o.Breaks[0] = o.From+by, o.To+by, o.Breaks[0]+by
		later := stitchFew(t, readings, o)
		for i, w := range c.Watts {
			if !alike(2*w, later.Watts[i]) || !alike(2*c.High[i], later.High[i]) || c.Resolution[i] != later.Resolution[i] || later.Start != c.Start+by {
				t.Fatalf("cell %d: %v W and %v", i, w, later.Watts[i])
			}
		}
	})
}

// TestLimitResolution: a resolution that is asked for is reached in every cell, with wider intervals; one that the readings do
// not carry changes nothing.
func TestLimitResolution(t *testing.T) {
	card := truth{power: overshooting, runs: 30, until: 0.5, noise: 3, counting: true, sensors: []sampling{buffer}, seed: 3}
	o := card.options()
	o.Breaks, o.Resamples = append(o.Breaks, Of(0.4)), 20
	stitched := func(finest Seconds) (*Trace, Seconds, float64) {
		o.Resolution = finest
		c, _, err := Readings(t.Context(), card.readings(), o)
		if err != nil {
			t.Fatal(err)
		}
		worst, width := Seconds(0), 0.0
		for i := int(c.cell(0)); i < int(c.cell(Of(0.4))); i++ {
			worst, width = max(worst, c.Resolution[i]), width+c.High[i]-c.Low[i]
		}
		return c, worst, width
	}
	free, coarse, sure := stitched(0)
	if _, worst, width := stitched(6 * ms); coarse <= 6*ms || worst > 6*ms || width <= sure {
		t.Errorf("resolution %v and width %v where 6 ms were asked for, %v and %v before", worst, width, coarse, sure)
	}
	if same, _, _ := stitched(us); !slices.Equal(same.Watts, free.Watts) {
		t.Error("asking for a microsecond changed the trace")
	}
}

// TestLimitUncertain: a resolution at which the trace would be noise is refused.
func TestLimitUncertain(t *testing.T) {
	card := truth{power: overshooting, runs: 8, until: 0.4, noise: 5, counting: true, sensors: []sampling{instant}, seed: 3}
	o := card.options()
	o.Breaks, o.Resamples = append(o.Breaks, Of(0.3)), 20
	free, _ := stitched(t, card.readings(), o)
	o.Resolution = 3 * ms
	held, _ := stitched(t, card.readings(), o)
	if !slices.Equal(held.Watts, free.Watts) {
		w, low, high := held.Mean(200*ms, 200*ms)
		t.Errorf("%.0f W in [%.0f, %.0f] for a resolution of %v", w, low, high, held.ResolutionAt(200*ms))
	}
}

// TestLimitFallsBack: a resolution that readings do not carry makes a trace no coarser than asking for none.
func TestLimitFallsBack(t *testing.T) {
	card := truth{power: func(t float64) float64 {
		if t < 0 {
			return 90
		}
		return 600
	}, runs: 20, until: 0.35, noise: 2, counting: true, sensors: []sampling{buffer}, seed: 1}
	o := card.options()
	o.Breaks, o.Resamples = append(o.Breaks, Of(0.25)), 20
	worst := func(asked Seconds) Seconds {
		o.Resolution = asked
		c, _ := stitched(t, card.readings(), o)
		return slices.Max(c.Resolution[int(c.cell(0)):int(c.cell(Of(0.25)))])
	}
	if free, asked := worst(0), worst(2600*us); free > CoarsestCell || asked > free {
		t.Errorf("resolution %v where 2.6 ms were asked for, %v where none was", asked, free)
	}
}

// TestUnsteadyCounter: where the energy counter's steps are seen late by varying times, another sensor becomes the
// reference.
func TestUnsteadyCounter(t *testing.T) {
	card := truth{power: overshooting, runs: 40, until: 0.4, noise: 3, counting: true, unsteady: 0.02, sensors: []sampling{instant, buffer}}
	c, found := stitched(t, card.readings(), card.options())
	if s := found[Counter]; s.Used || !strings.Contains(s.Why, "its error (±") {
		t.Errorf("%+v", s)
	}
	for _, s := range card.sensors {
		if f := found[s.name]; !f.Used || (f.Window-Of(s.window)).Abs() > 2*ms {
			t.Errorf("%+v, planted a window of %v s", f, s.window)
		}
	}
	if d := differenceOf(c, card.trace(c), 50*ms, Seconds(time.Hour)); d.Largest > 0.02 {
		t.Errorf("off by %.2f %% at %v", 100*d.Largest, d.At)
	}
}

// TestShortRun: short work does not make sensors precede the card's power.
func TestShortRun(t *testing.T) {
	const end = 0.05
	for seed := range uint64(3) {
		card := truth{power: func(t float64) float64 {
			switch {
			case t < 0:
				return 65
			case t < end:
				return 65 + 540*(1-math.Exp(-t/0.01))
			}
			return 65 + 540*math.Exp((end-t)/0.01)
		}, runs: 40, until: 0.2, noise: 1, counting: true, sensors: []sampling{instant, buffer}, seed: seed}
		o := card.options()
		o.Breaks = append(o.Breaks, Of(end))
		c, found := stitched(t, card.readings(), o)
		for _, s := range found {
			if s.Delay < -2*ms {
				t.Errorf("seed %d: %+v", seed, s)
			}
		}
		// The tail of its power passes for a lag of the sensors, without which it is 605 W at once.
		if w, _, _ := c.Mean(Of(end-0.01), Of(end)); math.Abs(w-605) > 20 {
			t.Errorf("seed %d: %.0f W at the end, planted 605", seed, w)
		}
	}
}

// TestHiddenNoise: a trace can fit so few runs exactly, which hides their noise; the bootstrap still works.
func TestHiddenNoise(t *testing.T) {
	card := truth{power: func(t float64) float64 {
		if t < 0 {
			return 90
		}
		return 418
	}, runs: 5, until: 0.25, noise: 2, counting: true, sensors: []sampling{buffer}, seed: 0x2abfa}
	o := card.options()
	o.Step, o.Resamples = 20*ms, 5
	stitched(t, card.readings(), o)
}

// TestQuietIdleness: precise readings of the idle card do not overrule those under load.
func TestQuietIdleness(t *testing.T) {
	const end = 0.1
	power := func(t float64) float64 {
		if t > 0 && t < end {
			return 650
		}
		return 90
	}
	card := truth{power: power, runs: 30, until: 0.3, counting: true, sensors: []sampling{instant, buffer}}
	o := card.options()
	o.Breaks = append(o.Breaks, Of(end))
	rng := rand.New(rand.NewPCG(1, 1))
	readings := card.readings()
	for i := range readings {
		if r := &readings[i]; r.Watts > 300 {
			r.Watts += 6 * rng.NormFloat64()
		}
	}
	c, found := stitched(t, readings, o)
	if w, _, _ := c.Mean(Of(0.03), Of(0.07)); math.Abs(w-650) > 7 {
		t.Errorf("%.1f W, planted 650", w)
	}
	if f := found[Buffer]; !f.Used || f.Error < 2 {
		t.Errorf("%+v, planted 6 W", f)
	}
}

func TestTooFew(t *testing.T) {
	card := truth{power: overshooting, runs: 1, until: 0.3, counting: true}
	for name, readings := range map[string][]Reading{
		"none":                    nil,
		"one run":                 card.readings(),
		"readings of other times": {{Run: 0, Sensor: Instant, At: Seconds(time.Hour), Watts: 1}, {Run: 1, Sensor: Instant, At: Seconds(time.Hour), Watts: 1}},
		"no numbers":              {{Run: 0, Sensor: Instant, Watts: math.NaN()}, {Run: 1, Sensor: Instant, Watts: math.Inf(1)}},
		"stretches of nothing":    {{Run: 0, Sensor: Counter, Watts: 1}, {Run: 1, Sensor: Counter, Watts: 1}},
	} {
		if _, _, err := Readings(context.Background(), readings, card.options()); !errors.Is(err, ErrTooFew) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestFewOfTheCounter: where the energy counter has too few readings, the trace comes from another sensor.
func TestFewOfTheCounter(t *testing.T) {
	card := truth{power: overshooting, runs: 20, until: 0.4, noise: 3, sensors: []sampling{buffer}}
	readings := append(card.readings(), Reading{Run: 3, Sensor: Counter, Since: 0, At: 100 * ms, Watts: 100})
	c, found := stitched(t, readings, card.options())
	if s := found[Counter]; s.Used || s.Why == "" || !found[Buffer].Used {
		t.Errorf("%+v", found)
	}
	if d := differenceOf(c, card.trace(c), 50*ms, Seconds(time.Hour)); d.Largest > 0.03 {
		t.Errorf("off by %.2f %% at %v", 100*d.Largest, d.At)
	}
}

// TestLongRun: the resolution of a long trace is computed for some cells only, and is still right.
func TestLongRun(t *testing.T) {
	card := truth{power: overshooting, runs: 4, until: 3, noise: 3, sensors: []sampling{buffer}}
	o := card.options()
	o.Resamples = 2
	c, _ := stitched(t, card.readings(), o)
	if len(c.Resolution) != len(c.Watts) || slices.Min(c.Resolution) < c.Step {
		t.Errorf("%d resolutions of %d cells, the finest %v", len(c.Resolution), len(c.Watts), slices.Min(c.Resolution))
	}
	if early, late := inRise(c), c.ResolutionAt(2500*ms); late < 2*early {
		t.Errorf("resolution %v in the rise and %v when power is steady", early, late)
	}
}

func TestReadingsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	card := truth{power: overshooting, runs: 4, until: 0.3, counting: true}
	if _, _, err := Readings(ctx, card.readings(), card.options()); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// BenchmarkReadings is a full measurement: 200 runs of 2 s, each with more than 100 readings.
func BenchmarkReadings(b *testing.B) {
	card := truth{
		power: overshooting, runs: 200, until: 2.15, noise: 3, stalled: 0.01, counting: true,
		sensors: []sampling{instant, buffer, overSecond},
	}
	readings, o := card.readings(), card.options()
	for b.Loop() {
		stitched(b, readings, o)
	}
	b.ReportMetric(float64(len(readings)), "readings/op")
}
