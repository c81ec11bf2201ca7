package component

import (
	"errors"
	"fmt"
)

// mostOff is the largest relative error on unseen kernels with which a model gives advice, mostOffSplit with which it
// splits power.
const mostOff, mostOffSplit = 0.05, 0.15

// ErrUnfit marks a model whose errors on unseen kernels are too large for advice.
var ErrUnfit = errors.New("its fit is too far off for advice")

// UnseenErrors returns the mean and the worst relative error of predicted power on unseen kernels: on held-out kernels
// or, without these, on the fit's own, each left out in turn. Both are 1 if there are neither.
func (q *Quality) UnseenErrors() (mean, worst float64) {
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

// Verdict returns an [ErrUnfit] if the worst error on unseen kernels exceeds 5 %.
func (m *Model) Verdict() error {
	_, worst := m.Quality.UnseenErrors()
	if worst <= mostOff {
		return nil
	}
	return fmt.Errorf("%s: %w: power of unseen kernels is off by up to %.1f %%, where %.0f %% is allowed", m.Card, ErrUnfit, 100*worst, 100*mostOff)
}

// Splits returns an error if the worst error on unseen kernels exceeds 15 %. Splits would then mean nothing.
func (m *Model) Splits() error {
	_, worst := m.Quality.UnseenErrors()
	if worst <= mostOffSplit {
		return nil
	}
	err := fmt.Errorf("power of unseen kernels is off by up to %.1f %%, where %.0f %% is allowed", 100*worst, 100*mostOffSplit)
	if m.Simulated { // it never fits
		return err
	}
	return fmt.Errorf("%w; measure again with lowtoggle calibrate --components --anew, on a warm card without other processes", err)
}
