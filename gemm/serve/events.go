package serve

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// longestEvent is the largest size of a server-sent event, in bytes.
const longestEvent = 1 << 20

// errTooLong is the error for an event of more than [longestEvent] bytes.
var errTooLong = fmt.Errorf("an event of the stream has more than %d bytes", longestEvent)

// events reads the data of server-sent events.
type events struct {
	lines *bufio.Reader
	data  []byte
	begun bool
}

func newEvents(r io.Reader) *events { return &events{lines: bufio.NewReaderSize(r, 16<<10)} }

// next returns the data of the next event: its data lines, joined by line feeds. The data is valid until the next call.
// The error is io.EOF at the end of the stream, and io.ErrUnexpectedEOF within an event.
func (e *events) next() ([]byte, error) {
	e.data = e.data[:0]
	any := false
	for {
		line, err := e.line()
		switch {
		case err == io.EOF && (any || len(line) > 0):
			return nil, io.ErrUnexpectedEOF
		case err != nil:
			return nil, err
		case len(line) == 0 && any:
			if !utf8.Valid(e.data) {
				return nil, errors.New("an event of the stream is not UTF-8")
			}
			return e.data, nil
		}
		value, ok := dataOf(line)
		if !ok {
			continue // a comment, a field that is not used, or the end of an event without data
		}
		if any {
			e.data = append(e.data, '\n')
		}
		if any = true; len(e.data)+len(value) > longestEvent {
			return nil, errTooLong
		}
		e.data = append(e.data, value...)
	}
}

// dataOf returns the value of a data field.
func dataOf(line []byte) (value []byte, ok bool) {
	name, value, _ := bytes.Cut(line, []byte{':'})
	return bytes.TrimPrefix(value, []byte{' '}), string(name) == "data"
}

// line returns the next line without its line feed. At io.EOF it also returns a last line without a line feed.
func (e *events) line() (line []byte, err error) {
	for {
		part, err := e.lines.ReadSlice('\n')
		if line == nil && err == nil {
			line = part
		} else {
			line = append(line[:len(line):len(line)], part...)
		}
		if len(line) > longestEvent {
			return nil, errTooLong
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		if !e.begun {
			e.begun = true
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte{'\n'}), []byte{'\r'}), err
	}
}
