package search

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/lowtoggle/lowtoggle/transform/plan"
)

// TestWhatATrialSpends: a trial spends the whole budget exactly at the limit of keeping it.
func TestWhatATrialSpends(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		trial := plan.Trial{Divergence: rapid.Float64Range(0, 0.1).Draw(t, "divergence"), Loss: rapid.Float64Range(-0.02, 0.1).Draw(t, "loss")}
		if rapid.Bool().Draw(t, "interval") {
			half := rapid.Float64Range(0, 0.1).Draw(t, "half")
			trial.Interval = &[2]float64{trial.Loss - half, trial.Loss + half}
		}
		most := rapid.Float64Range(1e-3, 0.2).Draw(t, "budget")
		share := spent(&trial, most)
		if keeps(&trial, most) != (share <= 1) && math.Abs(share-1) > 1e-9 {
			t.Fatalf("%+v keeps %g: %v, and spends %g of it", trial, most, keeps(&trial, most), share)
		}
		if more := spent(&trial, 2*most); more > share {
			t.Fatalf("of twice the budget %g is spent, of the budget %g", more, share)
		}
	})
	for want, trial := range map[float64]plan.Trial{
		0.5:  {Divergence: 0.025},
		2:    {Divergence: 0.1, Loss: 0.01, Interval: &[2]float64{0, 0.02}},
		4:    {Divergence: 0.01, Loss: 0, Interval: &[2]float64{-0.2, 0.2}}, // half the width is a quarter of the divergence
		1.25: {Divergence: 0.01, Loss: 0.125, Interval: &[2]float64{0.125, 0.125}},
	} {
		if got := spent(&trial, 0.1); math.Abs(got-want) > 1e-9 {
			t.Errorf("%+v spends %g, want %g", trial, got, want)
		}
	}
}

// TestAimFollowsAPowerLaw: the next aim lies between the known trials, and hits the share if a power law holds.
func TestAimFollowsAPowerLaw(t *testing.T) {
	const most = 0.1
	rapid.Check(t, func(t *rapid.T) {
		power := rapid.Float64Range(0.5, 3).Draw(t, "power")
		spent := func(predicted float64) float64 { return math.Pow(predicted/0.02, power) }
		s := &search{}
		var predicted []float64
		for _, p := range []float64{rapid.Float64Range(0.016, 0.019).Draw(t, "low"), rapid.Float64Range(0.021, 0.024).Draw(t, "high")} {
			predicted = append(predicted, p)
			s.found.Trials = append(s.found.Trials, plan.Trial{Predicted: p, Divergence: spent(p) * Margin * most})
		}
		aim := s.aim(most, 1)
		if !(predicted[0] < aim && aim < predicted[1]) {
			t.Fatalf("%g is not between %v", aim, predicted)
		}
		way := math.Log(1/spent(predicted[0])) / math.Log(spent(predicted[1])/spent(predicted[0]))
		if way > 0.1 && way < 0.9 && math.Abs(spent(aim)-1) > 1e-9 {
			t.Fatalf("the model aimed at spends %g", spent(aim))
		}
	})
	s := &search{}
	if got := s.aim(most, 1); got != Margin*most {
		t.Errorf("without trials the aim is %g", got)
	}
	for _, test := range []struct{ predicted, divergence, want float64 }{
		{0.03, 0.1, 0.015},
		{0.03, 0.025, 0.06},
		{0.03, 50, 0.03 / 16}, // a cliff says little about losses far below
		{0.03, 0, 0.03 * 16},
	} {
		s.found.Trials = []plan.Trial{{Predicted: test.predicted, Divergence: test.divergence}}
		if got := s.aim(most, 1); math.Abs(got-test.want) > 1e-12 {
			t.Errorf("%+v: %g is aimed at", test, got)
		}
	}
}
