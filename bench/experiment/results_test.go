package experiment

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/cost/pattern"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// invented returns a series of rounds, with the baseline read before each of its points and at the end.
// A point's energy is at over the baseline's; all vary by noise, as a share.
func invented(rng *rand.Rand, rounds int, noise float64, points ...Point) *Series {
	base := Point{"baseline", 0, pattern.MustParse("normal(0,1)"), pattern.MustParse("normal(0,1)"), 1}
	s := &Series{Version: seriesVersion, Setup: Setup{Type: arith.BF16, M: 8, N: 8, K: 8, Change: Both}, Baseline: base}
	for range rounds {
		session := Session{&measure.Session{}, []Measured{{Point: base}}}
		read := func(name string, energy float64) {
			drift := 1 + 0.001*float64(len(session.Readings))
			joules := 2 * drift * energy * math.Exp(noise*rng.NormFloat64())
			clock := 1500.0
			w := power.Window{Load: name, Begin: float64(len(session.Readings)), Seconds: 0.01, PerExecution: joules, Watts: joules / 0.01, SMClock: &clock}
			session.Readings = append(session.Readings, measure.Reading{Window: w, Baseline: name == ""})
		}
		for _, p := range points {
			p.X, p.W, p.Seed = base.X, base.W, 1
			session.Points = append(session.Points, Measured{Point: p})
			read("", 1)
			read(p.Name(), p.At)
		}
		read("", 1)
		s.Sessions = append(s.Sessions, session)
	}
	return s
}

// TestResultsOfDrift: without noise the drift of the card is taken out, and means are means.
func TestResultsOfDrift(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	s := invented(rng, 2, 0, Point{Experiment: "a", At: 0.9}, Point{Experiment: "a", At: 1.1}, Point{Experiment: "b", At: 0.9}, Point{Experiment: "b", At: 1})
	results := s.Results()
	if len(results) != 4 {
		t.Fatalf("%d results", len(results))
	}
	for _, r := range results {
		if math.Abs(r.Relative-r.At) > 1e-5 || math.Abs(r.RelativeTime-1) > 1e-9 || r.Readings != 2 || r.HalfWidth > 1e-4 {
			t.Errorf("%+v", r)
		}
		if math.Abs(r.Joules/r.Watts-r.Seconds) > 1e-9 || r.Seconds != 0.01 || r.Clock != 1500 || !math.IsNaN(r.Capped) {
			t.Errorf("%+v", r)
		}
	}
}

// TestIntervals: 95 in 100 intervals hold the truth, with one round and with several.
func TestIntervals(t *testing.T) {
	const trials, noise = 400, 0.003
	for rounds, points := range map[int]int{1: 12, 2: 6, 3: 2} {
		rng := rand.New(rand.NewPCG(7, uint64(rounds)))
		held, all, width := 0, 0, 0.0
		for range trials {
			var list []Point
			for i := range points {
				list = append(list, Point{Experiment: fmt.Sprint(i), At: 0.8})
			}
			for _, r := range invented(rng, rounds, noise, list...).Results() {
				all++
				if math.Abs(r.Relative-0.8) < r.HalfWidth {
					held++
				}
				width += r.HalfWidth
			}
		}
		share := float64(held) / float64(all)
		t.Logf("%d rounds of %d points: %.1f %% of the intervals hold the truth, ±%.2f %%", rounds, points, 100*share, 100*width/float64(all))
		if share < 0.93 || share > 0.985 {
			t.Errorf("%d rounds: %.1f %% of the intervals hold the truth", rounds, 100*share)
		}
	}
}

// TestTooLittle was read to know how far results are off.
func TestTooLittle(t *testing.T) {
	s := invented(rand.New(rand.NewPCG(1, 1)), 1, 0.001, Point{Experiment: "a", At: 0.9})
	r := s.Results()
	if len(r) != 1 || !math.IsNaN(r[0].HalfWidth) || math.Abs(r[0].Relative-0.9) > 0.01 {
		t.Errorf("%+v", r)
	}
	s.Sessions = nil
	if r := s.Results(); len(r) != 0 {
		t.Errorf("%+v", r)
	}
}

// TestCheck: null points that differ from the baseline are an error; other points may have any energy.
func TestCheck(t *testing.T) {
	null := func(s *Series, at float64) *Series {
		for _, session := range s.Sessions {
			for i, r := range session.Readings {
				if strings.HasPrefix(r.Load, Null) {
					session.Readings[i].PerExecution *= at
				}
			}
		}
		return s
	}
	points := []Point{{Experiment: "a", At: 0.5}, {Experiment: Null, At: 1}, {Experiment: "a", At: 1.5}, {Experiment: "a", At: 0.7}, {Experiment: "a", At: 0.8}}
	rng := rand.New(rand.NewPCG(3, 3))
	for _, c := range []struct {
		noise, at float64
		points    int
		want      bool
	}{
		{0.002, 1, 5, true},
		{0.0001, 1, 5, true},
		{0.0001, 1.01, 5, false}, // far beyond the scatter
		{0.004, 1.005, 5, true},  // within it
		{0.05, 1.2, 5, false},    // within it, but no measurement
		{0.0001, 1.01, 2, true},  // too little was read to tell
		{0.0001, 0.97, 2, false},
	} {
		err := null(invented(rng, 1, c.noise, points[:c.points]...), c.at).Check()
		if (err == nil) != c.want || err != nil && (!errors.Is(err, ErrNull) || !strings.Contains(err.Error(), "copy 1 of the baseline")) {
			t.Errorf("null at %v, noise %v: %v", c.at, c.noise, err)
		}
	}
}
