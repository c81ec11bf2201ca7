package profile

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/lowtoggle/lowtoggle/gemm/profile/stitch"
)

// drawing returns a trace of exact power in cells of 1 ms.
func drawing(power func(t float64) float64, until float64) *stitch.Trace {
	c := &stitch.Trace{Step: ms}
	for i := range int(until * 1000) {
		c.Watts = append(c.Watts, power((float64(i)+0.5)/1000))
		c.Low, c.High = append(c.Low, c.Watts[i]), append(c.High, c.Watts[i])
		c.Resolution = append(c.Resolution, 2*ms)
	}
	return c
}

// even returns the timeline of equally long executions, with a mark every few of them.
func even(each float64, every, marks int) (p Timeline) {
	for i := range marks + 1 {
		p.Done, p.At = append(p.Done, i*every), append(p.At, stitch.Of(float64(i*every)*each))
	}
	return p
}

func TestSSE(t *testing.T) {
	run := func(ms ...float64) Timeline {
		p := Timeline{Done: []int{0}, At: []Seconds{0}}
		for i, m := range ms {
			p.Done, p.At = append(p.Done, i+1), append(p.At, p.At[i]+stitch.Of(m/1000))
		}
		return p
	}
	for name, test := range map[string]struct {
		run  Timeline
		want int
	}{
		"falls twice":               {run(3, 2, 1.01, 1, 1, 1), 3},
		"rises at the cap":          {run(3, 1, 1.2, 1.3, 1.25), 2},
		"steady from the first":     {run(1, 1, 1), 1},
		"falls within the margin":   {run(2, 1.015, 1.01, 1), 2},
		"still falls":               {run(4, 3, 2, 1), 0},
		"too short to tell":         {run(1), 0},
		"later it is quicker again": {run(1, 1.2, 1.2, 0.9, 0.9), 4},
	} {
		s := FindSteady(&stitch.Trace{}, test.run, 0.02, 0).SSE
		if s.Found != (test.want > 0) || s.Execution != test.want || s.Found == (s.Why != "") {
			t.Errorf("%s: %+v, want execution %d", name, s, test.want)
		}
		if s.Found && s.At != test.run.At[s.Execution] {
			t.Errorf("%s: ends at %v", name, s.At)
		}
	}
}

// TestSSP finds when an exponential approach is within the tolerance of its limit, to the execution.
func TestSSP(t *testing.T) {
	const high, rise = 700.0, 0.05
	approach := func(t float64) float64 { return high - 600*math.Exp(-t/rise) }
	s := FindSteady(drawing(approach, 2), even(1e-3, 10, 200), 0.02, 0.01).SSP
	want := rise * math.Log(600/(0.01*high)) // some 220 ms
	if !s.Found || math.Abs(s.At.Seconds()-want) > 0.03 || s.Execution != int(s.At/ms) {
		t.Errorf("%+v, want %v s", s, want)
	}
	if math.Abs(s.Watts-high) > 0.015*high || s.Low > s.Watts || s.High < s.Watts || !near64(s.Seconds, 1e-3) {
		t.Errorf("%+v", s)
	}
	if loose := FindSteady(drawing(approach, 2), even(1e-3, 10, 200), 0.02, 0.1).SSP; loose.Execution >= s.Execution {
		t.Errorf("execution %d within 10 %%, %d within 1 %%", loose.Execution, s.Execution)
	}
}

// TestSSPEnds: a steady state that ends before the run does is found, with its end; the reason names the power cap.
func TestSSPEnds(t *testing.T) {
	atCap := func(t float64) float64 { // as an H200 does at its cap
		switch {
		case t < 0.04:
			return 920
		case t < 0.9:
			return 728 + 200*math.Exp((0.04-t)/0.04)
		case t > 1.15 && t < 1.8:
			return 725
		}
		return 620
	}
	s := FindSteady(drawing(atCap, 2), even(1e-3, 10, 200), 0.02, 0.01).SSP
	if !s.Found || s.Lasts || s.At < 150*ms || s.At > 250*ms || s.Until < 835*ms || s.Until > 905*ms || math.Abs(s.Watts-730) > 7 {
		t.Errorf("%+v", s)
	}
	if s.explain(0.9); !strings.HasPrefix(s.Why, "the card was at its power cap") || !strings.HasSuffix(s.Why, "until "+s.Until.String()) {
		t.Error(s.Why)
	}
	s = FindSteady(drawing(func(t float64) float64 { return 730 }, 2), even(1e-3, 10, 200), 0.02, 0.01).SSP
	if s.explain(0.9); !s.Lasts || s.Until != 2000*ms || s.Why != "" {
		t.Errorf("%+v", s)
	}
	turns := func(t float64) float64 { return 690 + 40*math.Cos(2*math.Pi*t/10) }
	if s := FindSteady(drawing(turns, 2), even(1e-3, 10, 200), 0.02, 0).SSP; s.Lasts || s.Until > 1000*ms {
		t.Errorf("turns once: %+v", s)
	}
}

// TestSSPDrifts: the power of a warming die, which drifts by less than the tolerance a second, is steady.
func TestSSPDrifts(t *testing.T) {
	for rate, lasts := range map[float64]bool{0.008: true, 0.05: false} {
		warming := func(t float64) float64 { return 400 * (1 + rate*t) }
		if s := FindSteady(drawing(warming, 4), even(1e-3, 10, 400), 0.02, 0.01).SSP; s.Lasts != lasts || lasts && s.At > 20*ms {
			t.Errorf("%v a second: %+v", rate, s)
		}
	}
}

// TestSSPWarms: a die that warms within some tenths of a second raises power by 2.5 %; power is steady before that is over,
// in short runs and in long ones.
func TestSSPWarms(t *testing.T) {
	warming := func(t float64) float64 { return 400 * (1 + 0.025*(1-math.Exp(-t/0.15))) }
	for _, until := range []float64{0.2, 0.6, 2} {
		s := FindSteady(drawing(warming, until), even(1e-3, 1, int(1000*until)), 0.02, 0.01).SSP
		if !s.Lasts || s.At > 200*ms {
			t.Errorf("%v s: %+v", until, s)
		}
	}
}

// TestNoSSP: if power keeps changing, the reason has the size of the change.
func TestNoSSP(t *testing.T) {
	for name, test := range map[string]struct {
		power func(t float64) float64
		each  float64
		marks int
		why   string
	}{
		"swings":      {func(t float64) float64 { return 690 + 40*math.Cos(2*math.Pi*t/1.1) }, 1e-3, 200, "changed by"},
		"climbs":      {func(t float64) float64 { return 300 + 100*t }, 1e-3, 200, "changed by"},
		"a short run": {func(float64) float64 { return 700 }, 1e-3, 0, "no trace"},
		"quick ones":  {func(float64) float64 { return 700 }, 1e-6, 200, "too coarse"},
	} {
		s := FindSteady(drawing(test.power, 2), even(test.each, 10, test.marks), 0.02, 0).SSP
		if s.Found || !strings.Contains(s.Why, test.why) {
			t.Errorf("%s: %+v", name, s)
		}
	}
	if s := FindSteady(drawing(func(float64) float64 { return 700 }, 1), even(0.1, 1, 6), 0.02, 0).SSP; s.Found || !strings.Contains(s.Why, "6 executions are too few") {
		t.Errorf("six executions: %+v", s)
	}
}

// TestUnsureSSP: a change smaller than the intervals counts as steady; but with intervals wider than three
// tolerances nothing is found.
func TestUnsureSSP(t *testing.T) {
	c := drawing(func(t float64) float64 { return 690 + 20*t }, 2)
	if s := FindSteady(c, even(1e-3, 10, 200), 0.02, 0).SSP; s.Lasts {
		t.Errorf("sure: %+v", s)
	}
	for half, found := range map[float64]bool{20: true, 40: false} {
		for i := range c.Watts {
			c.Low[i], c.High[i] = c.Watts[i]-half, c.Watts[i]+half
		}
		s := FindSteady(c, even(1e-3, 10, 200), 0.02, 0).SSP
		if s.Found != found || !found && !strings.Contains(s.Why, "take more runs") {
			t.Errorf("± %v W: %+v", half, s)
		}
	}
}

// TestUnsureRise: wide intervals do not make power steady while it is more than three tolerances off.
func TestUnsureRise(t *testing.T) {
	c := drawing(func(t float64) float64 { return 600 - 500*math.Exp(-t/0.01) }, 0.5)
	for i := range 50 {
		c.Low[i], c.High[i] = c.Watts[i]-200, c.Watts[i]+200
	}
	s := FindSteady(c, even(1e-4, 10, 500), 0.02, 0.01).SSP
	if at := 0.01 * math.Log(500/(mostUncertain*0.01*600)); !s.Found || s.At.Seconds() < at || s.At.Seconds() > 0.05 {
		t.Errorf("%+v, want it from %.3f s on", s, at)
	}
}

// TestEnd: an error in the trace's last cell is no change of power.
func TestEnd(t *testing.T) {
	c := drawing(func(t float64) float64 { return 600 }, 0.5)
	last := len(c.Watts) - 1
	c.Watts[last], c.Low[last], c.High[last] = 660, 650, 670
	if s := FindSteady(c, even(1e-4, 10, 500), 0.02, 0.01).SSP; !s.Found {
		t.Errorf("%+v", s)
	}
}

// TestEarlyPower: where the trace is too coarse, SSE has no power.
func TestEarlyPower(t *testing.T) {
	c := drawing(func(t float64) float64 { return 600 * t }, 0.5)
	for each, told := range map[float64]bool{1e-4: false, 4e-3: true} {
		s := FindSteady(c, even(each, 1, 100), 0.02, 0.01).SSE
		if !s.Found || told != (s.Watts > 0) || told != (s.Over <= s.At) {
			t.Errorf("executions of %v s: %+v", each, s)
		}
	}
}

// TestConstantIsSteady: constant power is steady as soon as the trace resolves it.
func TestConstantIsSteady(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := rapid.Float64Range(50, 900).Draw(t, "watts")
		each := rapid.Float64Range(1e-4, 5e-3).Draw(t, "each")
		every := rapid.IntRange(1, 9).Draw(t, "every")
		p := even(each, every, int(0.5/each)/every)
		s := FindSteady(drawing(func(float64) float64 { return w }, 0.5), p, 0.02, 0).SSP
		if !s.Found || !near64(s.Watts, w) || s.At > 2*ms+Seconds(max(2, every))*stitch.Of(each) { // SSE is known to the mark
			t.Fatalf("%+v", s)
		}
	})
}

// TestSSPAfterSSE: SSP is never before SSE.
func TestSSPAfterSSE(t *testing.T) {
	p := even(4e-3, 1, 100)
	for i, late := range []Seconds{4e6, 6e6, 7e6, 8e6, 9e6} { // five slow ones, each less so
		for j := i + 1; j < len(p.At); j++ {
			p.At[j] += 10e6 - late
		}
	}
	s := FindSteady(drawing(func(float64) float64 { return 600 }, 0.5), p, 0.02, 0.01)
	if s.SSE.Execution != 6 || s.SSP.Execution != 6 || s.SSP.At != s.SSE.At || !near64(s.SSP.Watts, 600) {
		t.Errorf("SSE %+v, SSP %+v", s.SSE, s.SSP)
	}
}

// TestTooCoarse: where too few runs make the trace coarse, the reason advises more runs, not longer ones.
func TestTooCoarse(t *testing.T) {
	for resolution, want := range map[Seconds]string{stitch.CoarsestCell: "take longer runs", 300 * ms: "take more runs"} {
		c := drawing(func(float64) float64 { return 600 }, 0.08)
		for i := range c.Resolution {
			c.Resolution[i] = resolution
		}
		if s := FindSteady(c, even(1e-4, 10, 80), 0.02, 0.01).SSP; s.Found || !strings.Contains(s.Why, "too coarse") || !strings.HasSuffix(s.Why, want) {
			t.Errorf("%v: %+v", resolution, s)
		}
	}
}

// near64 reports whether two numbers agree but for rounding.
func near64(a, b float64) bool { return math.Abs(a-b) <= 1e-9*(1+math.Abs(a)+math.Abs(b)) }
