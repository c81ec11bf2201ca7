package component

import (
	"errors"
	"fmt"
)

// mostOff is by how much the worst prediction of a held-out kernel may miss in a model that gives advice,
// mostOffSplit in one whose splits mean something.
const mostOff, mostOffSplit = 0.05, 0.15

// ErrUnfit marks a model that predicts kernels which it has not seen too badly to advise by.
var ErrUnfit = errors.New("its fit is too far off for advice")

// Verdict is an [ErrUnfit] where held-out kernels are off by more than 5 %. A model that was judged by none
// has none.
func (m *Model) Verdict() error {
	q := m.Quality
	if q == nil || q.HeldOutWorst <= mostOff {
		return nil
	}
	return fmt.Errorf("%s: %w: power of kernels that it never saw is wrong by up to %.1f %%, and %.0f %% are allowed", m.Card, ErrUnfit, 100*q.HeldOutWorst, 100*mostOff)
}

// Splits is an error where held-out kernels are off by more than 15 %: splits would tell nothing then.
func (m *Model) Splits() error {
	q := m.Quality
	if q == nil || q.HeldOutWorst <= mostOffSplit {
		return nil
	}
	return fmt.Errorf("kernels that it never saw are off by up to %.1f %%, and %.0f %% are allowed; on a card that is warm and alone lowtoggle calibrate --components --anew measures it again", 100*q.HeldOutWorst, 100*mostOffSplit)
}
