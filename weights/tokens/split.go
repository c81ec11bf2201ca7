package tokens

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/weights"
)

// Words in tensors' names, in any case.
var (
	calibrationWords = []string{"calib", "train", "search"}
	evaluationWords  = []string{"eval", "test", "valid", "judge", "held"}
)

// purpose is the purpose of a part.
type purpose int

const (
	unnamed     purpose = iota // the name gives no purpose, or both
	calibrating                // to choose a transform
	evaluating                 // to measure the result
)

func (p Part) purpose() purpose {
	name := strings.ToLower(p.Name)
	says := func(word string) bool { return strings.Contains(name, word) }
	switch s, j := slices.ContainsFunc(calibrationWords, says), slices.ContainsFunc(evaluationWords, says); {
	case s && !j:
		return calibrating
	case j && !s:
		return evaluating
	}
	return unnamed
}

// Split returns the tokens for calibration, which choose a transform, and the tokens for evaluation, which measure its loss.
// how is a sentence that says which tokens are for which purpose.
//
// The tensors' names decide. If they give only one purpose, the part for the other purpose is empty. A single tensor whose
// name gives no purpose is cut in half: the first half of its sequences, or of its only sequence, is for calibration. Several
// tensors whose names give no purpose are an error.
//
// For a File without parts, such as the zero File, the error wraps [ErrNone].
func (f *File) Split() (calibration, evaluation Part, how string, err error) {
	if f == nil || len(f.Parts) == 0 {
		return Part{}, Part{}, "", fmt.Errorf("the token file has no tokens: read a file with tokens.Open (%w)", ErrNone)
	}
	parts := map[purpose][]Part{}
	for _, p := range f.Parts {
		parts[p.purpose()] = append(parts[p.purpose()], p)
	}
	if len(f.Parts) == 1 && len(parts[unnamed]) == 1 {
		return f.cut(f.Parts[0])
	}
	if len(parts[calibrating]) > 1 || len(parts[evaluating]) > 1 || len(parts[calibrating])+len(parts[evaluating]) == 0 {
		return Part{}, Part{}, "", weights.FileErrorf(f.Path, "the names of the tensors %s must give one tensor for calibration and one for evaluation: name one tensor \"calibration\" and one \"evaluation\"", names(f.Parts))
	}
	said := []string{"no tokens are named for calibration", "no tokens are named for evaluation"}
	if len(parts[calibrating]) == 1 {
		calibration = parts[calibrating][0]
		said[0] = fmt.Sprintf("a conversion chooses its changes with %s", calibration)
	}
	if len(parts[evaluating]) == 1 {
		evaluation = parts[evaluating][0]
		said[1] = fmt.Sprintf("%s is for tests of the result", evaluation)
	}
	if left := parts[unnamed]; len(left) > 0 {
		said = append(said, fmt.Sprintf("not used, because a name gives no purpose or both purposes: %s", names(left)))
	}
	return calibration, evaluation, strings.Join(said, "; "), nil
}

// cut returns the first half of p for calibration and the second half for evaluation.
func (f *File) cut(p Part) (calibration, evaluation Part, how string, err error) {
	if p.N > 1 {
		calibration, evaluation = p.sequences(0, p.N/2), p.sequences(p.N/2, p.N)
		how = fmt.Sprintf("the first %d of the %d sequences of %q are for calibration, the others for evaluation", calibration.N, p.N, p.Name)
		if p.N < 4 { // the first half is one sequence
			how = fmt.Sprintf("the first of the %d sequences of %q is for calibration, the rest for evaluation", p.N, p.Name)
		}
		return calibration, evaluation, how, nil
	}
	if p.T < 4 {
		return Part{}, Part{}, "", weights.FileErrorf(f.Path, "tensor %q has %d tokens: give at least four, two for calibration and two for evaluation", p.Name, p.T)
	}
	tokens, half := p.Sequences[0], p.T/2
	calibration = Part{p.Name, 1, half, [][]int32{tokens[:half:half]}}
	evaluation = Part{p.Name, 1, p.T - half, [][]int32{tokens[half:]}}
	how = fmt.Sprintf("the first %d of the %d tokens of %q are for calibration, the others for evaluation", calibration.T, p.T, p.Name)
	return calibration, evaluation, how, nil
}

// First returns the first n sequences: none if n is negative, all if there are fewer.
func (p Part) First(n int) Part { return p.sequences(0, max(0, min(n, len(p.Sequences)))) }

// sequences returns the part with the sequences [from, to).
func (p Part) sequences(from, to int) Part {
	return Part{p.Name, to - from, p.T, p.Sequences[from:to:to]}
}

// String returns the part's name, sequences and tokens for messages.
func (p Part) String() string {
	if p.N == 1 {
		return fmt.Sprintf("%q (1 sequence of %d tokens)", p.Name, p.T)
	}
	return fmt.Sprintf("%q (%d sequences of %d tokens)", p.Name, p.N, p.T)
}

func names(parts []Part) string {
	quoted := make([]string, len(parts))
	for i, p := range parts {
		quoted[i] = fmt.Sprintf("%q", p.Name)
	}
	return strings.Join(quoted, ", ")
}
