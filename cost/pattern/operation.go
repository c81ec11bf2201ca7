package pattern

// Operation is a source or a step of the language.
type Operation struct {
	Name       string
	Source     bool // the first operation; else a step
	Parameters []Parameter
	Doc        string
	Example    string // a whole pattern with it

	// anyOf reports that at least one of the parameters must be given.
	anyOf bool
	// check compares arguments that are within their ranges. It returns the wrong parameter and its valid values.
	// nil: nothing can be wrong.
	check func(args []any) (parameter int, msg string)
	// wide reports arguments with which an element needs more than a few elements of the step's input. nil: never.
	wide func(args []any) bool
	// turns reports that the result is transposed.
	turns bool
	// draw writes the values of a run of elements of one row, in sources that draw every element independently. Only
	// these may be the source of a set.
	draw func(values []float64, args []any, row dice, col int)
	// make builds the operation's field on that of the operation before it. Sources with draw have none.
	make func(s *stage, args []any, inner *field) (*field, error)
}

// Parameter is a parameter of an operation.
type Parameter struct {
	Name string
	Kind Kind
	// Default is the value of an optional parameter, "" for a required one.
	Default string
	// Min and Max bound a Number or an Integer, both included.
	Min, Max float64
	// Words are the values of a Word.
	Words []string
	// Named reports that the value must follow its name, as in low=4.
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
	Nested  Kind = "source"    // one that draws every element independently
	Place   Kind = "path:name" // a file or folder and a tensor in it
)

// Arguments in a call are float64, int, string, or one of these.
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

// names returns the names of the operations with a property.
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

// operation finds an operation by name.
func operation(name string) (*Operation, bool) {
	for _, o := range every() {
		if o.Name == name {
			return o, true
		}
	}
	return nil, false
}

// local reports operations with which a block needs only a block of the input.
func local(calls []call) bool {
	for _, c := range calls {
		if c.op.wide != nil && c.op.wide(c.args) {
			return false
		}
	}
	return true
}
