package serve

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"
)

// all reads every event.
func all(r io.Reader) (list []string, err error) {
	for e := newEvents(r); ; {
		data, err := e.next()
		if err != nil {
			return list, err
		}
		list = append(list, string(data))
	}
}

func TestEvents(t *testing.T) {
	long := strings.Repeat("x", longestEvent)
	for _, c := range []struct {
		text string
		want []string
		err  error
	}{
		{"", nil, io.EOF},
		{"data: a\n\ndata:b\n\n", []string{"a", "b"}, io.EOF},
		{"data: a\r\n\r\ndata: b\r\n\r\n", []string{"a", "b"}, io.EOF},
		{"\ufeffdata: a\n\n", []string{"a"}, io.EOF},
		{"data: a\ndata:  b\ndata\n\n", []string{"a\n b\n"}, io.EOF},
		{": ping\n\nevent: x\nid: 3\nretry: 5\ndata: a\n\n\n\n", []string{"a"}, io.EOF},
		{"database: a\n\n", nil, io.EOF},
		{"data: a\n\ndata: b\n", []string{"a"}, io.ErrUnexpectedEOF},
		{"data: a", nil, io.ErrUnexpectedEOF},
		{"data:" + long[6:] + "\n\n", []string{long[6:]}, io.EOF},
		{"data:" + long + "\n\n", nil, errTooLong},
		{"data:" + long[9:] + "\ndata: more bytes\n\n", nil, errTooLong},
		{long + long, nil, errTooLong},
	} {
		for _, r := range []io.Reader{strings.NewReader(c.text), iotest.HalfReader(strings.NewReader(c.text))} {
			if have, err := all(r); !slices.Equal(have, c.want) || !errors.Is(err, c.err) {
				t.Errorf("%.30q: %.40q, %v; want %.40q, %v", c.text, have, err, c.want, c.err)
			}
		}
	}
}

// FuzzEvents: however a stream is cut into reads, the events are the same, bounded, and UTF-8.
func FuzzEvents(f *testing.F) {
	for _, seed := range []string{"data: a\n\n", "data: {\"choices\": []}\r\n\r\ndata: [DONE]\n\n", ": ping\ndata\n\n", "\ufeffdata: \xff\n\n", "data: a\ndata: b\n\nda"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		_ = errorText(stream)
		want, err := all(bytes.NewReader(stream))
		have, again := all(iotest.OneByteReader(bytes.NewReader(stream)))
		if !slices.Equal(have, want) || err.Error() != again.Error() {
			t.Errorf("%q (%v) and byte by byte %q (%v)", want, err, have, again)
		}
		for _, data := range want {
			if len(data) > longestEvent || !utf8.ValidString(data) {
				t.Errorf("event %q", data)
			}
			if c, err := parseChunk([]byte(data)); err == nil {
				c.text()
				c.finish()
			} else if !utf8.ValidString(err.Error()) || len(err.Error()) > 1200 {
				t.Errorf("error %q", err)
			}
		}
	})
}
