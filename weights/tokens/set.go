package tokens

import (
	"errors"
	"fmt"

	"github.com/lowtoggle/lowtoggle/weights"
)

// Purposes of a [Set].
const (
	Calibration = "calibration" // may be used to choose a transform
	Evaluation  = "evaluation"  // may only be used to evaluate a finished transform
)

// ErrNone is wrapped by the errors of calls that need tokens and get none.
var ErrNone = errors.New("give tokens")

// Set is the tokens of one part of a file, with their origin.
type Set struct {
	Part
	Purpose string // Calibration or Evaluation
	File    string // path of the file
	Split   string // a sentence on how the file is divided
}

// Set returns the tokens for a purpose, [Calibration] or [Evaluation]. It returns an error if the file has none, or if Split
// returns an error.
func (f *File) Set(purpose string) (Set, error) {
	calibration, evaluation, how, err := f.Split()
	if err != nil {
		return Set{}, err
	}
	s := Set{evaluation, purpose, f.Path, how}
	if purpose == Calibration {
		s.Part = calibration
	}
	if s.N == 0 {
		return s, weights.FileErrorf(f.Path, "%s: name a tensor %q", how, purpose)
	}
	return s, nil
}

// Predicted returns the number of tokens with a loss: all tokens except the first of each sequence.
func (s Set) Predicted() int { return s.N * (s.T - 1) }

// Error adds the origin of the tokens to err, the error of a model that was evaluated on them; nil stays nil.
func (s Set) Error(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("on the %s tokens of %s: %w", s.Purpose, s.File, err)
}
