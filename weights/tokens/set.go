package tokens

import (
	"fmt"

	"github.com/lowtoggle/lowtoggle/weights"
)

// What the tokens of a [Set] are for.
const (
	Calibration = "calibration" // a transform may be chosen by them
	Evaluation  = "evaluation"  // they only evaluate a finished transform
)

// Set is the tokens of one part of a file, and where they come from.
type Set struct {
	Part
	Purpose string // Calibration or Evaluation
	File    string // path of the file
	Split   string // says how the file is divided
}

// Set takes the tokens for a purpose. It fails where the file has none, and where Split does.
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
		return s, weights.FileErrorf(f.Path, "%s: name a tensor %s", how, purpose)
	}
	return s, nil
}

// Predicted is the number of tokens whose loss is known: all but the first of each sequence.
func (s Set) Predicted() int { return s.N * (s.T - 1) }

// Error puts the origin of the tokens before an error of a model that runs over them; nil stays nil.
func (s Set) Error(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("on the %s tokens of %s: %w", s.Purpose, s.File, err)
}
