package power

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// arranged measures three loads at addresses that change their power: 1 %, 0 and −0.5 %. The third load is a variant of
// 495 W, the others draw 500 W.
func arranged(t *testing.T, seed uint64, arrangements int, opt Options) (*Result, []int) {
	t.Helper()
	s := NewSim(SimOptions{
		Seed: seed, Idle: 90, Cap: 700, MaxClock: 2000, MinClock: 300, ClockExponent: 2.5, ReferenceC: 55, Ambient: 28,
		ThermalResistance: 0.05, ThermalTime: 12, Rise: 10 * time.Millisecond, Tick: 100 * time.Millisecond, TickJitter: time.Millisecond,
		Query: 100 * time.Microsecond, PowerNoise: 0.0025, TimeNoise: 0.0005,
	})
	opt.Seed, opt.Clock, opt.Self = seed, s, os.Getpid()
	m, err := NewMeter(s, opt)
	if err != nil {
		t.Fatal(err)
	}
	watts, ofAddress := []float64{500, 500, 495}, []float64{1.01, 1, 0.995}
	loads := []*SimLoad{s.Load("before", 0, 0.001), s.Load("copy", 0, 0.001), s.Load("after", 0, 0.001)}
	var taken []int
	arrange := func(_ context.Context, arrangement int) error {
		taken = append(taken, arrangement)
		for i, l := range loads {
			l.Draw(watts[i]*ofAddress[(i+arrangement)%3], 0)
		}
		return nil
	}
	_ = arrange(t.Context(), 0)
	r, err := m.Compare(t.Context(), Loads{
		Baseline: loads[0], Null: loads[1], Variants: []Load{loads[2]}, Arrangements: arrangements, Arrange: arrange,
	})
	if err != nil {
		t.Fatal(err)
	}
	return r, taken[1:]
}

// TestArrangementsRemoveAddresses: a planted effect of the addresses biases a comparison at fixed addresses, but not one in which
// every load has every address equally often. Intervals have their nominal coverage.
func TestArrangementsRemoveAddresses(t *testing.T) {
	if testing.Short() {
		t.Skip("100 runs")
	}
	t.Parallel()
	const seeds = 100
	holds, null := 0, 0
	for seed := range uint64(seeds) {
		opt := Options{Precision: 1e-6, Time: 52 * time.Second}
		fixed, _ := arranged(t, seed, 1, opt)
		if fixed.Valid || fixed.Null.RelativeEnergy > 0.993 {
			t.Fatalf("seed %d: at fixed addresses the copy takes %v: this test tests nothing", seed, fixed.Null.RelativeEnergy)
		}
		r, taken := arranged(t, seed, 3, opt)
		if len(taken) < 6 || len(taken) != len(r.Blocks) {
			t.Fatalf("%d blocks in arrangements %v", len(r.Blocks), taken)
		}
		for i, b := range r.Blocks {
			if b.Arrangement != i%3 || taken[i] != i%3 {
				t.Fatalf("block %d is in arrangement %d, %d was asked for", i, b.Arrangement, taken[i])
			}
		}
		holds += count(contains(r.Variants[0].Interval, 0.99))
		null += count(contains(r.Null.Interval, 1))
		if v := r.Variants[0].RelativeEnergy; v < 0.987 || v > 0.993 {
			t.Errorf("seed %d: %v, want 0.99", seed, v)
		}
	}
	if holds < seeds*90/100 || null < seeds*90/100 {
		t.Errorf("of %d intervals %d contain the truth, and %d of the copies' contain 1", seeds, holds, null)
	}
}

// TestArrangementsAreAllMeasured: a comparison does not end for its precision before every arrangement was measured, and
// warns if its time was too short for that.
func TestArrangementsAreAllMeasured(t *testing.T) {
	const warning = "1 of 3 arrangements of the memory"
	warned := func(r *Result) bool {
		return slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, warning) })
	}
	if r, _ := arranged(t, 1, 3, Options{Precision: 0.5, Time: time.Second}); !warned(r) || len(r.Blocks) != 1 {
		t.Errorf("%d blocks, warnings %q", len(r.Blocks), r.Warnings)
	}
	if r, _ := arranged(t, 1, 3, Options{Precision: 0.5}); warned(r) || r.Stopped != StoppedPrecision || r.arrangements() != 3 {
		t.Errorf("stopped for %s after %d blocks, warnings %q", r.Stopped, len(r.Blocks), r.Warnings)
	}
	if r, taken := arranged(t, 1, 0, Options{Time: time.Second}); warned(r) || len(taken) > 0 {
		t.Errorf("arrangements %v, warnings %q", taken, r.Warnings)
	}
}

// TestArrangeFails: the comparison ends with the error and keeps what it has measured.
func TestArrangeFails(t *testing.T) {
	s := NewSim(DefaultSim())
	m, err := NewMeter(s, Options{Clock: s, Precision: 1e-6})
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	r, err := m.Compare(t.Context(), Loads{
		Baseline: s.Load("a", 500, 0.001), Null: s.Load("n", 500, 0.001), Arrangements: 2,
		Arrange: func(_ context.Context, arrangement int) error {
			if arrangement == 1 {
				return broken
			}
			return nil
		},
	})
	if !errors.Is(err, broken) || r.Stopped != StoppedFailed || len(r.Blocks) != 1 || r.Null.Blocks != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestGroupsAreHonest: 95 % of the intervals contain the true mean, for any means of the groups.
func TestGroupsAreHonest(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and nothing in it is shared by goroutines")
	}
	const runs = 3000
	ofAddress := [][]float64{{0.02, -0.03, 0.01}, {0.02, -0.03, 0.01, 0.05, -0.05}}
	for _, offsets := range ofAddress {
		for _, each := range []int{2, 4} {
			rng := rand.New(rand.NewPCG(1, uint64(each)))
			missed := 0
			for range runs {
				groups := map[int][]float64{}
				for g, offset := range offsets {
					for range each {
						groups[g] = append(groups[g], offset+0.004*rng.NormFloat64())
					}
				}
				missed += count(!contains(ratioOfGroups(groups, 1).interval, 1))
			}
			if share := float64(missed) / runs; share < 0.04 || share > 0.06 {
				t.Errorf("%d groups of %d: %v of intervals miss the truth, want 0.05", len(offsets), each, share)
			}
		}
	}
	if r := ratioOfGroups(map[int][]float64{0: {0.1}, 1: {0.2}}, 1); r.interval != nil || r.value == 0 {
		t.Errorf("one value a group: %+v", r)
	}
	if r, want := ratioOfGroups(map[int][]float64{3: {0.1, 0.2}}, 1), ratioOf([]float64{0.1, 0.2}, 1); r.value != want.value || !slices.Equal(r.interval, want.interval) {
		t.Errorf("one group: %+v, want %+v", r, want)
	}
}
