package pattern

import (
	"fmt"
	"strings"
)

// parser parses a text from left to right.
type parser struct {
	text string
	pos  int
}

// blank characters may separate any two parts.
const blank = " \t\r\n"

func parse(text string) ([]call, error) {
	p := &parser{text: text}
	source, err := p.call(isSource, "a source")
	if err != nil {
		return nil, err
	}
	if p.next() == "" {
		return []call{source}, nil
	}
	if !p.take("|") {
		return nil, p.fail(p.pos, "expected | and a step, found %s", p.found())
	}
	steps, err := p.steps()
	return append([]call{source}, steps...), err
}

func parseSteps(text string) ([]call, error) { return (&parser{text: text}).steps() }

// steps parses one or more steps, to the end of the text.
func (p *parser) steps() (list []call, err error) {
	for {
		step, err := p.call(isStep, "a step")
		if err != nil {
			return nil, err
		}
		list = append(list, step)
		if p.next() == "" {
			return list, nil
		}
		if !p.take("|") {
			return nil, p.fail(p.pos, "expected | and a step, or the end, found %s", p.found())
		}
	}
}

// call parses an operation for which fits is true, with its arguments.
func (p *parser) call(fits func(*Operation) bool, what string) (c call, err error) {
	name, at := p.word()
	op, known := operation(name)
	switch {
	case name == "":
		return c, p.fail(at, "expected %s (%s), found %s", what, list(names(fits)), p.found())
	case !known:
		return c, p.fail(at, "expected %s, found %s%s", what, name, suggest(name, names(fits)))
	case fits(op):
	case op.Source && what == "a step":
		return c, p.fail(at, "expected %s, found %s, which can only come first", what, name)
	case !op.Source:
		return c, p.fail(at, "expected %s, found %s, which is a step: put it after a source and |", what, name)
	default:
		return c, p.fail(at, "expected %s, found %s", list(names(fits)), name)
	}
	c = call{op, make([]any, len(op.Parameters))}
	return c, p.arguments(op, c.args)
}

// word parses up to the next mark or blank.
func (p *parser) word() (word string, at int) {
	p.next()
	at = p.pos
	end := strings.IndexAny(p.text[at:], "(),=|"+blank)
	if end < 0 {
		end = len(p.text) - at
	}
	p.pos += end
	return p.text[at:p.pos], at
}

// next skips blanks and returns the rest of the text.
func (p *parser) next() string {
	rest := strings.TrimLeft(p.text[p.pos:], blank)
	p.pos = len(p.text) - len(rest)
	return rest
}

// take consumes a mark if it is next.
func (p *parser) take(mark string) bool {
	if !strings.HasPrefix(p.next(), mark) {
		return false
	}
	p.pos += len(mark)
	return true
}

// found describes the next word or mark.
func (p *parser) found() string {
	rest := p.next()
	if rest == "" {
		return "the end"
	}
	at := p.pos
	word, _ := p.word()
	p.pos = at
	if word == "" {
		word = rest[:1]
	}
	return fmt.Sprintf("%q", word)
}

func (p *parser) fail(at int, format string, args ...any) error {
	return &SyntaxError{p.text, at, fmt.Sprintf(format, args...)}
}
