package weights

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// walker reads JSON token by token, because encoding/json would accept duplicate keys silently.
type walker struct {
	dec     *json.Decoder
	js      []byte
	start   int64  // byte of the file at which the JSON begins
	at      int    // byte of the JSON at which the latest token begins
	current string // the tensor being read
}

// newWalker returns a walker before the first token of js. The first byte of js is byte start of its file. Invalid UTF-8 is an
// error, because encoding/json would replace it.
func newWalker(js []byte, start int64) (*walker, error) {
	for i := 0; i < len(js); {
		r, size := utf8.DecodeRune(js[i:])
		if r == utf8.RuneError && size == 1 {
			return nil, &FormatError{Offset: start + int64(i), Msg: fmt.Sprintf("invalid UTF-8: 0x%02x", js[i])}
		}
		i += size
	}
	p := &walker{dec: json.NewDecoder(bytes.NewReader(js)), js: js, start: start}
	p.dec.UseNumber()
	return p, nil
}

func (p *walker) fail(format string, args ...any) error {
	return &FormatError{Tensor: p.current, Offset: p.start + int64(p.at), Msg: fmt.Sprintf(format, args...)}
}

const jsonSpace = " \t\r\n"

// mark records where the next token begins, because the decoder only reports where a token ends.
func (p *walker) mark() {
	rest := bytes.TrimLeft(p.js[p.dec.InputOffset():], jsonSpace)
	if len(rest) > 0 && (rest[0] == ',' || rest[0] == ':') {
		rest = bytes.TrimLeft(rest[1:], jsonSpace)
	}
	p.at = len(p.js) - len(rest)
}

func (p *walker) token() (json.Token, error) {
	p.mark()
	t, err := p.dec.Token()
	return t, p.syntax(err)
}

// syntax returns the decoder's error with the byte of the failing token, because the decoder's own offsets do not count earlier
// tokens.
func (p *walker) syntax(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*json.SyntaxError](err); ok {
		return p.fail("invalid JSON: %v", err)
	}
	return p.fail("invalid JSON: it ends too early: copy the file again")
}

// skip reads and ignores a value of any kind.
func (p *walker) skip() error {
	p.mark()
	var ignored json.RawMessage
	return p.syntax(p.dec.Decode(&ignored))
}

// end returns an error if anything follows the value.
func (p *walker) end() error {
	rest := bytes.TrimLeft(p.js[p.dec.InputOffset():], jsonSpace)
	if len(rest) == 0 {
		return nil
	}
	p.at = len(p.js) - len(rest)
	return p.fail("%q follows the closing brace", rest[:1])
}

// delim reads an opening or closing bracket; what names the value in errors.
func (p *walker) delim(what string, want json.Delim) error {
	t, err := p.token()
	if err == nil && t != want {
		err = p.fail("%s: expected %s, found %s", what, want, spell(t))
	}
	return err
}

// spell returns a token as JSON text.
func spell(t json.Token) string {
	switch t := t.(type) {
	case nil:
		return "null"
	case string:
		return strconv.Quote(t)
	}
	return fmt.Sprint(t)
}

// object calls member for each key, with the walker before the key's value.
func (p *walker) object(what string, member func(key string) error) error {
	if err := p.delim(what, '{'); err != nil {
		return err
	}
	seen := map[string]bool{}
	for p.dec.More() {
		t, err := p.token()
		if err != nil {
			return err
		}
		key := t.(string) // the decoder allows only strings here
		if seen[key] {
			return p.fail("key %q appears twice", key)
		}
		seen[key] = true
		if err := member(key); err != nil {
			return err
		}
	}
	return p.delim(what, '}')
}

func (p *walker) stringMap(what string) (map[string]string, error) {
	m := map[string]string{}
	return m, p.object(what, func(key string) error {
		t, err := p.token()
		s, ok := t.(string)
		if err == nil && !ok {
			err = p.fail("%s: the value of %q is %s, not a string", what, key, spell(t))
		}
		m[key] = s
		return err
	})
}

func (p *walker) integers(what string) ([]int64, error) {
	if err := p.delim(what, '['); err != nil {
		return nil, err
	}
	var list []int64
	for p.dec.More() {
		t, err := p.token()
		if err != nil {
			return nil, err
		}
		num, ok := t.(json.Number)
		if !ok {
			return nil, p.fail("%s: expected a number, found %s", what, spell(t))
		}
		n, err := strconv.ParseUint(string(num), 10, 62)
		if err != nil {
			return nil, p.fail("%s: %s is not a whole number from 0 to 2^62-1", what, num)
		}
		list = append(list, int64(n))
	}
	return list, p.delim(what, ']')
}
