package measure

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/power"
)

var surveyed = gemm.Problem{M: 32, N: 48, K: 64, Type: arith.BF16}

// point of weights with that deviation.
func point(name string, sigma float64) Point {
	return Point{name, func(context.Context) (x, w gemm.Matrix, err error) {
		p := product(name, surveyed.M, surveyed.N, surveyed.K, sigma, 1)
		return p.X, p.W, nil
	}}
}

func points(n int) (list []Point) {
	for i := range n {
		list = append(list, point(fmt.Sprint("point ", i), float64(i%2)))
	}
	return list
}

// TestSeries finds the planted energies, in the given order, although leakage makes power drift.
func TestSeries(t *testing.T) {
	o := power.DefaultSim()
	o.AmbientRise = 0.05
	told := 0
	s, err := RunSeries(t.Context(), Simulated(o), surveyed, point("base", 1), points(20), SeriesOptions{Every: 3,
		Done: func(*Session, Reading) error { told++; return nil }})
	if err != nil {
		t.Fatal(err)
	}
	base := product("", surveyed.M, surveyed.N, surveyed.K, 1, 1)
	zeros := simStill / (simStill + simToggling*naiveToggling(base.W))
	all := s.Relative()
	if len(all) != 20 || told != len(s.Readings) || s.SelfTest == nil || !s.Steady || !s.Simulated {
		t.Fatalf("%d of 20 points, told of %d readings of %d: %+v", len(all), told, len(s.Readings), s)
	}
	for i, r := range all {
		want := zeros
		if i%2 == 1 {
			want = 1
		}
		if r.Name != fmt.Sprint("point ", i) || math.Abs(r.Energy-want) > 0.015 || math.Abs(r.Time-1) > 0.01 {
			t.Errorf("%d: %s: energy %.4f, want %.4f; time %.4f", i, r.Name, r.Energy, want, r.Time)
		}
	}
	since := 0
	for i, r := range s.Readings {
		if since++; r.Baseline {
			since = 0
		}
		if first, last := i == 0, i == len(s.Readings)-1; (first || last) && !r.Baseline || since > 3 {
			t.Errorf("reading %d: %d since the baseline's, %+v", i, since, r)
		}
	}
	if v := s.Scatter(); !(v > 0 && v < 0.01) {
		t.Errorf("scatter %v", v)
	}
}

// TestSeriesEnds: after any error the session has the completed readings.
func TestSeriesEnds(t *testing.T) {
	errMade := errors.New("no such operands")
	bad := Point{"bad", func(context.Context) (x, w gemm.Matrix, err error) { return x, w, errMade }}
	nan := Point{"nan", func(context.Context) (x, w gemm.Matrix, err error) {
		p := product("", surveyed.M, surveyed.N, surveyed.K, 1, 1)
		p.W.Data[1], p.W.Data[0] = 0x7f, 0xc0
		return p.X, p.W, nil
	}}
	stop := errors.New("enough")
	for name, c := range map[string]struct {
		points []Point
		done   func(*Session, Reading) error
		want   error
		read   int // points
	}{
		"operands":   {append(points(2), bad), nil, errMade, 2},
		"not finite": {append(points(2), nan), nil, gemm.ErrNotFinite, 2},
		"told to": {points(9), func(s *Session, r Reading) error {
			if r.Load == "point 4" {
				return stop
			}
			return nil
		}, stop, 5},
	} {
		m := &counting{Machine: Simulated(power.DefaultSim())}
		s, err := RunSeries(t.Context(), m, surveyed, point("base", 1), c.points, SeriesOptions{Done: c.done})
		if !errors.Is(err, c.want) || s == nil {
			t.Errorf("%s: %v, error %v", name, s, err)
			continue
		}
		if n := len(s.Relative()); n != c.read {
			t.Errorf("%s: %d points were read, want %d", name, n, c.read)
		}
		if m.closed != m.opened || m.opened != 3 {
			t.Errorf("%s: %d batches of %d were closed", name, m.closed, m.opened)
		}
	}
	if _, err := RunSeries(t.Context(), Simulated(power.DefaultSim()), surveyed, bad, nil, SeriesOptions{}); !errors.Is(err, errMade) {
		t.Error(err)
	}
}

func TestSeriesIsCancelled(t *testing.T) {
	m := Simulated(power.DefaultSim())
	ctx, cancel := context.WithCancel(t.Context())
	simOf(m).At(30*time.Second, cancel)
	s, err := RunSeries(ctx, m, surveyed, point("base", 1), points(100), SeriesOptions{})
	if !errors.Is(err, context.Canceled) || s == nil || len(s.Readings) == 0 || len(s.Readings) > 50 {
		t.Fatalf("%v, error %v", s, err)
	}
	if late := simOf(m).Now() - 30*time.Second; late > time.Second {
		t.Errorf("ended %v after it was cancelled", late)
	}
}

// TestSeriesWithoutPoints reads the baseline.
func TestSeriesWithoutPoints(t *testing.T) {
	s, err := RunSeries(t.Context(), Simulated(power.DefaultSim()), surveyed, point("base", 1), nil, SeriesOptions{})
	if err != nil || len(s.Readings) == 0 || len(s.Relative()) != 0 || !math.IsNaN(s.Scatter()) {
		t.Errorf("%+v, error %v", s, err)
	}
	if strings.Contains(fmt.Sprint(s.Readings), "base") { // it has no name: a point may have any
		t.Error("the baseline's readings are named")
	}
}

// partly returns a point whose first n rows of weights are zero.
func partly(name string, n int) Point {
	return Point{name, func(context.Context) (x, w gemm.Matrix, err error) {
		p := product(name, surveyed.M, surveyed.N, surveyed.K, 1, 1)
		clear(p.W.Data[:n*len(p.W.Data)/surveyed.N])
		return p.X, p.W, nil
	}}
}

// TestSeriesSettles: a window is repeated only if its power differs by more than 4 % from the previous reading.
func TestSeriesSettles(t *testing.T) {
	var list []Point
	for i, n := range []int{0, 8, 0, 10, 0, 8, 0, 10} {
		list = append(list, partly(fmt.Sprint("point ", i), n))
	}
	s, err := RunSeries(t.Context(), Simulated(still()), surveyed, point("base", 1), list, SeriesOptions{Every: len(list) + 1})
	if err != nil {
		t.Fatal(err)
	}
	once, twice := 0.0, math.Inf(1) // largest change of power without a repeated window; least change with one
	for i := 1; i < len(s.Readings); i++ {
		before, r := s.Readings[i-1], s.Readings[i]
		change := math.Abs(r.Watts/before.Watts - 1)
		if pause := r.Begin - before.Begin - before.Length; pause > 2*s.Settle+r.Length {
			twice = min(twice, change)
		} else {
			once = max(once, change)
		}
	}
	if !(0.03 < once && once < 0.04 && 0.04 < twice && twice < 0.06) {
		t.Errorf("one window up to a change of %.4f, two from %.4f on", once, twice)
	}
}
