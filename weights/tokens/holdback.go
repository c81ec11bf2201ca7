package tokens

import "fmt"

const (
	heldShare    = 4 // one in 4 calibration sequences is held back
	fewestToHold = 4 // sequences
)

// HoldBack splits calibration tokens in two. A search fits values to fit, and measures their loss on held. held is the last
// quarter of the sequences. It is not every fourth sequence, because neighbouring sequences may come from one text. Fewer
// than four sequences are an error.
func (s Set) HoldBack() (fit, held Set, err error) {
	if s.N < fewestToHold {
		return fit, held, fmt.Errorf("%s: part %s: %d sequence%s of %d tokens: too few for a search: give at least %d sequences, and about 32 000 tokens for a perplexity budget of 0.1 %%",
			s.File, s.Purpose, s.N, plural[s.N != 1], s.T, fewestToHold)
	}
	n := s.N - (s.N+heldShare-1)/heldShare
	fit, held = s, s
	fit.Part, held.Part = s.sequences(0, n), s.sequences(n, s.N)
	return fit, held, nil
}

var plural = map[bool]string{true: "s"}
