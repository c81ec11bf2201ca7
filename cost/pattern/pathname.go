package pattern

import (
	"strconv"
	"strings"
)

// place parses PATH:NAME up to the closing parenthesis, or in quotes, which allow any characters. The last colon
// separates path and name.
func (p *parser) place() (any, error) {
	at := p.pos
	text, err := p.raw()
	if err != nil {
		return nil, err
	}
	colon := strings.LastIndexByte(text, ':')
	if colon < 1 || colon == len(text)-1 {
		return nil, p.fail(at, "expected PATH:NAME, a safetensors file or folder and a tensor in it, found %q", text)
	}
	return tensorName{text[:colon], text[colon+1:]}, nil
}

func (p *parser) raw() (string, error) {
	rest := p.next()
	if strings.HasPrefix(rest, `"`) {
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return "", p.fail(p.pos, "the closing quotation mark is missing")
		}
		p.pos += len(quoted)
		return strconv.Unquote(quoted)
	}
	end := closing(rest)
	if end < 0 {
		return "", p.fail(len(p.text), "expected ) after PATH:NAME, found the end")
	}
	p.pos += end
	return strings.TrimRight(rest[:end], blank), nil
}

// closing returns the position of the first ) without a (, or -1.
func closing(text string) int {
	open := 0
	for i, c := range []byte(text) {
		switch {
		case c == '(':
			open++
		case c == ')' && open == 0:
			return i
		case c == ')':
			open--
		}
	}
	return -1
}

// spellPlace writes PATH:NAME in the syntax of place, in quotes if necessary.
func spellPlace(t tensorName) string {
	text := t.path + ":" + t.name
	if quoted := strconv.Quote(text); quoted != `"`+text+`"` || strings.Trim(text, blank) != text || closing(text+")") != len(text) {
		return quoted
	}
	return text
}
