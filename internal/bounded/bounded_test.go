package bounded

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, size := range []int{0, 1, 511, 512, 513, 9999, 10000} {
		want := strings.Repeat("x", size)
		if err := os.WriteFile(path, []byte(want), 0o666); err != nil {
			t.Fatal(err)
		}
		if got, err := ReadFile(path, 10000); err != nil || string(got) != want {
			t.Errorf("%d bytes: %d, %v", size, len(got), err)
		}
		if _, err := ReadFile(path, int64(size)-1); size > 0 && !errors.Is(err, ErrTooLarge) {
			t.Errorf("%d bytes of at most %d: %v", size, size-1, err)
		}
	}
	if _, err := ReadFile(filepath.Join(dir, "none"), 1); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if _, err := ReadFile(dir, 1); !errors.Is(err, ErrNotFile) || err.Error() != dir+": is a folder: name a file" {
		t.Error(err)
	}
}

// TestReadPipe: a pipe has no size, and may have no end.
func TestReadPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("/proc/self/fd", strconv.Itoa(int(r.Fd())))
	if _, err := os.Stat(path); err != nil {
		t.Skip("no /proc")
	}
	go func() {
		for {
			if _, err := w.WriteString("endless"); err != nil {
				return
			}
		}
	}()
	_, err = ReadFile(path, 100_000)
	r.Close()
	if !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
	if _, err := ReadFile("/dev/zero", 100_000); err == nil || !strings.Contains(err.Error(), "is a device") {
		t.Error(err)
	}
}
