package component

import (
	"errors"
	"fmt"

	"github.com/lowtoggle/lowtoggle/cost/arith"
)

// Limits of errors on unseen kernels. mostOff is the largest mean error of kernels like those that a model advises
// on. mostOffSplit is the largest mean error of a model that splits power. halved is the largest mean error relative
// to the best naive model's. fewUnseen and fewAlike are the least numbers of unseen kernels in the span: of all
// kinds, and of one kind.
const (
	mostOff      = 0.05
	mostOffSplit = 0.15
	halved       = 0.5
	fewUnseen    = 8
	fewAlike     = 2
)

// ErrUnfit marks a model whose errors on unseen kernels, or on some kernels, are unknown or too large for advice.
var ErrUnfit = errors.New("the model's accuracy is too low or unknown")

// UnseenErrors returns the mean and the worst relative error of predicted power on unseen kernels. These are the
// held-out kernels. If there are none, they are the fit's own kernels, each left out in turn. Without both, the
// errors are 1.
func (q *Quality) UnseenErrors() (mean, worst float64) {
	switch {
	case q == nil: // not fitted yet
		return 1, 1
	case q.HeldOut > 0:
		return q.HeldOutMean, q.HeldOutWorst
	case q.LeftOut > 0:
		return q.Mean, q.Worst
	}
	return 1, 1
}

// Verdict returns an [ErrUnfit] unless the model's error on unseen kernels below the power cap is at most half of the
// best naive model's.
func (m *Model) Verdict() error {
	unfit := func(why string, args ...any) error {
		return fmt.Errorf("%s: %w: %s", m.Card, ErrUnfit, fmt.Sprintf(why, args...))
	}
	s := &Span{}
	lowest, highest := m.span()
	if m.Quality != nil && m.Quality.Span != nil {
		s = m.Quality.Span
	}
	switch {
	case s.Kernels < fewUnseen:
		return unfit("too few unseen kernels between %.0f and %.0f W test the model: %d; at least %d are needed", lowest, highest, s.Kernels, fewUnseen)
	case s.Mean > halved*s.BestNaive():
		return unfit("the mean error of predicted power on unseen kernels is %.1f %%; it must be at most half of the best naive model's error of %.1f %% (naive models: constant and power by duty)",
			100*s.Mean, 100*s.BestNaive())
	}
	return nil
}

// trust returns an [ErrUnfit] unless unseen kernels of the same kind are predicted well.
func (m *Model) trust(kernels []Kernel) error {
	alike, kind := m.alike(kernels)
	lowest, highest := m.span()
	var below, all int
	var sum float64
	for i := range m.unseen {
		p := &m.unseen[i]
		if !alike(&p.Reading.Kernel) {
			continue
		}
		all++
		sum += p.Off()
		if p.Spans {
			below++
		}
	}
	switch {
	case below < fewAlike:
		return fmt.Errorf("%s: %w on these kernels: too few unseen kernels of %s between %.0f and %.0f W test the model: %d; at least %d are needed",
			m.Card, ErrUnfit, kind, lowest, highest, below, fewAlike)
	case sum > mostOff*float64(all):
		return fmt.Errorf("%s: %w on these kernels: the mean error of predicted power on %d unseen kernels of %s is %.1f %%; at most %.0f %% is allowed",
			m.Card, ErrUnfit, all, kind, 100*sum/float64(all), 100*mostOff)
	}
	return nil
}

// alike returns the kind of some kernels: a function that reports whether a kernel with a known time is of this kind,
// and the kind's name. A kind is one of the kernels' types together with the bottleneck of most of their time.
func (m *Model) alike(kernels []Kernel) (func(*Kernel) bool, string) {
	types := map[arith.Type]bool{}
	var bound, all float64
	for _, k := range m.all(kernels, m.FullClock) {
		types[k.Type] = true
		all += k.Seconds
		if m.memoryBound(k) {
			bound += k.Seconds
		}
	}
	memory, kind := bound > all/2, "arithmetic"
	if memory {
		kind = "memory"
	}
	if typ := kernels[0].Type; len(types) == 1 && typ != 0 {
		kind = typ.String() + " limited by " + kind
	} else {
		kind = "the same types limited by " + kind
	}
	return func(k *Kernel) bool { return types[k.Type] && m.memoryBound(*k) == memory }, kind
}

// Splits returns an error if the mean error on unseen kernels exceeds 15 %. A split of power would then be
// meaningless.
func (m *Model) Splits() error {
	mean, _ := m.Quality.UnseenErrors()
	if mean <= mostOffSplit {
		return nil
	}
	err := fmt.Errorf("the mean error of predicted power on unseen kernels is %.1f %%; at most %.0f %% is allowed", 100*mean, 100*mostOffSplit)
	if m.Simulated { // it never fits
		return err
	}
	return fmt.Errorf("%w; measure again with lowtoggle calibrate --components --anew, on a warm card without other processes", err)
}
