package weights

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sort"
	"strconv"
	"unicode/utf8"
)

// MaxHeader is the largest JSON header the format allows, in bytes.
const MaxHeader = 100_000_000

// header is a parsed safetensors header.
type header struct {
	tensors  []Info // in the order of their data
	metadata map[string]string
}

// parseHeader reads the JSON part of a header. dataLen is the length of the data section that
// follows it. Errors are *FormatError with File unset and offsets counted from the file's start.
func parseHeader(js []byte, dataLen int64) (*header, error) {
	if len(js) == 0 || js[0] != '{' {
		return nil, &FormatError{Offset: 8, Msg: "the header does not start with '{': is this a safetensors file?"}
	}
	p, err := newHeaderParser(js, 8)
	if err != nil {
		return nil, err
	}
	h := &header{}
	err = p.object("the header", func(key string) (err error) {
		if key == "__metadata__" {
			h.metadata, err = p.stringMap(key)
			return err
		}
		info, err := p.tensor(key)
		h.tensors = append(h.tensors, info)
		return err
	})
	if err == nil {
		err = p.end()
	}
	if err != nil {
		return nil, err
	}
	sort.SliceStable(h.tensors, func(i, j int) bool {
		a, b := h.tensors[i], h.tensors[j]
		return a.Begin < b.Begin || a.Begin == b.Begin && a.End < b.End
	})
	return h, h.checkLayout(int64(len(js))+8, dataLen)
}

// checkLayout holds every tensor against its neighbours and its own shape. dataStart is where the
// data section begins in the file.
func (h *header) checkLayout(dataStart, dataLen int64) error {
	var end int64
	var before string // the tensor that ends there
	for _, t := range h.tensors {
		fail := func(format string, args ...any) error {
			return &FormatError{Tensor: t.Name, Offset: dataStart + t.Begin, Msg: fmt.Sprintf(format, args...)}
		}
		switch want, err := byteLen(t.DType, t.Shape); {
		case t.Begin < end:
			return fail("overlaps tensor %q, which ends %d bytes after this one begins", before, end-t.Begin)
		case t.Begin > end:
			return fail("a gap of %d bytes lies before it", t.Begin-end)
		case err != nil:
			return fail("%v", err)
		case want != t.Size():
			return fail("%s%v needs %d bytes, its offsets hold %d", t.DType, t.Shape, want, t.Size())
		case t.End > dataLen:
			return fail("ends %d bytes beyond the end of the file: the file is truncated", t.End-dataLen)
		}
		end, before = t.End, t.Name
	}
	if end != dataLen {
		return &FormatError{Offset: dataStart + end, Msg: fmt.Sprintf("%d bytes follow the last tensor", dataLen-end)}
	}
	return nil
}

// headerParser walks tokens, because encoding/json would accept duplicate keys silently.
type headerParser struct {
	dec     *json.Decoder
	js      []byte
	start   int64  // where the JSON begins in its file
	at      int    // where the latest token begins in the JSON
	current string // the tensor being read
}

// newHeaderParser starts before the first token of js, whose first byte is byte start of its
// file. It refuses invalid UTF-8, which encoding/json would replace.
func newHeaderParser(js []byte, start int64) (*headerParser, error) {
	for i := 0; i < len(js); {
		r, size := utf8.DecodeRune(js[i:])
		if r == utf8.RuneError && size == 1 {
			return nil, &FormatError{Offset: start + int64(i), Msg: fmt.Sprintf("invalid UTF-8: 0x%02x", js[i])}
		}
		i += size
	}
	p := &headerParser{dec: json.NewDecoder(bytes.NewReader(js)), js: js, start: start}
	p.dec.UseNumber()
	return p, nil
}

func (p *headerParser) fail(format string, args ...any) error {
	return &FormatError{Tensor: p.current, Offset: p.start + int64(p.at), Msg: fmt.Sprintf(format, args...)}
}

const jsonSpace = " \t\r\n"

// mark notes where the next token begins: the decoder knows only where the one before it ended.
func (p *headerParser) mark() {
	rest := bytes.TrimLeft(p.js[p.dec.InputOffset():], jsonSpace)
	if len(rest) > 0 && (rest[0] == ',' || rest[0] == ':') {
		rest = bytes.TrimLeft(rest[1:], jsonSpace)
	}
	p.at = len(p.js) - len(rest)
}

func (p *headerParser) token() (json.Token, error) {
	p.mark()
	t, err := p.dec.Token()
	return t, p.syntax(err)
}

// syntax points at the token in which the decoder failed: its own offsets do not count the
// tokens before.
func (p *headerParser) syntax(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*json.SyntaxError](err); ok {
		return p.fail("invalid JSON: %v", err)
	}
	return p.fail("invalid JSON: it ends too early")
}

// skip passes over a value of any kind.
func (p *headerParser) skip() error {
	p.mark()
	var ignored json.RawMessage
	return p.syntax(p.dec.Decode(&ignored))
}

// end makes sure that nothing follows the value read.
func (p *headerParser) end() error {
	rest := bytes.TrimLeft(p.js[p.dec.InputOffset():], jsonSpace)
	if len(rest) == 0 {
		return nil
	}
	p.at = len(p.js) - len(rest)
	return p.fail("%q follows the closing brace", rest[:1])
}

// delim reads the bracket that what begins or ends with.
func (p *headerParser) delim(what string, want json.Delim) error {
	t, err := p.token()
	if err == nil && t != want {
		err = p.fail("%s: expected %s, found %s", what, want, spell(t))
	}
	return err
}

// spell shows a token as JSON does.
func spell(t json.Token) string {
	switch t := t.(type) {
	case nil:
		return "null"
	case string:
		return strconv.Quote(t)
	}
	return fmt.Sprint(t)
}

// object calls member for each key, with the parser standing before its value.
func (p *headerParser) object(what string, member func(key string) error) error {
	if err := p.delim(what, '{'); err != nil {
		return err
	}
	seen := map[string]bool{}
	for p.dec.More() {
		t, err := p.token()
		if err != nil {
			return err
		}
		key := t.(string) // the decoder allows nothing else here
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

func (p *headerParser) stringMap(what string) (map[string]string, error) {
	m := map[string]string{}
	return m, p.object(what, func(key string) error {
		t, err := p.token()
		s, ok := t.(string)
		if err == nil && !ok {
			err = p.fail("%s: the value of %q is %s, no string", what, key, spell(t))
		}
		m[key] = s
		return err
	})
}

func (p *headerParser) tensor(name string) (Info, error) {
	p.current = name
	t := Info{Name: name}
	var offsets []int64
	seen := map[string]bool{}
	err := p.object("the entry", func(key string) (err error) {
		seen[key] = true
		switch key {
		case "dtype":
			return p.dtype(&t.DType)
		case "shape":
			shape, err := p.integers(key)
			t.Shape = make([]int, len(shape))
			for i, n := range shape {
				t.Shape[i] = int(n)
			}
			return err
		case "data_offsets":
			offsets, err = p.integers(key)
			if err == nil && (len(offsets) != 2 || offsets[1] < offsets[0]) {
				err = p.fail("data_offsets %v are not a begin and an end", offsets)
			}
			return err
		}
		return p.skip() // upstream readers pass over unknown members as well
	})
	if err != nil {
		return t, err
	}
	for _, key := range []string{"dtype", "shape", "data_offsets"} {
		if !seen[key] {
			return t, p.fail("has no %q", key)
		}
	}
	t.Begin, t.End = offsets[0], offsets[1]
	p.current = ""
	return t, nil
}

func (p *headerParser) dtype(d *DType) error {
	t, err := p.token()
	if err != nil {
		return err
	}
	name, ok := t.(string)
	if !ok {
		return p.fail("dtype: expected a string, found %s", spell(t))
	}
	if *d, err = ParseDType(name); err != nil {
		return p.fail("%v", err)
	}
	return nil
}

func (p *headerParser) integers(what string) ([]int64, error) {
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
			return nil, p.fail("%s: %s is no whole number from 0 to 2^62-1", what, num)
		}
		list = append(list, int64(n))
	}
	return list, p.delim(what, ']')
}

// EncodeHeader lays tensors out one after the other in the order given (their offsets are set
// here) and returns the file's head: the 8-byte length and the JSON, padded with spaces so that
// the data starts at a multiple of 8.
func EncodeHeader(tensors []Info, metadata map[string]string) (head []byte, placed []Info, err error) {
	var b bytes.Buffer
	b.WriteByte('{')
	if len(metadata) > 0 {
		js, _ := json.Marshal(metadata) // a map of strings cannot fail
		fmt.Fprintf(&b, `"__metadata__":%s`, js)
	}
	var end int64
	for _, t := range tensors {
		size, err := byteLen(t.DType, t.Shape)
		if err == nil && size > math.MaxInt64-end {
			err = fmt.Errorf("%s%v is more than a file can hold", t.DType, t.Shape)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("tensor %q: %w", t.Name, err)
		}
		t.Begin, t.End = end, end+size
		end = t.End
		placed = append(placed, t)
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		shape := t.Shape
		if shape == nil {
			shape = []int{}
		}
		js, _ := json.Marshal(t.Name)
		dims, _ := json.Marshal(shape)
		fmt.Fprintf(&b, `%s:{"dtype":"%s","shape":%s,"data_offsets":[%d,%d]}`, js, t.DType, dims, t.Begin, t.End)
	}
	b.WriteByte('}')
	for b.Len()%8 != 0 {
		b.WriteByte(' ')
	}
	if b.Len() > MaxHeader {
		return nil, nil, fmt.Errorf("a header of %d bytes is more than the format's %d", b.Len(), MaxHeader)
	}
	return append(binary.LittleEndian.AppendUint64(nil, uint64(b.Len())), b.Bytes()...), placed, nil
}
