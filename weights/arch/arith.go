package arch

import (
	"fmt"
	"strconv"
	"strings"
)

// maxDim is the largest dimension, and the largest result of an expression.
const maxDim = 1 << 31

// dim is a number of a config.json, with its source for messages.
type dim struct {
	value  int
	source string
}

func (d dim) String() string {
	if d.source == strconv.Itoa(d.value) {
		return d.source
	}
	if strings.Contains(d.source, " ") { // an expression
		return fmt.Sprintf("%s = %d", d.source, d.value)
	}
	return fmt.Sprintf("%s %d", d.source, d.value)
}

// arith is an arithmetic expression over dims: whole numbers, names, + - * /, parentheses.
type arith struct {
	op          byte // '0' number, 'a' name, or the operator
	text        string
	value       int
	left, right *arith
}

func parseArith(s string) (*arith, error) {
	toks, err := lex(s, "+-*/()")
	if err != nil {
		return nil, err
	}
	p := &parser{toks: toks}
	a, err := p.sum()
	if err == nil && p.peek() != 0 {
		err = p.unexpected("an operator")
	}
	return a, err
}

func (p *parser) sum() (*arith, error) { return p.chain('+', '-', p.quotient) }

func (p *parser) quotient() (*arith, error) { return p.chain('*', '/', p.operand) }

// chain reads operands joined by either of two operators of equal precedence, from left to right.
func (p *parser) chain(op1, op2 byte, operand func() (*arith, error)) (*arith, error) {
	a, err := operand()
	for err == nil && (p.peek() == op1 || p.peek() == op2) {
		op := p.next()
		var b *arith
		if b, err = operand(); err == nil {
			a = &arith{op: op.kind, text: a.text + " " + op.text + " " + b.text, left: a, right: b}
		}
	}
	return a, err
}

func (p *parser) operand() (*arith, error) {
	switch p.peek() {
	case '0', 'a':
		t := p.next()
		a := &arith{op: t.kind, text: t.text}
		if t.kind == '0' {
			var err error
			if a.value, err = parseLength(t); err != nil {
				return nil, err
			}
		}
		return a, nil
	case '(':
		p.next()
		a, err := enclosed(p, p.sum)
		if err == nil && a.left != nil {
			a.text = "(" + a.text + ")"
		}
		return a, err
	}
	return nil, p.unexpected("a name or a number")
}

func parseLength(t token) (int, error) {
	n, err := strconv.Atoi(t.text)
	if err != nil || n > maxDim {
		return 0, fmt.Errorf("column %d: %s is larger than %d", t.column, t.text, maxDim)
	}
	return n, nil
}

// names lists the dims that the expression reads.
func (a *arith) names() []string {
	switch {
	case a == nil:
		return nil
	case a.op == 'a':
		return []string{a.text}
	}
	return append(a.left.names(), a.right.names()...)
}

// eval computes the expression. A division with a remainder is an error, and so is a step whose result is outside 0 to maxDim.
func (a *arith) eval(dims map[string]dim) (dim, error) {
	switch a.op {
	case '0':
		return dim{a.value, a.text}, nil
	case 'a':
		d, ok := dims[a.text]
		if !ok {
			return dim{}, fmt.Errorf("%s has no value in this model", a.text)
		}
		return d, nil
	}
	l, err := a.left.eval(dims)
	if err != nil {
		return dim{}, err
	}
	r, err := a.right.eval(dims)
	if err != nil {
		return dim{}, err
	}
	v := 0
	switch a.op {
	case '+':
		v = l.value + r.value
	case '-':
		v = l.value - r.value
	case '*':
		v = l.value * r.value
	case '/':
		if r.value == 0 || l.value%r.value != 0 {
			return dim{}, fmt.Errorf("%s is not a multiple of %s", l, r)
		}
		v = l.value / r.value
	}
	if v < 0 || v > maxDim {
		return dim{}, fmt.Errorf("%s is %d, outside 0 to %d", a.text, v, maxDim)
	}
	return dim{v, a.text}, nil
}
