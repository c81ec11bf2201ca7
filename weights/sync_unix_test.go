//go:build unix

package weights

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestCloseFlushes: Close flushes the file to the disk. A pipe accepts data but cannot be flushed, so Close must fail.
func TestCloseFlushes(t *testing.T) {
	for name, closed := range map[string]func(f *os.File) error{
		"Writer": func(f *os.File) error {
			w := &Writer{f: f, want: 4}
			if _, err := w.Write(make([]byte, 4)); err != nil {
				t.Error(err)
			}
			return w.Close()
		},
		"Filling": func(f *os.File) error { return (&Filling{f: f}).Close() },
	} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := closed(w); !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOTSUP) {
			t.Errorf("%s: closed without a flush: %v", name, err)
		}
		if err := w.Close(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("%s: the file was left open: %v", name, err)
		}
		r.Close()
	}
}
