package measure

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// cards are simulated ones, each made by its own options.
func cards(options ...func(*power.SimOptions)) (all []Named) {
	for i, set := range options {
		o := power.DefaultSim()
		o.Seed = uint64(i) + 1
		if set != nil {
			set(&o)
		}
		all = append(all, Named{[]string{"card 0", "card 1", "card 2"}[i], Simulated(o)})
	}
	return all
}

// compareTogether compares the same on all.
func compareTogether(ctx context.Context, all []Named, o func(i int) Options) ([]*Result, error) {
	base, variants := pair()
	results := make([]*Result, len(all))
	err := Together(ctx, all, func(ctx context.Context, i int, ready func()) (err error) {
		own := o(i)
		own.Ready = ready
		results[i], err = Compare(ctx, all[i], base, variants, own)
		return err
	})
	return results, err
}

func loadsOf(results []*Result) (names []string, loads [][]power.Comparison) {
	for i, r := range results {
		names, loads = append(names, []string{"card 0", "card 1", "card 2"}[i]), append(loads, r.Loads())
	}
	return names, loads
}

// TestTogether: cards with planted differences differ by these amounts, and totals are over all cards.
func TestTogether(t *testing.T) {
	all := cards(nil, func(o *power.SimOptions) { o.Ambient = 70 }) // what leaks on top, zeros do not save
	results, err := compareTogether(t.Context(), all, func(int) Options { return Options{} })
	if err != nil {
		t.Fatal(err)
	}
	names, loads := loadsOf(results)
	totals, spreads := totalsOf(loads), spreadsOf(names, loads)
	if len(totals) != 3 || totals[0].Name != "normal" || totals[1].Name != "normal (copy)" || totals[2].Name != "zeros" || spreads[2].Name != "zeros" {
		t.Fatalf("loads %+v", totals)
	}
	a, b := results[0], results[1]
	near(t, "watts together", totals[2].Watts, a.Variants[0].Watts+b.Variants[0].Watts, 1e-9)
	near(t, "joules together", totals[0].Joules, a.Baseline.Joules+b.Baseline.Joules, 1e-9)
	near(t, "energy", totals[2].RelativeEnergy, totals[2].Joules/totals[0].Joules, 5e-3)
	if lone := (b.Variants[0].Interval[1] - b.Variants[0].Interval[0]); totals[2].Interval[1]-totals[2].Interval[0] >= lone || totals[0].Interval != nil {
		t.Errorf("an interval of %v together, of %v alone", totals[2].Interval, lone)
	}
	near(t, "time", totals[2].RelativeTime, 1, 1e-3)
	s := spreads[2]
	if s.Differ == nil || !*s.Differ {
		t.Errorf("cards with %v and %v seem alike: %+v", a.Variants[0].Interval, b.Variants[0].Interval, s)
	}
	if s.RelativeEnergy.SmallestCard != "card 0" || s.RelativeEnergy.LargestCard != "card 1" || s.RelativeEnergy.Smallest != a.Variants[0].RelativeEnergy {
		t.Errorf("ratios from %+v, of %v and %v", s.RelativeEnergy, a.Variants[0].RelativeEnergy, b.Variants[0].RelativeEnergy)
	}
	if s.Watts.LargestCard != "card 1" || s.Temperature == nil || s.Clock.Smallest != *a.Variants[0].SMClock && s.Clock.Smallest != *b.Variants[0].SMClock {
		t.Errorf("spread %+v", s)
	}
	if spreads[0].RelativeEnergy != nil || spreads[0].Differ != nil || spreads[0].Joules == nil {
		t.Errorf("the baseline's spread %+v", spreads[0])
	}
}

// TestAlike: cards that differ in their noise alone seem to differ in one run of twenty.
func TestAlike(t *testing.T) {
	const runs = 4000
	for _, cards := range []int{2, 3, 8} {
		rng, found := rand.New(rand.NewPCG(1, uint64(cards))), 0
		for range runs {
			loads := make([][]power.Comparison, cards)
			for i := range loads {
				deviation := 0.001 * (1 + rng.Float64())
				c := power.Comparison{RelativeEnergy: 0.9 + deviation*rng.NormFloat64()}
				c.Interval = []float64{c.RelativeEnergy - 1.96*deviation, c.RelativeEnergy + 1.96*deviation}
				loads[i] = []power.Comparison{c}
			}
			if *differ(loads, 0) {
				found++
			}
		}
		if share := float64(found) / runs; math.Abs(share-0.05) > 0.015 {
			t.Errorf("%d cards seem to differ in %v of all runs", cards, share)
		}
	}
	all := cards(nil, nil)
	results, err := compareTogether(t.Context(), all, func(int) Options { return Options{} })
	if err != nil {
		t.Fatal(err)
	}
	if names, loads := loadsOf(results); *spreadsOf(names, loads)[2].Differ {
		t.Errorf("cards with %v and %v seem to differ", results[0].Variants[0].Interval, results[1].Variants[0].Interval)
	}
}

// endlessAfter measures until it is cancelled, and calls do once so many blocks of three loads are complete.
func endlessAfter(blocks int, do func()) Options {
	o := endless(nil)
	windows := -1 // the stage's beginning is none
	o.Progress = func(e Event) {
		if e.Stage == "measure" {
			if windows++; windows == 6*blocks+1 {
				do()
			}
		}
	}
	return o
}

// TestTogetherCancelled keeps what every card has measured, and the error is the context's.
func TestTogetherCancelled(t *testing.T) {
	all := cards(nil, nil, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var compared sync.WaitGroup
	compared.Add(len(all))
	go func() { compared.Wait(); cancel() }()
	var once [3]sync.Once
	results, err := compareTogether(ctx, all, func(i int) Options {
		return endlessAfter(1, func() { once[i].Do(compared.Done) })
	})
	if !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "card") {
		t.Errorf("error %v", err)
	}
	for i, r := range results {
		if r == nil || r.Stopped != "cancelled" || r.Variants[0].RelativeEnergy == 0 {
			t.Errorf("card %d: %+v", i, r)
		}
	}
}

// TestOneCardFails: it is named, the others end and keep what they measured.
func TestOneCardFails(t *testing.T) {
	all := cards(nil, nil, nil)
	going := make(chan struct{}, 2)
	all[1].Machine = &counting{Machine: all[1].Machine, wrap: func(_ int, b Batch) Batch { return &faultyLater{b, going} }}
	results, err := compareTogether(t.Context(), all, func(i int) Options {
		var once sync.Once
		return endlessAfter(1, func() {
			if i != 1 {
				once.Do(func() { going <- struct{}{} })
			}
		})
	})
	if err == nil || !errors.Is(err, errStart) || !strings.HasPrefix(err.Error(), "card 1: ") || strings.Contains(err.Error(), "card 0") || errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	for i, want := range []string{"cancelled", "failed", "cancelled"} {
		if r := results[i]; r == nil || r.Stopped != want || i != 1 && r.Variants[0].RelativeEnergy == 0 {
			t.Errorf("card %d: %+v, want it %s", i, r, want)
		}
	}
}

// faultyLater cannot be started once the other cards have measured a block.
type faultyLater struct {
	Batch
	going chan struct{}
}

func (f *faultyLater) Start(int) error {
	<-f.going
	<-f.going
	return errStart
}

// TestGate: nobody passes before all participants wait, participants that left are not waited for, and the gate closes again.
func TestGate(t *testing.T) {
	const rounds = 200
	all := cards(nil, nil, nil)
	var passed [3]atomic.Int64
	err := Together(t.Context(), all, func(_ context.Context, i int, ready func()) error {
		for round := range int64(rounds + i) { // the last ones are without the others
			ready()
			for j := range all {
				if n := passed[j].Load(); n < min(round, int64(rounds+j)) {
					t.Errorf("round %d: card %d has passed %d times", round, j, n)
				}
			}
			passed[i].Add(1)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range passed {
		if n := passed[i].Load(); n != int64(rounds+i) {
			t.Errorf("card %d passed %d times", i, n)
		}
	}
}

// TestTogetherOfLittle: a figure that one card lacks is absent from the totals.
func TestTogetherOfLittle(t *testing.T) {
	clock := 1500.0
	whole := []power.Comparison{
		{Summary: power.Summary{Name: "before", Joules: 2, Watts: 600, Seconds: 1e-3, SMClock: &clock}},
		{Summary: power.Summary{Name: "after", Joules: 1, Watts: 600, Seconds: 5e-4, SMClock: &clock}, RelativeEnergy: 0.5, Interval: []float64{0.49, 0.51}, RelativeTime: 0.5, TimeInterval: []float64{0.48, 0.52}},
	}
	without := func(change func(c []power.Comparison)) []power.Comparison {
		other := append([]power.Comparison{}, whole...)
		change(other)
		return other
	}
	names := []string{"a", "b"}
	check := func(other []power.Comparison) (Total, Spread) {
		both := [][]power.Comparison{whole, other}
		return totalsOf(both)[1], spreadsOf(names, both)[1]
	}
	total, spread := check(whole)
	if total.RelativeEnergy != 0.5 || math.Abs(total.Interval[1]-0.5-0.01/math.Sqrt2) > 1e-12 || total.Joules != 2 || total.Watts != 1200 || math.Abs(total.RelativeTime-0.5) > 1e-12 || *spread.Differ {
		t.Errorf("of two that are the same: %+v, %+v", total, spread)
	}
	total, spread = check(without(func(c []power.Comparison) { c[1].Interval = nil }))
	if total.RelativeEnergy != 0.5 || total.Interval != nil || spread.Differ != nil || spread.RelativeEnergy == nil {
		t.Errorf("without an interval: %+v, %+v", total, spread)
	}
	total, spread = check(without(func(c []power.Comparison) { c[1] = power.Comparison{Summary: power.Summary{Name: "after"}} }))
	if total.Name != "after" || total.RelativeEnergy != 0 || total.Joules != 0 || total.Watts != 0 || total.RelativeTime != 0 || spread.RelativeEnergy != nil || spread.Clock != nil {
		t.Errorf("without anything: %+v, %+v", total, spread)
	}
	total, _ = check(without(func(c []power.Comparison) { c[0].Seconds = 0; c[0].Watts = 0 }))
	if total.RelativeTime != 0 || total.RelativeEnergy != 0.5 {
		t.Errorf("without a time: %+v", total)
	}
	// Twice the energy counts twice, and a card that became twice as fast makes twice as many passes.
	total, spread = check(without(func(c []power.Comparison) {
		c[0].Joules, c[1].Joules, c[1].RelativeEnergy, c[1].Interval = 4, 4, 1, []float64{0.99, 1.01}
		c[1].RelativeTime, c[1].TimeInterval = 1, []float64{0.99, 1.01}
	}))
	if math.Abs(total.RelativeEnergy-5.0/6) > 1e-12 || math.Abs(total.RelativeTime-2.0/3) > 1e-12 || !*spread.Differ {
		t.Errorf("of two that differ: %+v, %+v", total, spread)
	}
}
