package apply_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/internal/testplan"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/apply"
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
	_, err := transform.Apply(t.Context(), m, p, out, transform.ApplyOptions{})
	testmodel.WantError(t, err, filepath.Dir(out), "the disk is too full", strconv.FormatInt(apply.Size(m), 10)+" bytes are needed")
	testplan.NothingAt(t, out)
}

// TestDiskFullLater: the disk fills up during writing. Finished shards stay, even if the disk fills up again. With
// enough room, the result is the same.
func TestDiskFullLater(t *testing.T) {
	m, p := staged(t)
	dir := small(t, 1<<20)
	out, other := filepath.Join(dir, "out"), filepath.Join(dir, "other")
	first := filepath.Join(out+apply.PartialSuffix, filepath.Base(m.Shards[0].Path))
	var made os.FileInfo
	for _, resume := range []bool{false, true} {
		filled := false
		_, err := transform.Apply(t.Context(), m, p, out, transform.ApplyOptions{Resume: resume, Progress: func(e transform.Event) {
			if e.Stage == "write" && !filled {
				filled = true
				fill(t, other)
			}
		}})
		testmodel.WantError(t, err, "finished shards are kept in "+out+apply.PartialSuffix, "resume to continue")
		if !errors.Is(err, unix.ENOSPC) {
			t.Errorf("error %v", err)
		}
		info, err := os.Stat(first)
		testmodel.OK(t, err)
		if made != nil && !os.SameFile(info, made) {
			t.Error("the finished shard was made again")
		}
		made = info
		testmodel.OK(t, os.Remove(other))
	}
	_, err := transform.Apply(t.Context(), m, p, out, transform.ApplyOptions{Resume: true})
	testmodel.OK(t, err)
	testmodel.SameFiles(t, testmodel.Files(t, out), testmodel.Files(t, testplan.Applied(t, m, nil, p)))
}

// fill writes a file until the disk is full.
func fill(t *testing.T, path string) {
	fd, err := unix.Open(path, unix.O_CREAT|unix.O_WRONLY, 0o666)
	testmodel.OK(t, err)
	defer unix.Close(fd)
	for block := make([]byte, 4096); ; {
		if _, err := unix.Write(fd, block); err != nil {
			return
		}
	}
}
