package pattern

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
)

// Step is an operation that a program adds to the language: a function of an element's value.
type Step struct {
	// Name is a word of lower-case letters and digits that begins with a letter. No other operation may have the
	// name.
	Name string
	// Parameters are the names of the arguments. Arguments are numbers, and all must be given. Default: none.
	Parameters []string
	Doc        string
	// Of returns the step's function for given arguments, one for each parameter. The error names invalid arguments.
	// The function is called from several goroutines, and must return equal results for equal values. It gets finite
	// values only. Results are rounded to the matrix's type, and results beyond the type's range become the largest
	// finite value. If the function returns NaN, Generate returns an error.
	Of func(args []float64) (func(v float64) float64, error)
}

var (
	registered  atomic.Pointer[[]*Operation] // in the order of registration
	registering sync.Mutex
	stepName    = regexp.MustCompile(`^[a-z][a-z0-9]*$`)
)

// every returns the language's own operations and the registered ones.
func every() []*Operation {
	if more := registered.Load(); more != nil {
		return slices.Concat(operations, *more)
	}
	return operations
}

// Register adds a step to the language of this program. Patterns with the step can then be parsed; other programs do
// not know the step. It returns an error in these cases: the name is taken or invalid; a parameter's name is invalid
// or occurs twice; Doc or Of is missing. Register is safe for concurrent use.
func Register(s Step) error {
	registering.Lock()
	defer registering.Unlock()
	if !stepName.MatchString(s.Name) {
		return fmt.Errorf("%q is not a name for a step: use lower-case letters and digits, a letter first", s.Name)
	}
	if _, taken := operation(s.Name); taken {
		return fmt.Errorf("an operation named %s exists already: choose another name", s.Name)
	}
	if s.Doc == "" || s.Of == nil {
		return fmt.Errorf("step %s has no Doc (its description) or no Of (its function)", s.Name)
	}
	op := &Operation{Name: s.Name, Doc: s.Doc}
	for i, name := range s.Parameters {
		if !stepName.MatchString(name) || slices.Contains(s.Parameters[:i], name) {
			return fmt.Errorf("step %s: parameter %q is not a valid name, or occurs twice", s.Name, name)
		}
		op.Parameters = append(op.Parameters, number(name, -anyNumber, anyNumber, "of the step"))
	}
	numbers := func(args []any) (list []float64) {
		for _, a := range args {
			list = append(list, a.(float64))
		}
		return list
	}
	op.check = func(args []any) (int, string) {
		of, err := s.Of(numbers(args))
		if err == nil && of == nil {
			err = errors.New("its field Of returned no function")
		}
		if err != nil {
			return 0, s.Name + ": " + err.Error()
		}
		return 0, ""
	}
	op.make = func(stage *stage, args []any, inner *field) (*field, error) {
		of, err := s.Of(numbers(args))
		if err == nil && of == nil {
			err = errors.New("its field Of returned no function") // the parser got a function for these arguments
		}
		if err != nil {
			return nil, fmt.Errorf("step %s: %w", s.Name, err)
		}
		return stage.computed(inner, s.Name, of), nil
	}
	more := append(slices.Clone(every()[len(operations):]), op)
	registered.Store(&more)
	return nil
}

// computed returns a field whose elements a registered step computes from inner's elements.
func (s *stage) computed(inner *field, step string, of func(v float64) float64) *field {
	f, size := s.format, s.format.Bits/8
	type result struct {
		bits uint32
		nan  bool
	}
	element := tabled(s, func(b uint32) result {
		if !f.Finite(b) {
			return result{bits: b}
		}
		v := of(float64(f.Value(b)))
		return result{f.FromValue(float32(v)), v != v}
	})
	out := s.matrix(inner.local, func(dst []byte, rows, cols Range) error {
		if err := inner.fill(dst, rows, cols); err != nil {
			return err
		}
		for i := range len(dst) / size {
			b := f.Elem(dst, i)
			r := element(b)
			if r.nan {
				return fmt.Errorf("step %s: its function returned NaN for %g, and must return a number", step, f.Value(b))
			}
			f.SetElem(dst, i, r.bits)
		}
		return nil
	})
	out.tall = inner.tall
	return out
}
