package pattern

import (
	"slices"
	"strconv"
	"strings"
)

// arguments parses an operation's arguments, if there are any, into args, and fills in the defaults. args has a place
// for every parameter.
func (p *parser) arguments(op *Operation, args []any) error {
	at := make([]int, len(args)) // positions of the values in the text
	if p.take("(") && !p.take(")") {
		for {
			i, err := p.parameter(op, args)
			if err != nil {
				return err
			}
			p.next()
			at[i] = p.pos
			if args[i], err = p.value(&op.Parameters[i]); err != nil {
				return err
			}
			if p.take(")") {
				break
			}
			if !p.take(",") {
				return p.fail(p.pos, "expected , or ) in %s, found %s", op.Name, p.found())
			}
		}
	}
	end := p.pos // position to report for a missing argument
	if strings.HasSuffix(p.text[:end], ")") {
		end--
	}
	given := slices.ContainsFunc(args, func(a any) bool { return a != nil })
	for i, param := range op.Parameters {
		switch {
		case args[i] != nil:
		case param.Default == "" || op.anyOf && !given:
			return p.fail(end, "%s needs %s", op.Name, needs(op, i))
		default:
			args[i], _ = (&parser{text: param.Default}).value(&param)
		}
	}
	if op.check != nil {
		if i, msg := op.check(args); msg != "" {
			if i < len(at) { // a step without arguments may be wrong too
				end = at[i]
			}
			return p.fail(end, "%s", msg)
		}
	}
	return nil
}

// needs returns the message for a missing parameter i, or for a missing choice among all parameters.
func needs(op *Operation, i int) string {
	q := op.Parameters[i]
	if !op.anyOf {
		return q.Name + ": " + q.Values()
	}
	var all []string
	for _, q := range op.Parameters {
		all = append(all, q.Name+"=")
	}
	return list(all) + " with " + q.Values()
}

// parameter returns the next argument's parameter: the one that the argument names, or the first without a value.
func (p *parser) parameter(op *Operation, args []any) (int, error) {
	name, at := p.word()
	if !p.take("=") {
		p.pos = at
		return p.positional(op, args, name)
	}
	i := slices.IndexFunc(op.Parameters, func(q Parameter) bool { return q.Name == name })
	switch {
	case len(op.Parameters) == 0:
		return 0, p.fail(at, "%s takes no argument", op.Name)
	case i < 0:
		var all []string
		for _, q := range op.Parameters {
			all = append(all, q.Name)
		}
		return 0, p.fail(at, "%s has no parameter %s%s", op.Name, name, suggest(name, all))
	case args[i] != nil:
		return 0, p.fail(at, "%s is given twice", name)
	}
	return i, nil
}

// positional returns the parameter of an argument without a name: the first parameter that has no value and needs no
// name.
func (p *parser) positional(op *Operation, args []any, word string) (int, error) {
	first, fits := -1, false
	var hints []string // other meanings of the word
	for i, q := range op.Parameters {
		if args[i] != nil {
			continue
		}
		_, err := (&parser{text: word}).value(&q)
		if first < 0 && !q.Named {
			first, fits = i, err == nil
		} else if err == nil {
			hints = append(hints, q.Name+"="+word)
		}
	}
	switch {
	case first >= 0 && (fits || hints == nil):
		return first, nil
	case hints != nil:
		return 0, p.fail(p.pos, "expected a name before %s in %s: did you mean %s?", word, op.Name, list(hints))
	case len(op.Parameters) == 0:
		return 0, p.fail(p.pos, "%s takes no argument, found %s", op.Name, p.found())
	}
	return 0, p.fail(p.pos, "expected ) after the arguments of %s, found %s", op.Name, p.found())
}

// value parses a parameter's value.
func (p *parser) value(q *Parameter) (any, error) {
	switch q.Kind {
	case Nested:
		return p.call(func(o *Operation) bool { return o.draw != nil }, "a source")
	case Place:
		return p.place()
	}
	word, at := p.word()
	wrong := func() error {
		found := strconv.Quote(word)
		if word == "" {
			found = p.found()
		}
		return p.fail(at, "expected %s, %s, found %s", q.Name, q.Values(), found)
	}
	switch v, number := parseNumber(word); {
	case q.Kind == Word && slices.Contains(q.Words, word):
		return word, nil
	case q.Kind == Word && word != "":
		return nil, p.fail(at, "found %s%s", word, suggest(word, q.Words))
	case q.Kind == Shape:
		rows, cols, _ := strings.Cut(word, "x")
		r, err := strconv.Atoi(rows)
		c, err2 := strconv.Atoi(cols)
		if err != nil || err2 != nil || min(r, c) < 1 || max(r, c) > mostRows {
			return nil, wrong()
		}
		return shape{r, c}, nil
	case number && (v > q.Max && q.Max == anyNumber || v < q.Min && q.Min == -anyNumber):
		return nil, p.fail(at, "%s is %s, and the largest magnitude is 3.4e38 (float32)", q.Name, word)
	case !number || v < q.Min || v > q.Max:
		return nil, wrong()
	case q.Kind == Number:
		return v, nil
	case v != float64(int(v)):
		return nil, wrong()
	default:
		return int(v), nil
	}
}
