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
	// Name is a word of small letters and digits, which begins with a letter. No operation may have it already.
	Name string
	// Parameters are the names of the arguments, which are numbers and must all be given. Default: none.
	Parameters []string
	Doc        string
	// Of returns the step's function for given arguments, one for each parameter. An error names the arguments that are not
	// valid. The function is called from several goroutines, and must return equal results for equal values. What it returns is
	// rounded to the matrix's type; values that are not finite do not reach it.
	Of func(args []float64) (func(v float64) float64, error)
}

var (
	registered  atomic.Pointer[[]*Operation] // besides operations, in the order in which they came
	registering sync.Mutex
	stepName    = regexp.MustCompile(`^[a-z][a-z0-9]*$`)
)

// every returns the operations of the language and those that were registered.
func every() []*Operation {
	if more := registered.Load(); more != nil {
		return slices.Concat(operations, *more)
	}
	return operations
}

// Register adds a step to the language of this program. Patterns that use the step can be parsed from then on; other programs do not
// know them. It is an error if the name is taken or not a name, if a parameter is not a name or occurs twice, or if Doc or Of is missing.
// Register is safe for concurrent use.
func Register(s Step) error {
	registering.Lock()
	defer registering.Unlock()
	if !stepName.MatchString(s.Name) {
		return fmt.Errorf("%q is not a name for a step: use small letters and digits, a letter first", s.Name)
	}
	if _, taken := operation(s.Name); taken {
		return fmt.Errorf("the language has an operation %s already", s.Name)
	}
	if s.Doc == "" || s.Of == nil {
		return fmt.Errorf("the step %s needs Doc, which says what it does, and Of, which does it", s.Name)
	}
	op := &Operation{Name: s.Name, Doc: s.Doc}
	for i, name := range s.Parameters {
		if !stepName.MatchString(name) || slices.Contains(s.Parameters[:i], name) {
			return fmt.Errorf("step %s: parameter %q is not a name, or occurs twice", s.Name, name)
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
			err = errors.New("no function")
		}
		if err != nil {
			return 0, s.Name + ": " + err.Error()
		}
		return 0, ""
	}
	op.make = arithmetic(func(args []any) func(float64) float64 {
		of, _ := s.Of(numbers(args)) // checked when the pattern was parsed
		return of
	})
	more := append(slices.Clone(every()[len(operations):]), op)
	registered.Store(&more)
	return nil
}
