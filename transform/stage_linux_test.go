package transform

import (
	"errors"
	"os"
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

// The disk fills up while it is being written: what is finished stays, also when it is full once
// more, and with room again the result is the same.
func TestDiskFullLater(t *testing.T) {
	m, p := staged(t)
	dir := small(t, 1<<20)
	out, other := filepath.Join(dir, "out"), filepath.Join(dir, "other")
	first := filepath.Join(out+partialSuffix, filepath.Base(m.Shards[0].Path))
	var made os.FileInfo
	for _, resume := range []bool{false, true} {
		filled := false
		_, err := Apply(t.Context(), m, p, out, ApplyOptions{Resume: resume, Progress: func(e Event) {
			if e.Stage == "write" && !filled {
				filled = true
				fill(t, other)
			}
		}})
		wantError(t, err, "what is finished stays in "+out+partialSuffix, "go on with --resume")
		if !errors.Is(err, unix.ENOSPC) {
			t.Errorf("error %v", err)
		}
		info, err := os.Stat(first)
		ok(t, err)
		if made != nil && !os.SameFile(info, made) {
			t.Error("the finished shard was made again")
		}
		made = info
		ok(t, os.Remove(other))
	}
	_, err := Apply(t.Context(), m, p, out, ApplyOptions{Resume: true})
	ok(t, err)
	sameFiles(t, files(t, out), files(t, applied(t, m, p)))
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
