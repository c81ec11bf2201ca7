package pattern

import (
	"errors"

	"github.com/lowtoggle/lowtoggle/weights"
)

// Pattern is a source and steps. It is immutable. Patterns with the same canonical text are equal (==). The zero value
// is not a pattern.
type Pattern struct {
	text string // canonical
}

// Spec describes a matrix to make: its type, which must have a weights.Format, its shape, and the seed of all random
// decisions.
type Spec struct {
	DType      weights.DType
	Rows, Cols int
	Seed       uint64
}

var errNoPattern = errors.New("the zero Pattern is not a pattern: make one with Parse")

// Parse reads a pattern. Errors are *SyntaxError.
func Parse(text string) (Pattern, error) {
	calls, err := parse(text)
	if err != nil {
		return Pattern{}, err
	}
	return Pattern{spell(calls)}, nil
}

// MustParse is Parse for valid texts. It panics on others.
func MustParse(text string) Pattern {
	p, err := Parse(text)
	if err != nil {
		panic(err)
	}
	return p
}

// String returns the canonical text: the shortest spelling of every step, without defaults. It parses to an equal
// pattern.
func (p Pattern) String() string { return p.text }

// With appends a step, or several with | between them. Errors are *SyntaxError about step.
func (p Pattern) With(step string) (Pattern, error) {
	if p.text == "" {
		return p, errNoPattern
	}
	calls, err := parseSteps(step)
	if err != nil {
		return Pattern{}, err
	}
	return Pattern{p.text + separator + spell(calls)}, nil
}

// MarshalText returns the canonical text. The zero value is an error.
func (p Pattern) MarshalText() ([]byte, error) {
	if p.text == "" {
		return nil, errNoPattern
	}
	return []byte(p.text), nil
}

// UnmarshalText is Parse.
func (p *Pattern) UnmarshalText(text []byte) (err error) {
	*p, err = Parse(string(text))
	return err
}

// Local reports whether an element of the result needs only a few elements of each step's input, so that
// [Pattern.Block] computes only the block.
func (p Pattern) Local() bool { return local(p.calls()) }

// Tensor returns the file or folder and the name of the tensor that is the pattern's source. ok is false for other
// sources.
func (p Pattern) Tensor() (path, name string, ok bool) {
	calls := p.calls()
	if len(calls) == 0 || len(calls[0].args) == 0 {
		return "", "", false
	}
	t, ok := calls[0].args[0].(tensorName)
	return t.path, t.name, ok
}

// calls parses the canonical text again, in microseconds. A pattern is only its text, so that == compares patterns.
func (p Pattern) calls() []call {
	if p.text == "" {
		return nil
	}
	calls, err := parse(p.text)
	if err != nil {
		panic(err) // it was parsed before
	}
	return calls
}
