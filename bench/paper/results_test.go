package paper

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/bench/experiment"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/cost/pattern"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// series returns a series in which every point has the energy of a world, relative to a baseline of 2 J.
func series(s experiment.Setup, w world) *experiment.Series {
	return seriesOf(Job(s, Points{}), func(p experiment.Point) float64 { return w(p.Experiment, p.At) })
}

// seriesOf returns a series of a job, measured in one session.
func seriesOf(job experiment.Job, w func(experiment.Point) float64) *experiment.Series {
	clock, limit := 1500.0, 700.0
	session := experiment.Session{
		Session: &measure.Session{
			Card: power.Info{Name: "A Card", UUID: "one", Driver: "1.2", CUDA: "13.0", PowerLimit: &limit},
			Date: "2026-11-21T10:00:00Z", Command: "measure it",
		},
		Points: []experiment.Measured{{Point: job.Baseline}},
	}
	read := func(name string, energy float64) {
		energy *= 1 + 0.001*math.Sin(float64(len(session.Readings))) // adds scatter
		session.Readings = append(session.Readings, measure.Reading{Baseline: name == "", Window: power.Window{Load: name,
			Begin: float64(len(session.Readings)), Seconds: 0.005, PerExecution: 2 * energy, Watts: 400 * energy, SMClock: &clock}})
	}
	null := job.Baseline
	null.Experiment, null.At = experiment.Null, 1
	for _, p := range append(job.Points, null) {
		energy := w(p)
		if drawnOf(p) == drawnOf(job.Baseline) {
			energy = 1
		}
		m := experiment.Measured{Point: p}
		if p.Experiment == "3b" && p.At == 64 {
			x, err := p.X.With("scale(2^-3)")
			if err != nil {
				panic(err)
			}
			m.Scaled = &experiment.Scaled{X: x, W: p.W, Flushed: 0.25}
		}
		session.Points = append(session.Points, m)
		read("", 1)
		read(p.Name(), energy)
	}
	read("", 1)
	return &experiment.Series{Version: 1, Setup: job.Setup, Baseline: job.Baseline, Sessions: []experiment.Session{session}}
}

// TestResults: every place of every axis has a result with its operands' energy, also if experiments share operands.
func TestResults(t *testing.T) {
	s := fp16()
	results := Results(series(s, func(id string, x float64) float64 { return 0.5 + x/1e5 }))
	place := map[string]Result{}
	for _, r := range results {
		place[fmt.Sprint(r.Experiment, r.X)] = r
	}
	for _, e := range experiments {
		for _, at := range e.Points(s.Type) {
			r, ok := place[fmt.Sprint(e.ID, at.X)]
			if !ok {
				t.Fatalf("%s at %v is not there", e.ID, at.X)
			}
			want := 0.5 + at.X/1e5
			switch {
			case at.A == pattern.MustParse(usual(s.Type)) && at.B == at.A:
				want = 1
			case e.ID == "6b" && at.X == 0: // measured as 5b's end
				want = 0.5 + 100/1e5
			case (e.ID[0] == '4') && at.X == 0: // measured as 3c's beginning
				want = 0.5 + 1/1e5
			}
			if math.Abs(r.Relative-want) > 0.01 || !(r.HalfWidth > 0) || math.Abs(r.RelativeTime-1) > 1e-9 || math.Abs(r.Watts-400*want) > 5 || r.Clock != 1500 {
				t.Errorf("%s at %v: %+v, want %v", e.ID, at.X, r, want)
			}
		}
	}
	scaled := place["3b64"]
	if scaled.A.String() != "normal(64,1) | scale(2^-3)" || scaled.B.String() != "normal(64,1)" || scaled.Flushed != 0.25 {
		t.Errorf("scaled operands: %+v", scaled)
	}
	if n := len(Results(&experiment.Series{Setup: s})); n > 0 {
		t.Errorf("%d results of nothing", n)
	}
}

// TestResultsOfSeeds: the main points are means over their seeds, with an interval from three seeds on that holds for any
// seed; other points have one seed.
func TestResultsOfSeeds(t *testing.T) {
	for _, n := range []int{2, 3} {
		job := Job(fp16(), Points{Seeds: n})
		s := seriesOf(job, func(p experiment.Point) float64 { return 0.5 * math.Pow(1.1, float64(p.Seed-1)) })
		for _, r := range Results(s) {
			e := experiments[slices.IndexFunc(experiments, func(e Experiment) bool { return e.ID == r.Experiment })]
			main := slices.Contains(e.Main(arith.FP16), r.X)
			want, seeds, half := 0.5, 1, 0.006
			if main {
				want, seeds = 0.5*math.Pow(1.1, float64(n-1)/2), n
			}
			if main && n == 3 {
				half = want * 4.303 * math.Log(1.1) / math.Sqrt(3) // of Student's t with two degrees of freedom
			}
			if operandsOf(job.Baseline) == (operands{r.A, r.B}) { // of seed 1 it is the baseline, which takes 1
				continue
			}
			shared := r.Seeds == n && r.Relative > 0.51 // with a main point of another experiment
			if r.Seeds != len(r.Readings) || !shared && (r.Seeds != seeds || math.Abs(r.Relative/want-1) > 0.003) {
				t.Errorf("%d seeds: %s at %v: %d seeds, %d readings, %v, want %v", n, r.Experiment, r.X, r.Seeds, len(r.Readings), r.Relative, want)
			}
			if main && n == 3 && math.Abs(r.HalfWidth/half-1) > 0.05 || !(main && n == 3 || shared) && !(r.HalfWidth < half) {
				t.Errorf("%d seeds: %s at %v: ± %v, want %v", n, r.Experiment, r.X, r.HalfWidth, half)
			}
			if m := r.Readings[0]; m.Card != "one" || m.Clock != 1500 || !math.IsNaN(m.Idle) || math.Abs(m.Watts/200-1) > 0.01 {
				t.Errorf("%s at %v: %+v", r.Experiment, r.X, m)
			}
		}
	}
}
