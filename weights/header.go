package weights

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	switch {
	case len(js) == 0 || js[0] != '{':
		return nil, &FormatError{Offset: 8, Msg: "the header does not start with '{'"}
	case !utf8.Valid(js):
		return nil, &FormatError{Offset: 8, Msg: "the header is not valid UTF-8"}
	}
	p := &headerParser{dec: json.NewDecoder(bytes.NewReader(js)), start: 8}
	p.dec.UseNumber()
	h := &header{}
	err := p.object(func(key string) (err error) {
		if key == "__metadata__" {
			h.metadata, err = p.stringMap()
			return err
		}
		info, err := p.tensor(key)
		h.tensors = append(h.tensors, info)
		return err
	})
	if err == nil {
		if _, more := p.dec.Token(); more != io.EOF {
			err = p.fail("something follows the header's closing brace")
		}
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
	for _, t := range h.tensors {
		fail := func(format string, args ...any) error {
			return &FormatError{Tensor: t.Name, Offset: dataStart + t.Begin, Msg: fmt.Sprintf(format, args...)}
		}
		switch want, ok := byteLen(t.DType, t.Shape); {
		case t.Begin < end:
			return fail("overlaps the tensor before it by %d bytes", end-t.Begin)
		case t.Begin > end:
			return fail("a gap of %d bytes lies before it", t.Begin-end)
		case !ok:
			return fail("%s%v is no whole number of bytes that fits a file", t.DType, t.Shape)
		case want != t.Size():
			return fail("%s%v needs %d bytes, its offsets hold %d", t.DType, t.Shape, want, t.Size())
		case t.End > dataLen:
			return fail("ends %d bytes beyond the end of the file: the file is truncated", t.End-dataLen)
		}
		end = t.End
	}
	if end != dataLen {
		return &FormatError{Offset: dataStart + end, Msg: fmt.Sprintf("%d bytes follow the last tensor", dataLen-end)}
	}
	return nil
}

// headerParser walks tokens, because encoding/json would accept duplicate keys silently.
type headerParser struct {
	dec     *json.Decoder
	start   int64  // where the JSON begins in its file
	current string // the tensor being read
}

func (p *headerParser) fail(format string, args ...any) error {
	return &FormatError{Tensor: p.current, Offset: p.start + p.dec.InputOffset(), Msg: fmt.Sprintf(format, args...)}
}

func (p *headerParser) token() (json.Token, error) {
	t, err := p.dec.Token()
	if err == nil {
		return t, nil
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return nil, &FormatError{Tensor: p.current, Offset: p.start + syntax.Offset, Msg: "invalid JSON: " + err.Error()}
	}
	return nil, p.fail("invalid JSON: it ends too early")
}

func (p *headerParser) delim(want json.Delim) error {
	t, err := p.token()
	if err == nil && t != want {
		err = p.fail("expected %q, found %v", want.String(), t)
	}
	return err
}

// object calls member for each key, with the parser standing before its value.
func (p *headerParser) object(member func(key string) error) error {
	if err := p.delim('{'); err != nil {
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
	return p.delim('}')
}

func (p *headerParser) stringMap() (map[string]string, error) {
	m := map[string]string{}
	return m, p.object(func(key string) error {
		t, err := p.token()
		s, ok := t.(string)
		if err == nil && !ok {
			err = p.fail("metadata %q is no string", key)
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
	err := p.object(func(key string) (err error) {
		seen[key] = true
		switch key {
		case "dtype":
			return p.dtype(&t.DType)
		case "shape":
			shape, err := p.integers()
			t.Shape = make([]int, len(shape))
			for i, n := range shape {
				t.Shape[i] = int(n)
			}
			return err
		case "data_offsets":
			offsets, err = p.integers()
			return err
		}
		var ignored json.RawMessage // upstream readers pass over unknown members as well
		if p.dec.Decode(&ignored) != nil {
			return p.fail("invalid JSON in %q", key)
		}
		return nil
	})
	if err != nil {
		return t, err
	}
	for _, key := range []string{"dtype", "shape", "data_offsets"} {
		if !seen[key] {
			return t, p.fail("has no %q", key)
		}
	}
	if len(offsets) != 2 || offsets[1] < offsets[0] {
		return t, p.fail("data_offsets %v are no begin and end", offsets)
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
		return p.fail("dtype is no string")
	}
	if *d, err = ParseDType(name); err != nil {
		return p.fail("%v", err)
	}
	return nil
}

func (p *headerParser) integers() ([]int64, error) {
	if err := p.delim('['); err != nil {
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
			return nil, p.fail("expected a number, found %v", t)
		}
		n, err := strconv.ParseUint(string(num), 10, 62)
		if err != nil {
			return nil, p.fail("%s is no whole number from 0 to 2^62", num)
		}
		list = append(list, int64(n))
	}
	return list, p.delim(']')
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
		size, ok := byteLen(t.DType, t.Shape)
		if !ok || size > math.MaxInt64-end {
			return nil, nil, fmt.Errorf("tensor %q: %s%v is no whole number of bytes that fits a file", t.Name, t.DType, t.Shape)
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
