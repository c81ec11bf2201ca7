package bounded

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"
)

// TestLine: lines up to the limit are read, also lines longer than a buffer. Longer lines are errors before their end
// is read.
func TestLine(t *testing.T) {
	const most = 10_000
	for _, length := range []int{1, 15, 16, 17, most - 1, most} {
		want := strings.Repeat("x", length-1) + "\n"
		r := bufio.NewReaderSize(strings.NewReader(want+"rest"), 16)
		if got, err := Line(r, most); err != nil || string(got) != want {
			t.Errorf("%d bytes: %d, %v", length, len(got), err)
		}
		if _, err := Line(r, most); err != io.EOF {
			t.Errorf("a line without an end: %v", err)
		}
	}
	if _, err := Line(bufio.NewReader(endless{}), most); !errors.Is(err, ErrTooLarge) {
		t.Errorf("an endless line: %v", err)
	}
}

type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	return len(b), nil
}
