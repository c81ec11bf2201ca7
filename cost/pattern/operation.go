package pattern

// Operation is a source or a step of the language.
type Operation struct {
	Name       string
	Source     bool // stands first; else a step
	Parameters []Parameter
	Doc        string
	Example    string // a whole pattern with it

	// anyOf is true where at least one of the parameters must be given.
	anyOf bool
	// check finds what is wrong between arguments that are within their ranges: the parameter to
	// blame and what it should be. Nil where nothing can be.
	check func(args []any) (parameter int, msg string)
	// wide tells arguments with which an element needs more than a few of what the step works on.
	// Nil where it never does.
	wide func(args []any) bool
	// turns is true where the result has rows for columns.
	turns bool
	// draw writes the values of a run of elements of one row, in sources that draw every element by
	// itself; those may be the source of a set.
	draw func(values []float64, args []any, row dice, col int)
	// make builds the operation's field on that of the operation before it. Sources with draw
	// have none.
	make func(s *stage, args []any, inner *field) (*field, error)
}

// Parameter of an operation.
type Parameter struct {
	Name string
	Kind Kind
	// Default is the value of a parameter that need not be given, "" where it must be.
	Default string
	// Min and Max bound a Number or an Integer, both included.
	Min, Max float64
	// Words are the values of a Word.
	Words []string
	// Named is true where the value must follow its name, as in low=4.
	Named bool
	Doc   string
}

// Kind is what a parameter's value is.
type Kind string

const (
	Number  Kind = "number" // 0.02, 1e-3, 2^10, 50%
	Integer Kind = "whole number"
	Word    Kind = "word"
	Shape   Kind = "shape"     // 16x16: rows and columns
	Nested  Kind = "source"    // one that draws every element by itself
	Place   Kind = "path:name" // a file or folder and a tensor in it
)

// What arguments are in a call: a float64, an int or a string where they are numbers or words, and
// these.
type (
	shape      struct{ rows, cols int }
	tensorName struct{ path, name string }
)

// call is an operation with an argument for every parameter.
type call struct {
	op   *Operation
	args []any
}

// Values says what a value of the parameter may be.
func (p *Parameter) Values() string {
	switch p.Kind {
	case Word:
		return list(p.Words)
	case Shape:
		return "rows and columns as in 16x16"
	case Nested:
		return list(names(func(o *Operation) bool { return o.draw != nil }))
	case Place:
		return "as in model.safetensors:lm_head.weight"
	}
	text := "a " + string(p.Kind)
	switch {
	case p.Min == -anyNumber:
	case p.Max == anyNumber:
		text += " from " + formatNumber(p.Min) + " on"
	default:
		text += " from " + formatNumber(p.Min) + " to " + formatNumber(p.Max)
	}
	return text
}

// names of the operations that a condition holds for.
func names(is func(*Operation) bool) (list []string) {
	for _, o := range operations {
		if is(o) {
			list = append(list, o.Name)
		}
	}
	return list
}

func isSource(o *Operation) bool { return o.Source }
func isStep(o *Operation) bool   { return !o.Source }

// operation finds one by name.
func operation(name string) (*Operation, bool) {
	for _, o := range operations {
		if o.Name == name {
			return o, true
		}
	}
	return nil, false
}

// local tells operations with which a block costs no more than the block.
func local(calls []call) bool {
	for _, c := range calls {
		if c.op.wide != nil && c.op.wide(c.args) {
			return false
		}
	}
	return true
}
