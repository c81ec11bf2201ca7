package pattern

// Operation is a source or a step of the language.
type Operation struct {
	Name       string
	Source     bool // true for the first operation, false for a step
	Parameters []Parameter
	Doc        string
	Example    string // a whole pattern with the operation

	// anyOf is true if at least one of the parameters must be given.
	anyOf bool
	// check compares arguments that are within their ranges. It returns the wrong parameter and its valid values.
	// nil: all combinations are valid.
	check func(args []any) (parameter int, msg string)
	// wide reports arguments for which an element needs more than a few elements of the step's input. nil: none.
	wide func(args []any) bool
	// turns is true if the result is transposed.
	turns bool
	// draw writes the values of a run of elements of one row, for sources with independent random elements. Only
	// these may be the source of a set.
	draw func(values []float64, args []any, row dice, col int)
	// make returns the operation's field, built on the field of the previous operation. Sources with draw have no
	// make.
	make func(s *stage, args []any, inner *field) (*field, error)
}

// Parameter is a parameter of an operation.
type Parameter struct {
	Name string
	Kind Kind
	// Default is the value of an optional parameter, "" for a required one.
	Default string
	// Min and Max are the inclusive limits of a Number or an Integer.
	Min, Max float64
	// Words are the values of a Word.
	Words []string
	// Named is true if the value must follow its name, as in low=4.
	Named bool
	Doc   string
}

// Kind is the type of a parameter's value.
type Kind string

const (
	Number  Kind = "number" // 0.02, 1e-3, 2^10, 50%
	Integer Kind = "whole number"
	Word    Kind = "word"
	Shape   Kind = "shape"     // 16x16: rows and columns
	Nested  Kind = "source"    // a source with independent random elements
	Place   Kind = "path:name" // a file or folder and a tensor in it
)

// Types of arguments in a call, besides float64, int and string.
type (
	shape      struct{ rows, cols int }
	tensorName struct{ path, name string }
)

// call is an operation with an argument for every parameter.
type call struct {
	op   *Operation
	args []any
}

// Values describes the valid values of the parameter.
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

// names returns the names of the operations for which is is true.
func names(is func(*Operation) bool) (list []string) {
	for _, o := range every() {
		if is(o) {
			list = append(list, o.Name)
		}
	}
	return list
}

func isSource(o *Operation) bool { return o.Source }
func isStep(o *Operation) bool   { return !o.Source }

// operation returns the operation of a name.
func operation(name string) (*Operation, bool) {
	for _, o := range every() {
		if o.Name == name {
			return o, true
		}
	}
	return nil, false
}

// local reports whether all operations need only a block of the input for a block of the result.
func local(calls []call) bool {
	for _, c := range calls {
		if c.op.wide != nil && c.op.wide(c.args) {
			return false
		}
	}
	return true
}
