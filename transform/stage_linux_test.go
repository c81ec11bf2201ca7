package transform

import (
	"errors"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// small mounts a file system of the given size.
func small(t *testing.T, bytes int) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+strconv.Itoa(bytes)); err != nil {
		t.Skipf("a small file system cannot be mounted: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(dir, 0) })
	return dir
}

func TestDiskFull(t *testing.T) {
	m, p := staged(t)
	out := filepath.Join(small(t, 100_000), "out")
	_, err := Apply(t.Context(), m, p, out, ApplyOptions{})
	wantError(t, err, filepath.Dir(out), "the disk is too full", strconv.FormatInt((&conversion{model: m}).size(), 10)+" bytes are needed")
	nothingAt(t, out)
}

// The disk fills up while it is being written.
func TestDiskFullLater(t *testing.T) {
	m, p := staged(t)
	dir := small(t, 1<<20)
	out := filepath.Join(dir, "out")
	filled := false
	_, err := Apply(t.Context(), m, p, out, ApplyOptions{Progress: func(Event) {
		if !filled {
			filled = true
			fill(t, filepath.Join(dir, "other"))
		}
	}})
	if !errors.Is(err, unix.ENOSPC) {
		t.Errorf("error %v", err)
	}
	nothingAt(t, out)
}

// fill writes a file until the disk is full.
func fill(t *testing.T, path string) {
	fd, err := unix.Open(path, unix.O_CREAT|unix.O_WRONLY, 0o666)
	ok(t, err)
	defer unix.Close(fd)
	for block := make([]byte, 4096); ; {
		if _, err := unix.Write(fd, block); err != nil {
			return
		}
	}
}
