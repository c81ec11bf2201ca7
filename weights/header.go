package weights

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
)

// MaxHeader is the largest JSON header the format allows, in bytes.
const MaxHeader = 100_000_000

// header is a parsed safetensors header.
type header struct {
	tensors  []Info         // in the order of their data
	byName   map[string]int // place of each tensor in tensors
	metadata map[string]string
}

// metadataKey is the only key of a header that names no tensor.
const metadataKey = "__metadata__"

// notSafetensors ends a message about a file that is damaged or has another format.
const notSafetensors = "the file is damaged, or is no safetensors file: download or copy it again"

// truncated ends the messages about files that are shorter than their headers say.
const truncated = "the file is truncated: download, copy or make it again"

// damaged ends the messages about JSON that cannot be read, and about headers that contradict themselves or the file.
const damaged = ": the file is damaged: download, copy or make it again"

// newer ends the message about an unknown dtype.
const newer = ": the file is damaged, or newer than this version of lowtoggle: download the file again, or update lowtoggle"

// parseHeader reads the JSON part of a header. dataLen is the length of the data section that
// follows it. Errors are *FormatError with File unset and offsets counted from the file's start.
func parseHeader(js []byte, dataLen int64) (*header, error) {
	if len(js) == 0 || js[0] != '{' {
		return nil, &FormatError{Offset: 8, Msg: "the header does not start with '{': " + notSafetensors}
	}
	h, plain := plainHeader(js)
	if !plain || !h.order() {
		var err error
		if h, err = walkHeader(js); err != nil {
			return nil, err
		}
		h.order()
	}
	return h, h.checkLayout(int64(len(js))+8, dataLen)
}

// walkHeader reads the JSON of a header in any form.
func walkHeader(js []byte) (*header, error) {
	p, err := newWalker(js, 8)
	if err != nil {
		return nil, err
	}
	h := &header{}
	err = p.object("the header", func(key string) (err error) {
		if key == metadataKey {
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
	return h, err
}

// order sorts the tensors by the place of their data. It returns false if two have the same name.
func (h *header) order() bool {
	slices.SortStableFunc(h.tensors, func(a, b Info) int { return cmp.Or(cmp.Compare(a.Begin, b.Begin), cmp.Compare(a.End, b.End)) })
	h.byName = make(map[string]int, len(h.tensors))
	for i, t := range h.tensors {
		h.byName[t.Name] = i
	}
	return len(h.byName) == len(h.tensors)
}

// checkLayout checks every tensor's offsets against the neighbouring tensors, the shape and the file's length. dataStart is the
// byte of the file at which the data section begins.
func (h *header) checkLayout(dataStart, dataLen int64) error {
	var end int64
	var before string // the name of the tensor before
	for _, t := range h.tensors {
		fail := func(format string, args ...any) error {
			return &FormatError{Tensor: t.Name, Offset: dataStart + t.Begin, Msg: fmt.Sprintf(format, args...)}
		}
		switch want, err := byteLen(t.DType, t.Shape); {
		case t.Begin < end:
			return fail("begins %d bytes before the end of tensor %q"+damaged, end-t.Begin, before)
		case t.Begin > end:
			return fail("%d unused bytes lie before the tensor"+damaged, t.Begin-end)
		case err != nil:
			return fail("%v"+damaged, err)
		case want != t.Size():
			return fail("%s%v needs %d bytes, but data_offsets span %d"+damaged, t.DType, t.Shape, want, t.Size())
		case t.End > dataLen:
			return fail("the header needs a file of %d bytes, and this file has %d: %s", h.dataEnd()+uint64(dataStart), dataStart+dataLen, truncated)
		}
		end, before = t.End, t.Name
	}
	if end != dataLen {
		return &FormatError{Offset: dataStart + end, Msg: fmt.Sprintf("%d bytes follow the last tensor"+damaged, dataLen-end)}
	}
	return nil
}

// dataEnd returns the length of the data that the tensors need, in bytes.
func (h *header) dataEnd() (end uint64) {
	for _, t := range h.tensors {
		end = max(end, uint64(t.End))
	}
	return end
}

func (p *walker) tensor(name string) (Info, error) {
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
				err = p.fail("data_offsets is %v, but must be two numbers: where the tensor begins and ends", offsets)
			}
			return err
		}
		return p.skip() // upstream readers ignore unknown members as well
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

func (p *walker) dtype(d *DType) error {
	t, err := p.token()
	if err != nil {
		return err
	}
	name, ok := t.(string)
	if !ok {
		return p.fail("dtype: expected a string, found %s", spell(t))
	}
	if *d, err = ParseDType(name); err != nil {
		return &FormatError{Tensor: p.current, Offset: p.start + int64(p.at), Msg: err.Error() + newer}
	}
	return nil
}

// EncodeHeader sets the tensors' offsets, one tensor after the other in the given order, and returns the file's head: the 8-byte
// length and the JSON. Spaces pad the JSON, so that the data starts at a multiple of 8.
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
		return nil, nil, fmt.Errorf("the header has %d bytes, but the format allows at most %d", b.Len(), MaxHeader)
	}
	return append(binary.LittleEndian.AppendUint64(nil, uint64(b.Len())), b.Bytes()...), placed, nil
}
