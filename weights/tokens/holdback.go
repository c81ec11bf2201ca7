package tokens

import "fmt"

const (
	heldShare    = 4 // one in so many calibration sequences is held back
	fewestToHold = 4 // sequences
)

// HoldBack parts calibration tokens: values are fitted to those of fit, and those of held tell how much
// the fitted values lose. The last quarter is held back, because neighbouring sequences may come from
// one text, which would tell too little about others. Fewer than four sequences are an error.
func (s Set) HoldBack() (fit, held Set, err error) {
	if s.N < fewestToHold {
		return fit, held, fmt.Errorf("%s: part %s: %d sequence%s of %d tokens: too few to choose by; give at least %d sequences, and some 32 000 tokens for a budget of 0.1 %%",
			s.File, s.Purpose, s.N, plural[s.N != 1], s.T, fewestToHold)
	}
	n := s.N - (s.N+heldShare-1)/heldShare
	fit, held = s, s
	fit.Part, held.Part = s.sequences(0, n), s.sequences(n, s.N)
	return fit, held, nil
}

var plural = map[bool]string{true: "s"}
