package profile

import (
	"math"
	"testing"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
)

// TestBursts: the energy of bursts tells the planted power without a trace, although the sensors' filter hides it, and the
// interval holds it.
func TestBursts(t *testing.T) {
	o := quicker
	o.Runs, o.Bursts = 16, 4
	held, all := 0, 0
	for seed := range uint64(4) {
		sim := plain()
		sim.Seed, sim.TickJitter = seed, time.Millisecond
		r := measured(t, measure.Simulated(sim), o, product("still", false))
		p := r.Profiles[0]
		if len(p.Bursts) != len(burstLengths) || len(p.Counted) != len(burstLengths) {
			t.Fatalf("%d lengths of bursts, %d of power", len(p.Bursts), len(p.Counted))
		}
		for i, b := range p.Bursts {
			if len(b.Joules) != o.Bursts || math.Abs(b.Seconds[0]-burstLengths[i].Seconds()) > 1e-3 {
				t.Errorf("seed %d: %d bursts of %v s, planted %d of %v", seed, len(b.Joules), b.Seconds[0], o.Bursts, burstLengths[i])
			}
		}
		for _, c := range p.Counted {
			if all++; c.Low <= planted && planted <= c.High {
				held++
			}
			near(t, "power between bursts", c.Watts, planted, 0.06)
		}
		near(t, "power from the first to the last", p.Counted[len(p.Counted)-1].Watts, planted, 0.02)
	}
	if held < all*3/4 {
		t.Errorf("the intervals hold the planted power %d of %d times", held, all)
	}
}

// TestBurstsAboveTheCap: on a card that first exceeds its cap, the trace and the bursts, which share nothing but the energy
// counter, agree with the planted power of the ramp.
func TestBurstsAboveTheCap(t *testing.T) {
	sim := plain()
	sim.Cap, sim.Overshoot, sim.SwingPeriod, sim.SwingDecay, sim.TickJitter = 400, 0.12, 200*time.Millisecond, 100*time.Millisecond, time.Millisecond
	truth := func(from, to Seconds) (mean float64) {
		const parts = 1000
		for i := range parts {
			at := between(from, to, (float64(i)+0.5)/parts).Seconds()
			mean += sim.Cap * (1 + sim.Overshoot*math.Cos(2*math.Pi*at/sim.SwingPeriod.Seconds())*math.Exp(-at/sim.SwingDecay.Seconds())) / parts
		}
		return mean
	}
	o := Options{Length: 200 * time.Millisecond, Runs: 24, Bursts: 6, Resamples: 20}
	p := measured(t, measure.Simulated(sim), o, product("still", false)).Profiles[0]
	for _, c := range p.Counted {
		watts, low, high := p.Trace.Mean(c.From, c.To)
		want := truth(c.From, c.To)
		near(t, "power by energy alone from "+c.From.String(), c.Watts, want, 0.02)
		near(t, "power by the trace from "+c.From.String(), watts, want, 0.02)
		if both := math.Hypot((high-low)/2, (c.High-c.Low)/2); math.Abs(watts-c.Watts) > 1.5*both {
			t.Errorf("from %v to %v the trace has %.1f W, the bursts %.1f W: ± %.1f together", c.From, c.To, watts, c.Watts, both)
		}
	}
	if first, last := p.Counted[0].Watts, p.Counted[2].Watts; first < last+15 {
		t.Errorf("%.0f W, then %.0f W: no ramp", first, last)
	}
}

// TestBelowTheCap: a GEMV's and a copy's steady power are found on a card with noise whose die warms, and last to the end.
func TestBelowTheCap(t *testing.T) {
	sim := still()
	sim.PowerNoise, sim.ThermalTime, sim.TickJitter = 0.0025, 3, time.Millisecond
	o := Options{Length: 600 * time.Millisecond, Runs: 12, Step: 5 * time.Millisecond, Resamples: 10}
	copied := cuda.Traffic{Name: "copy", Kind: cuda.Copy, Bytes: 500e6}
	r, err := Measure(t.Context(), measure.Simulated(sim), []cuda.Product{product("gemv", false)}, []cuda.Traffic{copied}, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Profiles) != 2 || r.Products[1].Copied != copied.Bytes || r.Products[1].Problem != nil || len(r.Interleaved) != 2 {
		t.Fatalf("%d profiles of %+v", len(r.Profiles), r.Products)
	}
	for i, watts := range []float64{planted, 330} {
		p := r.Profiles[i]
		s := p.Steady.SSP
		if !s.Found || !s.Lasts || s.At > 300*ms || s.Why != "" {
			t.Errorf("%s: %+v", r.Products[i].Name, s)
		}
		near(t, r.Products[i].Name, s.Watts, watts, 0.06) // with leakage
	}
	if !r.Steady() {
		t.Error("it is not steady")
	}
}

// TestCopyAlone: traffic is profiled without a product, and the self-test runs on it.
func TestCopyAlone(t *testing.T) {
	r, err := Measure(t.Context(), measure.Simulated(plain()), nil, []cuda.Traffic{{Name: "copy", Kind: cuda.Copy, Bytes: 500e6}}, quicker)
	if err != nil {
		t.Fatal(err)
	}
	p := r.Profiles[0]
	if r.SelfTest == nil || len(p.Segments) != 1 || p.Advised != 200 || p.Trace == nil {
		t.Errorf("%+v, self-test %v", p.Segments, r.SelfTest)
	}
}

// TestSeveral: of three products each runs from idle and before the next.
func TestSeveral(t *testing.T) {
	o := quicker
	o.Runs = 6
	r := measured(t, measure.Simulated(plain()), o, product("a", false), product("b", true), product("c", false))
	for i, p := range r.Profiles {
		if len(p.Segments) != 2 || p.Segments[0].Product != i || p.Segments[1].Product != (i+1)%3 {
			t.Errorf("profile %d: %+v", i, p.Segments)
		}
	}
	for i, a := range r.Interleaved {
		if a.Other != i || a.Product != (i+1)%3 {
			t.Errorf("interleaved %d: %+v", i, a)
		}
	}
}
