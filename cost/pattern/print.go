package pattern

import (
	"fmt"
	"strings"
)

// separator separates the operations of a canonical text.
const separator = " | "

// spell returns the canonical text of operations: arguments in the table's order, without defaults. Names are left
// out until an argument is omitted.
func spell(calls []call) string {
	var list []string
	for _, c := range calls {
		list = append(list, c.String())
	}
	return strings.Join(list, separator)
}

func (c call) String() string {
	var args []string
	omitted := false
	for i, p := range c.op.Parameters {
		text := spellValue(c.args[i])
		switch {
		case p.Default != "" && text == spellDefault(&p):
			omitted = true
		case omitted || p.Named:
			args = append(args, p.Name+"="+text)
		default:
			args = append(args, text)
		}
	}
	if args == nil && c.op.anyOf { // all arguments are defaults, and one must be given
		args = []string{c.op.Parameters[0].Name + "=" + c.op.Parameters[0].Default}
	}
	if args == nil {
		return c.op.Name
	}
	return c.op.Name + "(" + strings.Join(args, ",") + ")"
}

func spellDefault(p *Parameter) string {
	v, err := (&parser{text: p.Default}).value(p)
	if err != nil {
		panic(err) // the table is wrong
	}
	return spellValue(v)
}

func spellValue(v any) string {
	switch v := v.(type) {
	case float64:
		return formatNumber(v)
	case int:
		return formatNumber(float64(v))
	case string:
		return v
	case shape:
		return fmt.Sprintf("%dx%d", v.rows, v.cols)
	case tensorName:
		return spellPlace(v)
	}
	return v.(call).String()
}
