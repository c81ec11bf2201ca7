package component

import (
	"errors"
	"fmt"
)

// mostOff is by how much the worst prediction that judges a model may miss where it gives advice,
// mostOffSplit where its splits mean something.
const mostOff, mostOffSplit = 0.05, 0.15

// ErrUnfit marks a model that predicts kernels which it has not seen too badly to advise by.
var ErrUnfit = errors.New("its fit is too far off for advice")

// Judged is by how much predictions miss, on average and at worst, as a share of power: those of held-out
// kernels or, where there are none, of the fit's own, each left out in turn. What nothing judges may be wrong
// by all of its power.
func (q *Quality) Judged() (mean, worst float64) {
	switch {
	case q == nil: // no fit yet
		return 1, 1
	case q.HeldOut > 0:
		return q.HeldOutMean, q.HeldOutWorst
	case q.LeftOut > 0:
		return q.Mean, q.Worst
	}
	return 1, 1
}

// Verdict is an [ErrUnfit] where the worst of predictions that judge the model misses by more than 5 %.
func (m *Model) Verdict() error {
	_, worst := m.Quality.Judged()
	if worst <= mostOff {
		return nil
	}
	return fmt.Errorf("%s: %w: power of kernels that it never saw is wrong by up to %.1f %%, and %.0f %% are allowed", m.Card, ErrUnfit, 100*worst, 100*mostOff)
}

// Splits is an error where they miss by more than 15 %: splits would tell nothing then.
func (m *Model) Splits() error {
	_, worst := m.Quality.Judged()
	if worst <= mostOffSplit {
		return nil
	}
	err := fmt.Errorf("kernels that it never saw are off by up to %.1f %%, and %.0f %% are allowed", 100*worst, 100*mostOffSplit)
	if m.Simulated { // it never fits
		return err
	}
	return fmt.Errorf("%w; on a card that is warm and alone lowtoggle calibrate --components --anew measures it again", err)
}
