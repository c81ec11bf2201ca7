package pattern

import (
	"errors"

	"github.com/lowtoggle/lowtoggle/weights"
)

// Pattern is a source and steps. It is immutable. Patterns with equal canonical texts are equal (==). The zero value
// is not a pattern.
type Pattern struct {
	text string // canonical
}

// Spec describes a matrix to generate: its type, which must have a weights.Format, its shape, and the seed of all
// random decisions.
type Spec struct {
	DType      weights.DType
	Rows, Cols int
	Seed       uint64
}

var errNoPattern = errors.New("the zero Pattern is not a pattern: make one with Parse")

// Parse parses a pattern. Errors are *SyntaxError.
func Parse(text string) (Pattern, error) {
	calls, err := parse(text)
	if err != nil {
		return Pattern{}, err
	}
	return Pattern{spell(calls)}, nil
}

// MustParse is Parse for valid texts. It panics on invalid texts.
func MustParse(text string) Pattern {
	p, err := Parse(text)
	if err != nil {
		panic(err)
	}
	return p
}

// String returns the canonical text: the shortest spelling of every step, without defaults. Parsing it gives an equal
// pattern.
func (p Pattern) String() string { return p.text }

// With appends a step, or several steps with | between them. Errors are *SyntaxError about step.
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

// UnmarshalText parses a text like Parse.
func (p *Pattern) UnmarshalText(text []byte) (err error) {
	*p, err = Parse(string(text))
	return err
}

// Local reports whether an element of the result needs only a few elements of each step's input. [Pattern.Block] then
// computes only the block.
func (p Pattern) Local() bool { return local(p.calls()) }

// Tensor returns the file or folder and the tensor's name if the pattern's source is a tensor. For other sources, ok
// is false.
func (p Pattern) Tensor() (path, name string, ok bool) {
	calls := p.calls()
	if len(calls) == 0 || len(calls[0].args) == 0 {
		return "", "", false
	}
	t, ok := calls[0].args[0].(tensorName)
	return t.path, t.name, ok
}

// calls parses the canonical text again, which takes microseconds. A Pattern holds only its text, so that == compares
// patterns.
func (p Pattern) calls() []call {
	if p.text == "" {
		return nil
	}
	calls, err := parse(p.text)
	if err != nil {
		panic(err) // the text was parsed before
	}
	return calls
}
