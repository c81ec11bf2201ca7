package power

import (
	"slices"
	"testing"
	"time"
)

// settling is a load whose execution time falls for a while.
type settling struct {
	*SimLoad
	cold int
}

func (l *settling) Start(n int) error {
	if l.cold > 0 {
		l.kernel.Seconds = 0.001 * (1 + 0.1*float64(l.cold))
		l.cold--
	}
	return l.SimLoad.Start(n)
}

func TestSteadyIsFound(t *testing.T) {
	for _, thermal := range []float64{1, 12, 25} {
		o := DefaultSim()
		o.ThermalTime, o.PowerNoise = thermal, 0.0005
		s := NewSim(o)
		m, err := NewMeter(s, Options{Clock: s})
		if err != nil {
			t.Fatal(err)
		}
		got, err := m.Steady(t.Context(), &settling{s.Load("a", 650, 0.001), 6})
		if err != nil {
			t.Fatal(err)
		}
		if !got.Reached || got.SSE == 0 || got.SSP <= got.SSE {
			t.Fatalf("thermal time %v s: %+v", thermal, got)
		}
		last := got.ExecutionTimes[len(got.ExecutionTimes)-sseBursts:]
		if slices.Max(last) > 1.02*slices.Min(last) || got.ExecutionTimes[0] < 1.3*last[0] {
			t.Errorf("execution times %v did not become constant", got.ExecutionTimes)
		}
		// Power may still rise by the slowest change that counts as constant: sspChange over three windows, for a thermal time.
		if err := s.Load("more", 650, 0.001).Start(200000); err != nil {
			t.Fatal(err)
		}
		if err := s.Sleep(t.Context(), 150*time.Second); err != nil {
			t.Fatal(err)
		}
		rest := s.power/got.Windows[len(got.Windows)-1].Watts - 1
		if allowed := 0.005 + sspChange*thermal/3.5; rest > allowed {
			t.Errorf("thermal time %v s: power still rises by %.1f %%", thermal, 100*rest)
		}
	}
}

func TestSteadyIsBounded(t *testing.T) {
	o := DefaultSim()
	o.AmbientRise = 5
	s := NewSim(o)
	m, err := NewMeter(s, Options{Clock: s, WarmUp: 12 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.Steady(t.Context(), s.Load("a", 500, 0.001))
	if err != nil {
		t.Fatal(err)
	}
	if got.Reached || s.now > 15*time.Second || len(got.Windows) == 0 {
		t.Errorf("reached %v after %v, %d windows", got.Reached, s.now, len(got.Windows))
	}
}
