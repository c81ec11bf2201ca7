package card

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/profile"
	"github.com/lowtoggle/lowtoggle/gemm/profile/stitch"
)

func TestSensorText(t *testing.T) {
	s := stitch.Sensor{Name: stitch.Instant, Readings: 1200, Window: 25 * profile.Seconds(time.Millisecond), Delay: 3 * profile.Seconds(time.Millisecond), Gain: 0.98, Error: 2.04, Used: true}
	if got, want := sensorText(s), "instant power, 1 200 readings, each over 25 ms, 3 ms late, differs from the energy counter by −2.0 %, ±2.0 W around the trace"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	s.Delay, s.Gain = -stitch.Seconds(time.Millisecond), 1
	if got, want := sensorText(s), "instant power, 1 200 readings, each over 25 ms, 1 ms early, ±2.0 W around the trace"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	s.Used, s.Why = false, "it contradicts the others"
	if got, want := sensorText(s), "instant power, 1 200 readings, each over 25 ms; not used: it contradicts the others"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestProfileMet: a profile is met if power is steady and the resolution is reached in every profile.
func TestProfileMet(t *testing.T) {
	p := profile.Profile{
		Segments: []profile.Segment{{Name: "a", Executions: 9, End: profile.Seconds(time.Second)}},
		Trace:    &stitch.Trace{Step: 10 * profile.Seconds(time.Millisecond), Watts: []float64{1, 2}, Low: []float64{1, 2}, High: []float64{1, 2}, Resolution: []profile.Seconds{4e6, 5e6}},
		Steady:   profile.SteadyState{SSP: profile.SteadyPoint{Found: true, Lasts: true}},
	}
	r := profileReport{Result: &profile.Result{Products: []profile.Product{{W: "zeros"}}, Profiles: []profile.Profile{p}}}
	for asked, want := range map[time.Duration]bool{0: true, 5e6: true, 4e6: false} {
		if r.asked = asked; r.met() != want {
			t.Errorf("5 ms where %v were asked for: %v", asked, r.met())
		}
	}
	swinging := p
	swinging.Steady.SSP = profile.SteadyPoint{Why: "power still changed: take longer runs"}
	r.asked, r.Profiles = 0, []profile.Profile{p, swinging}
	var b strings.Builder
	if r.print(&b); r.met() || !strings.Contains(b.String(), "note: no steady power was found: power still changed: take longer runs (--length)\n") {
		t.Errorf("met %v:\n%s", r.met(), b.String())
	}
	if r.Stopped = "failed"; !strings.HasSuffix(r.title(), ", w zeros, failed") {
		t.Error(r.title())
	}
	r.Stopped = "cancelled"
	title := r.title() + "\n"
	if !strings.HasSuffix(title, ", w zeros, interrupted\n") {
		t.Error(title)
	}
	b.Reset()
	if r.print(&b); !strings.HasPrefix(b.String(), title) || !strings.Contains(b.String(), "note: the measurement was interrupted") {
		t.Errorf("interrupted:\n%s", b.String())
	}
	r.Recomputed = "profile --from a" // traces of all golden runs
	b.Reset()
	if r.print(&b); !strings.HasPrefix(b.String(), title) || strings.Contains(b.String(), "coarser than in a complete") || !strings.Contains(b.String(), "all golden runs until then") {
		t.Errorf("recomputed:\n%s", b.String())
	}
	none := p
	none.Trace, none.Milestones = nil, nil
	r.asked, r.Profiles = 5e6, []profile.Profile{none}
	if r.met() || !strings.Contains(string(r.picture().SVG()), "<svg") {
		t.Error("a report without a curve is met, or cannot be drawn")
	}
}

// TestSteadyTime: the mean execution time may be above that of SSE, because executions slow down at the power cap.
func TestSteadyTime(t *testing.T) {
	p := profile.Profile{
		Segments: []profile.Segment{{Executions: 1000, End: 1662 * profile.Seconds(time.Millisecond)}},
		Steady:   profile.SteadyState{SSE: profile.SteadyPoint{Found: true, Execution: 1, Seconds: 1.417e-3}},
	}
	var b strings.Builder
	aboutSteady(&b, p)
	if want := "execution time: steady from execution 1 on (SSE). Execution 1 takes 1.42 ms; the mean of all\n  executions is 1.66 ms\n"; !strings.HasPrefix(b.String(), want) {
		t.Errorf("%s, want %s", b.String(), want)
	}
}

// TestInterleavedTable: where traces are too coarse there is no ratio, but a note.
func TestInterleavedTable(t *testing.T) {
	r := profileReport{Result: &profile.Result{
		Products: []profile.Product{{Name: "a"}, {Name: "b"}},
		Interleaved: []profile.Interleaved{
			{Product: 1, Over: 50 * profile.Seconds(time.Millisecond), Watts: 700, Alone: 875, Ratio: 0.8, Interval: [2]float64{0.79, 0.81}},
			{Other: 1, Over: 300 * profile.Seconds(time.Millisecond)},
		},
	}}
	var b strings.Builder
	r.print(&b)
	for _, want := range []string{"700.0 W", "875.0 W", "−20.00 %", "note: power of a right after the other product: unknown, because a ran for less than the trace's\n  resolution at that time (300 ms)", "note: a alone did not reach steady power"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), " 0.0 W") || strings.Contains(b.String(), "note: b") {
		t.Errorf("watts of a missing trace, or a superfluous note:\n%s", b.String())
	}
}

// TestProfilePicture: the picture has a band, the marks of steady time and steady power, and the start of the second
// product.
func TestProfilePicture(t *testing.T) {
	c := &stitch.Trace{Start: -150 * profile.Seconds(time.Millisecond), Step: 2500 * profile.Seconds(time.Microsecond)}
	for i := range 320 {
		c.Watts, c.Low, c.High = append(c.Watts, float64(i)), append(c.Low, float64(i-5)), append(c.High, float64(i+5))
		c.Resolution = append(c.Resolution, c.Step)
	}
	mhz := 1980.0
	p := profile.Profile{
		Trace: c, Segments: []profile.Segment{{Name: "a", End: 400 * profile.Seconds(time.Millisecond)}, {Name: "b<c", Begin: 400 * profile.Seconds(time.Millisecond), End: 600 * profile.Seconds(time.Millisecond)}},
		Steady: profile.SteadyState{SSE: profile.SteadyPoint{Found: true, At: 10 * profile.Seconds(time.Microsecond)}, SSP: profile.SteadyPoint{Found: true, At: 50 * profile.Seconds(time.Millisecond)}},
		States: []profile.State{{At: -profile.Seconds(time.Millisecond)}, {At: profile.Seconds(time.Millisecond), SMClock: &mhz}},
	}
	r := &profile.Result{GPU: "card", Products: []profile.Product{{Problem: &gemm.Problem{M: 2, N: 3, K: 4, Type: arith.BF16}}}, Profiles: []profile.Profile{p}}
	text := string(profileReport{Result: r}.picture().SVG())
	for _, want := range []string{"<title>card: 2x3x4 bf16 stationary</title>", ">SSP<", ">SSE<", "then b&lt;c", "MHz"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "NaN") {
		t.Error("NaN in a path")
	}
}

// TestNothingToDraw: without a trace, the file does not change, and a note says so.
func TestNothingToDraw(t *testing.T) {
	path, out := filepath.Join(t.TempDir(), "a.svg"), &strings.Builder{}
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := profileReport{Result: &profile.Result{Products: make([]profile.Product, 1), Profiles: make([]profile.Profile, 1)}}
	c := cli.NewContext(&cli.App{Writer: exit.NewOutput(out)}, flag.NewFlagSet("", flag.ContinueOnError), nil)
	if err := r.draw(c, path); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); string(text) != "old" || err != nil || !strings.HasPrefix(out.String(), "picture: not drawn, because there is no trace: ") {
		t.Errorf("%q, %v; said %q", text, err, out)
	}
}

// TestProfileHolds: from the stage "stitch" on, an interrupt waits for the report.
func TestProfileHolds(t *testing.T) {
	out := exit.NewOutput(io.Discard)
	c := cli.NewContext(&cli.App{Writer: out}, nil, nil)
	tell := profileProgress(c, func(profile.Event) {})
	for _, stage := range []string{"self-test", "timing", "warm-up", "stitch"} {
		if tell(profile.Event{Stage: stage}); out.Unsaved() != (stage == "stitch") {
			t.Errorf("%s: unsaved %v", stage, out.Unsaved())
		}
	}
}
