package arch

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// token is a word of an expression: kind 'a' is a name, '0' an integer, 0 the end, and any other
// kind is that symbol itself.
type token struct {
	kind   byte
	text   string
	column int // 1-based
}

// maxNesting is the largest depth of nested parentheses. It bounds the parser's recursion.
const maxNesting = 16

// lex splits an expression into tokens; the last token is the end. Each character of symbols is a token of its own.
func lex(s, symbols string) ([]token, error) {
	var toks []token
	for i := 0; i < len(s); {
		start, c := i, s[i]
		switch {
		case c == ' ':
			i++
			continue
		case isLetter(c):
			for i < len(s) && (isLetter(s[i]) || isDigit(s[i])) {
				i++
			}
			c = 'a'
		case isDigit(c):
			for i < len(s) && isDigit(s[i]) {
				i++
			}
			c = '0'
		case strings.IndexByte(symbols, c) >= 0:
			i++
		default:
			r, _ := utf8.DecodeRuneInString(s[i:])
			return nil, fmt.Errorf("column %d: unexpected %q", i+1, r)
		}
		toks = append(toks, token{c, s[start:i], start + 1})
	}
	return append(toks, token{0, "", len(s) + 1}), nil
}

func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }

// parser walks over tokens.
type parser struct {
	toks  []token
	depth int
}

func (p *parser) peek() byte { return p.toks[0].kind }

// next returns the next token and moves past it, but never past the end.
func (p *parser) next() token {
	t := p.toks[0]
	if t.kind != 0 {
		p.toks = p.toks[1:]
	}
	return t
}

// accept moves past the next token and returns true if the token is the given symbol.
func (p *parser) accept(kind byte) bool {
	if p.peek() != kind {
		return false
	}
	p.next()
	return true
}

// unexpected returns the error for the next token; want describes the token that is needed in its place.
func (p *parser) unexpected(want string) error {
	t := p.toks[0]
	if t.kind == 0 {
		return fmt.Errorf("column %d: the text ends, but needs %s here", t.column, want)
	}
	return fmt.Errorf("column %d: found %q, but needs %s here", t.column, t.text, want)
}

// enclosed reads an expression in parentheses. The opening parenthesis is already read.
func enclosed[T any](p *parser, inner func() (T, error)) (T, error) {
	if p.depth++; p.depth > maxNesting {
		var none T
		return none, fmt.Errorf("column %d: more than %d nested parentheses", p.toks[0].column, maxNesting)
	}
	v, err := inner()
	if err == nil && !p.accept(')') {
		err = p.unexpected(`")"`)
	}
	p.depth--
	return v, err
}
