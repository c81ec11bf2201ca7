package rounding

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
	"pgregory.net/rapid"
)

// significantBits returns the significant bits of a value, computed from the number alone.
func significantBits(v float32) int {
	if v == 0 {
		return 0
	}
	frac, _ := math.Frexp(math.Abs(float64(v)))
	n := 0
	for frac != 0 {
		frac *= 2
		frac -= math.Floor(frac)
		n++
	}
	return n
}

// drawRates draws rates that do not fall from one bit on.
func drawRates(t *rapid.T, f weights.Format) Rates {
	cost := rapid.Float64Range(0, 1)
	r := Rates{Significant: []float64{cost.Draw(t, "zero")}}
	sum := 0.0
	for range f.MantBits + 1 {
		sum += cost.Draw(t, "bit")
		r.Significant = append(r.Significant, sum)
	}
	return r
}

// cost returns the cost of one value, in float64.
func (c Trellis) cost(t, v float32, d float64) float64 {
	e := float64(t) - float64(v)
	return c.Scale*d*e*e + c.Lambda*c.Rates.Significant[significantBits(v)]
}

// TestTrellisAgainstAllValues: without coupling, no value of the format is better than the chosen one.
func TestTrellisAgainstAllValues(t *testing.T) {
	if testing.Short() {
		t.Skip("slow, and without shared data for the race detector")
	}
	rapid.Check(t, func(t *rapid.T) {
		f := format(t, rapid.SampledFrom([]weights.DType{
			weights.BF16, weights.BF16, weights.F16, weights.F8E4M3, weights.F8E5M2, weights.I8}).Draw(t, "type"))
		c := Trellis{Format: f, Rates: drawRates(t, f)}
		c.Lambda = math.Exp2(rapid.Float64Range(-30, 3).Draw(t, "log λ"))
		c.Scale = math.Exp2(rapid.Float64Range(-3, 3).Draw(t, "log scale"))
		d := math.Exp2(rapid.Float64Range(-5, 5).Draw(t, "log D"))
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "targets"), 0))
		size := math.Exp2(rapid.Float64Range(-20, 12).Draw(t, "log size"))
		targets := make([]float32, 8)
		for i := range targets {
			targets[i] = float32(size * rng.NormFloat64())
		}
		got := choose(t, c, targets, d)
		for i, target := range targets {
			if got[i] != stored(f, got[i]) {
				t.Fatalf("%g is no value of %s", got[i], f.DType)
			}
			chosen := c.cost(target, got[i], d)
			for b := range uint32(1) << f.Bits {
				if !f.Finite(b) {
					continue
				}
				if v := f.Value(b); c.cost(target, v, d) < chosen*(1-1e-6)-1e-37 {
					t.Fatalf("%s: %g for %g costs %g, %g costs %g", f.DType, got[i], target, chosen, v, c.cost(target, v, d))
				}
			}
		}
	})
}

// TestFastPathAgrees: normal and any find equally good values, for all targets of both.
func TestFastPathAgrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := format(t, rapid.SampledFrom(floats).Draw(t, "type"))
		c := Trellis{Format: f, Rates: drawRates(t, f), Lambda: math.Exp2(rapid.Float64Range(-30, 3).Draw(t, "log λ")), Scale: 1}
		p := newPrices(c)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "targets"), 0))
		for range 300 {
			mag := max(p.from, math.Float32bits(1e-9))
			mag += uint32(rng.Uint64N(uint64(min(p.to, math.Float32bits(1e9)) - mag)))
			if rng.IntN(2) == 0 { // few bits
				mag = max(p.from, mag>>20<<20)
			}
			x := math.Float32frombits(mag)
			a, b := math.Float32frombits(p.normal(mag, 1)), math.Float32frombits(p.any(x, 1))
			if least, other := c.cost(x, a, 1), c.cost(x, b, 1); math.Abs(least-other) > 1e-6*least {
				t.Fatalf("%s: %g becomes %g, which costs %g, and %g, which costs %g", f.DType, x, a, least, b, other)
			}
		}
	})
}

// pair returns the cost of a step.
func (c Trellis) pair(a, b float32) float64 {
	switch {
	case a == b:
		return 0
	case math.Signbit(float64(a)) != math.Signbit(float64(b)):
		return c.Lambda * (c.Rates.Differ + c.Rates.Sign)
	default:
		return c.Lambda * c.Rates.Differ
	}
}

// laneCost returns the cost of values for the targets of a lane.
func (c Trellis) laneCost(targets, values []float32, d float64) (sum float64) {
	for i, v := range values {
		sum += c.cost(targets[i], v, d)
		if i > 0 {
			sum += c.pair(values[i-1], v)
		}
	}
	return sum
}

// drawLane draws a coupled chooser, D and targets.
func drawLane(t *rapid.T, f weights.Format, n int) (Trellis, float64, []float32) {
	c := Trellis{Format: f, Rates: drawRates(t, f)}
	c.Rates.Differ = rapid.Float64Range(0.01, 1).Draw(t, "differ")
	c.Rates.Sign = rapid.Float64Range(0, 1).Draw(t, "sign")
	c.Rates.Run = n
	c.Lambda = math.Exp2(rapid.Float64Range(-12, 0).Draw(t, "log λ"))
	c.Scale = 1
	size := math.Exp2(rapid.Float64Range(-2, 1).Draw(t, "log size"))
	if !f.IsFloat() {
		size *= 8
		c.Scale = 1. / 64
	}
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "targets"), 0))
	targets := make([]float32, n)
	for i := range targets {
		targets[i] = float32(size * rng.NormFloat64())
	}
	return c, math.Exp2(rapid.Float64Range(-3, 3).Draw(t, "log D")), targets
}

// TestCoupledAgainstAllPaths: Viterbi's path costs at most as much as the cheapest path through the candidates.
// (Repeated values may make it cheaper; TestCoupledAgainstAllValues limits this.)
func TestCoupledAgainstAllPaths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := format(t, rapid.SampledFrom(allTypes).Draw(t, "type"))
		rows := 4
		if f.Bits > 8 && f.DType != weights.BF16 {
			rows = 2 // other formats have many candidates
		}
		c, d, targets := drawLane(t, f, rows)
		list := candidatesOf(f)
		states := make([][]float32, len(targets))
		for i, target := range targets {
			var slots [maxSlots]uint32
			states[i] = append(states[i], 0)
			list.list(&slots, list.clamp(target))
			for _, b := range slots[:list.slots] {
				if b != 0 {
					states[i] = append(states[i], math.Float32frombits(b))
				}
			}
		}
		least, path := math.Inf(1), make([]float32, len(targets))
		var try func(i int)
		try = func(i int) {
			if i == len(targets) {
				least = min(least, c.laneCost(targets, path, d))
				return
			}
			for _, path[i] = range states[i] {
				try(i + 1)
			}
		}
		try(0)
		got := choose(t, c, targets, d)
		if cost := c.laneCost(targets, got, d); cost > least*(1+1e-5) {
			t.Fatalf("%s: %v for %v costs %g, the cheapest path %g", f.DType, got, targets, cost, least)
		}
	})
}

// lane is a problem drawn by drawLane.
type lane struct {
	Trellis
	d       float64
	targets []float32
}

// TestCoupledAgainstAllValues: with all values of the format as candidates, a full Viterbi search is hardly better.
func TestCoupledAgainstAllValues(t *testing.T) {
	if testing.Short() {
		t.Skip("slow, and without shared data for the race detector")
	}
	lanes := rapid.Custom(func(t *rapid.T) lane {
		f := format(t, rapid.SampledFrom([]weights.DType{weights.F8E4M3, weights.F8E5M2, weights.I8}).Draw(t, "type"))
		c, d, targets := drawLane(t, f, 16)
		c.Rates.Differ /= 4
		c.Rates.Sign /= 4
		return lane{c, d, targets}
	})
	var got, best float64
	for seed := range 200 {
		l := lanes.Example(seed)
		least, cost := l.cheapest(), l.laneCost(l.targets, choose(t, l, l.targets, l.d), l.d)
		if cost < least*(1-1e-5) {
			t.Fatalf("a path costs %g, less than the cheapest, %g", cost, least)
		}
		got += cost
		best += least
	}
	if got > 1.025*best {
		t.Errorf("paths cost %.2f %% more than the cheapest", 100*(got/best-1))
	}
	t.Logf("paths cost %.2f %% more than the cheapest", 100*(got/best-1))
}

// cheapest returns the cost of the cheapest path through all values of the format.
func (l lane) cheapest() float64 {
	var all []float32
	for b := range uint32(1) << l.Format.Bits {
		if v := l.Format.Value(b); l.Format.Finite(b) && (v != 0 || b == 0) {
			all = append(all, v)
		}
	}
	last := make([]float64, len(all))
	for i, target := range l.targets {
		now := make([]float64, len(all))
		for j, v := range all {
			now[j] = math.Inf(1)
			for k := range all {
				step := 0.0
				if i > 0 {
					step = l.pair(all[k], v)
				}
				now[j] = min(now[j], last[k]+step)
			}
			now[j] += l.cost(target, v, l.d)
		}
		last = now
	}
	return slices.Min(last)
}

// TestLanes: each lane's choices are those of the lane alone, for any number of lanes and rows in a run.
func TestLanes(t *testing.T) {
	f := format(t, weights.BF16)
	rapid.Check(t, func(t *rapid.T) {
		c, d, targets := drawLane(t, f, 64)
		count, run := rapid.SampledFrom([]int{0, 1, 2, 3, 4, 8}).Draw(t, "lanes"), rapid.SampledFrom([]int{1, 2, 4, 8}).Draw(t, "run")
		c.Rates.Run, c.Rates.Lanes = run, count
		if count == 0 {
			count = 2 // the default number of lanes
		}
		got := choose(t, c, targets, d)
		lanes, chosen := make([][]float32, count), make([][]float32, count)
		for n, target := range targets {
			l := n / run % count
			lanes[l] = append(lanes[l], target)
			chosen[l] = append(chosen[l], got[n])
		}
		c.Rates.Run, c.Rates.Lanes = 64, 1
		for l, lane := range lanes {
			if len(lane) == 0 {
				continue
			}
			for i, v := range choose(t, c, lane, d) {
				if v != chosen[l][i] {
					t.Fatalf("row %d of lane %d is %g, by itself %g", i, l, chosen[l][i], v)
				}
			}
		}
	})
}
