package power

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lowtoggle/lowtoggle/internal/goldenfile"
)

// traced writes down when a load is started, paced and waited for.
type traced struct {
	*SimLoad
	sim *Sim
	b   *bytes.Buffer
}

func (l traced) note(format string, args ...any) {
	fmt.Fprintf(l.b, "  %8.4f s  %s %s\n", l.sim.Now().Seconds(), l.Name(), fmt.Sprintf(format, args...))
}

func (l traced) Start(n int) error {
	l.note("runs %d times", n)
	return l.SimLoad.Start(n)
}

func (l traced) Rest(n int) error {
	l.note("rests %d times", n)
	return l.SimLoad.Rest(n)
}

func (l traced) Pace(ctx context.Context, every time.Duration) error {
	l.note("takes %v", every.Round(time.Microsecond))
	return l.SimLoad.Pace(ctx, every)
}

// put writes a value of JSON with six digits of each number: objects in lists on a line each, everything else by its field.
func put(b *bytes.Buffer, name string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			put(b, strings.TrimPrefix(name+"."+key, "."), v[key])
		}
	case []any:
		for i, x := range v {
			switch _, object := x.(map[string]any); {
			case !object:
				fmt.Fprintf(b, "%s %s\n", name, line(v))
				return
			case hasLists(x):
				put(b, fmt.Sprintf("%s.%d", name, i), x)
			default:
				fmt.Fprintf(b, "%s %s\n", name, line(x))
			}
		}
	default:
		fmt.Fprintf(b, "%s %s\n", name, line(v))
	}
}

// hasLists reports whether an object has lists of objects.
func hasLists(v any) bool {
	object, _ := v.(map[string]any)
	for _, x := range object {
		if list, ok := x.([]any); ok && len(list) > 0 {
			if _, ok := list[0].(map[string]any); ok {
				return true
			}
		}
	}
	return false
}

// line is a value on one line.
func line(v any) string {
	var parts []string
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, key+" "+line(v[key]))
		}
		return strings.Join(parts, ", ")
	case []any:
		for _, x := range v {
			parts = append(parts, line(x))
		}
		return "[" + strings.Join(parts, " ") + "]"
	case float64:
		return fmt.Sprintf("%.6g", v)
	}
	return fmt.Sprint(v)
}

// TestMeterTrace: with one seed the meter's actions and results on simulated cards equal the recorded ones: runs, settling,
// windows, blocks, duties, disturbances, intervals. testdata/metertrace.txt has when each load ran, and the results.
func TestMeterTrace(t *testing.T) {
	var b bytes.Buffer
	for _, c := range []struct {
		name         string
		change       func(o *SimOptions)
		options      Options
		before       float64 // watts
		each         float64 // seconds of an execution
		arrangements int
	}{
		{"below the cap", func(*SimOptions) {}, Options{Time: 30 * time.Second}, 500, 0.001, 1},
		{"to a precision", func(*SimOptions) {}, Options{Precision: 0.02, Seed: 7}, 500, 0.001, 1},
		{"at the cap, slow ticks and stalls", func(o *SimOptions) { o.Tick, o.StallEvery, o.Stall = 300*time.Millisecond, 50, 9*time.Millisecond },
			Options{Time: 40 * time.Second, Seed: 3, EDSk: 3}, 880, 0.004, 1},
		{"arrangements of the memory", func(o *SimOptions) { o.Addresses = 0.01 }, Options{Time: 20 * time.Second, Window: 300 * time.Millisecond, Settle: 50 * time.Millisecond}, 600, 0.0005, 3},
		{"bursts", func(*SimOptions) {}, Options{Time: 25 * time.Second, Duty: 0.4}, 900, 0.005, 1},
		{"the largest duty", func(o *SimOptions) { o.BurstCap = 800 }, Options{Time: 12 * time.Second, Duty: AutoDuty}, 1000, 0.005, 1},
		{"long executions", func(*SimOptions) {}, Options{Time: 15 * time.Second, WarmUp: 4 * time.Second}, 450, 0.09, 1},
		{"another process for a while", func(o *SimOptions) {
			o.Faults = []SimFault{{Kind: FaultProcess, From: 25 * time.Second, For: 3 * time.Second}}
		}, Options{Time: 15 * time.Second}, 500, 0.002, 1},
		{"the card cools for a while", func(o *SimOptions) {
			o.Faults = []SimFault{{Kind: FaultHeat, From: 22 * time.Second, For: 2 * time.Second}, {Kind: FaultCounterRepeats, From: 30 * time.Second, For: time.Second}, {Kind: FaultTemperatureAbsurd, From: 33 * time.Second}}
		}, Options{Time: 15 * time.Second}, 500, 0.002, 1},
		{"drops of the clock", func(o *SimOptions) { o.DipRate, o.AmbientRise, o.TimeNoise = 0.2, 0.3, 0.004 }, Options{Time: 25 * time.Second, Date: time.Unix(1e9, 0).UTC(), Command: "measure"}, 500, 0.002, 1},
	} {
		fmt.Fprintf(&b, "== %s\n", c.name)
		o := DefaultSim()
		o.Seed = 5
		c.change(&o)
		s := NewSim(o)
		load := func(name string, watts float64) Load { return traced{s.Load(name, watts, c.each), s, &b} }
		loads := Loads{Baseline: load("before", c.before), Null: load("null", c.before), Variants: []Load{load("after", 0.97*c.before)}, Arrangements: c.arrangements}
		loads.Arrange = func(_ context.Context, i int) error {
			fmt.Fprintf(&b, "  arrangement %d\n", i)
			return nil
		}
		c.options.Clock, c.options.Self = s, os.Getpid()
		c.options.Progress = func(e Event) { fmt.Fprintf(&b, "  %s %d of %d\n", e.Stage, e.Done/1e6, e.Total/1e6) }
		m, err := NewMeter(s, c.options)
		if err != nil {
			t.Fatal(err)
		}
		r, err := m.Compare(t.Context(), loads)
		if err != nil {
			fmt.Fprintf(&b, "error: %v\n", err)
		}
		if len(r.Blocks) > 2 {
			fmt.Fprintf(&b, "%d blocks, of which the first two:\n", len(r.Blocks))
			r.Blocks = r.Blocks[:2]
		}
		fields := func(v any) (fields map[string]any) {
			js, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(js, &fields); err != nil {
				t.Fatal(err)
			}
			return fields
		}
		all := fields(r)
		delete(all, "version")
		put(&b, "", all)
		r.Per(4)
		put(&b, "of a quarter", fields(r.Steady))
		if err := loads.Null.Start(int(2 / c.each)); err != nil {
			t.Fatal(err)
		}
		from := s.Now()
		span, err := Watch(t.Context(), s, s, func(now time.Duration) bool { return now-from >= 300*time.Millisecond }, func(begin, now time.Duration) bool { return now-begin >= 900*time.Millisecond })
		if err != nil {
			fmt.Fprintf(&b, "error: %v\n", err)
		}
		put(&b, "watched", fields(span))
	}
	goldenfile.Same(t, "testdata/metertrace.txt", b.Bytes())
}

// TestNothingToMeasureWith: what is missing is an error, whichever it is.
func TestNothingToMeasureWith(t *testing.T) {
	s := NewSim(quiet())
	enough := func(time.Duration, time.Duration) bool { return true }
	for name, err := range map[string]error{
		"card":  func() error { _, err := Watch(t.Context(), nil, s, nil, enough); return err }(),
		"clock": func() error { _, err := Watch(t.Context(), s, nil, nil, enough); return err }(),
		"end":   func() error { _, err := Watch(t.Context(), s, s, nil, nil); return err }(),
	} {
		if err == nil || err.Error() != "Watch needs a card, a clock and a function enough that ends the measurement" {
			t.Errorf("no %s: %v", name, err)
		}
	}
	for _, err := range []error{Undisturbed(t.Context(), nil, func(bool) error { return nil }, nil), Undisturbed(t.Context(), s, nil, nil)} {
		if err == nil || err.Error() != "a clock and a function are required" {
			t.Error(err)
		}
	}
	if _, err := NewMeter(nil, Options{Clock: s}); err == nil || !strings.Contains(err.Error(), "no card") {
		t.Error(err)
	}
}

// TestDisturbedWindows: a window that cannot be right is told with the card's name and the powers.
func TestDisturbedWindows(t *testing.T) {
	number := func(v float64) *float64 { return &v }
	for want, w := range map[string]Window{
		"": {Watts: 500, InstantWatts: number(500)},
		"simulated card: the energy counter gives an impossible power of 0 W, perhaps because the driver was reloaded: measure again":                     {},
		"simulated card: the energy counter gives an impossible power of 1e+06 W, perhaps because the driver was reloaded: measure again":                 {Watts: 1e6},
		"simulated card: the energy counter shows 500 W and the power sensor shows 680 W, so one of them is wrong: measure again, or choose another card": {Watts: 500, InstantWatts: number(680)},
		"simulated card: the energy counter shows 500 W and the power sensor shows 320 W, so one of them is wrong: measure again, or choose another card": {Watts: 500, InstantWatts: number(320)},
		"simulated card reduced its clock because of its temperature: let the card cool, or check its airflow":                                            {Watts: 500, InstantWatts: number(670), heat: true},
	} {
		s := NewSim(quiet())
		m, err := NewMeter(s, Options{Clock: s, SelfTest: &SelfTest{Tick: 0.1, Instant: &Response{Window: quickWindow}}})
		if err != nil {
			t.Fatal(err)
		}
		m.learn(*m.opt.SelfTest)
		if err := m.inspect(&w); want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	s := NewSim(quiet())
	m, err := NewMeter(s, Options{Clock: s})
	if err != nil {
		t.Fatal(err)
	}
	m.learn(SelfTest{Tick: 0.1, Instant: &Response{Window: 1.001 * quickWindow}}) // too slow to be compared
	if err := m.inspect(&Window{Watts: 500, InstantWatts: number(900)}); err != nil {
		t.Error(err)
	}
}

// TestOptionEdges: the ends of what each option may be.
func TestOptionEdges(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string // empty: valid
	}{
		{Options{}, ""}, {Options{Precision: 1}, "precision 1"}, {Options{Precision: 0.999}, ""}, {Options{Precision: -1e-9}, "precision"}, {Options{Precision: 1e-9}, ""},
		{Options{Time: 1}, ""}, {Options{Time: -1}, "time"}, {Options{Window: 100 * time.Millisecond}, ""}, {Options{Window: 100*time.Millisecond - 1}, "window"},
		{Options{Settle: 1}, ""}, {Options{Settle: -1}, "settle"}, {Options{CapSettle: 1}, ""}, {Options{CapSettle: -1}, "cap settle"}, {Options{WarmUp: 1}, ""},
		{Options{WarmUp: -1}, "warm-up"}, {Options{Duty: LeastDuty}, ""}, {Options{Duty: 0.99 * LeastDuty}, "duty"}, {Options{Duty: 1}, ""}, {Options{Duty: 1.001}, "duty"},
		{Options{Duty: AutoDuty}, ""}, {Options{Duty: -0.999}, "duty"}, {Options{EDSk: 1}, "k 1"}, {Options{EDSk: 1.001}, ""},
		{Options{EDSk: 0.5, Time: -1}, "time -1ns: give more than 0\nk 0.5"},
	} {
		err := c.o.Validate()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%+v: %v, want %q", c.o, err, c.want)
		}
	}
}
