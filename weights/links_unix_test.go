//go:build unix

package weights

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// link makes path a symbolic link to target.
func link(t *testing.T, target, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

// A model hub's cache stores a snapshot as links into a folder of blobs. The path of the cache may itself be a link.
func TestOpenHubCache(t *testing.T) {
	hub := t.TempDir()
	snapshot := filepath.Join(hub, "snapshots", "main")
	for name, data := range twoShards(t) {
		blob := put(t, hub, "blobs/"+filepath.Base(name)+"-"+filepath.Base(filepath.Dir(name)), data)
		path := filepath.Join(snapshot, filepath.FromSlash(name))
		target, err := filepath.Rel(filepath.Dir(path), blob)
		if err != nil {
			t.Fatal(err)
		}
		link(t, target, path)
	}
	checkTwoShards(t, snapshot)

	latest := filepath.Join(hub, "latest")
	link(t, filepath.Join("snapshots", "main"), latest)
	checkTwoShards(t, latest)
}

func TestOpenOddFiles(t *testing.T) {
	pipe := func(t *testing.T, path string) {
		if err := unix.Mkfifo(path, 0o644); err != nil {
			t.Skip(err)
		}
	}
	for _, test := range []struct {
		name string
		file string // what stands in the place of this file
		make func(t *testing.T, path string)
		want string // after the file's path
	}{
		{"dangling link", "notes.txt", func(t *testing.T, path string) { link(t, "absent", path) },
			": is a link to a missing file: stat PATH: no such file or directory"},
		{"shard is a dangling link", "s1.safetensors", func(t *testing.T, path string) { link(t, "../../blobs/absent", path) },
			": is a link to a missing file: stat PATH: no such file or directory"},
		{"link to a folder", "notes", func(t *testing.T, path string) { link(t, "sub", path) },
			": is a link to a folder: replace the link by the folder itself, or move the link elsewhere"},
		{"pipe", "sub/pipe", pipe, ": is neither a file nor a folder: move it out of the model's folder"},
		{"shard is a pipe", "s1.safetensors", pipe, ": is neither a file nor a folder: move it out of the model's folder"},
		{"index is a pipe", IndexName, pipe, ": is neither a file nor a folder: move it out of the model's folder"},
		{"config is a pipe", "config.json", pipe, ": is neither a file nor a folder: move it out of the model's folder"},
		{"config is a device", "config.json", func(t *testing.T, path string) { link(t, "/dev/zero", path) },
			": is neither a file nor a folder: move it out of the model's folder"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := folder(t, twoShards(t))
			path := filepath.Join(dir, test.file)
			_ = os.Remove(path)
			test.make(t, path)
			wantError(t, openInTime(t, dir), path+strings.ReplaceAll(test.want, "PATH", path))
		})
	}
	t.Run("the model itself is a pipe", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "model.safetensors")
		pipe(t, path)
		wantError(t, openInTime(t, path), path+": is not a regular file: give a file, not a folder, pipe or device")
	})
}

// openInTime returns the error of opening path. It fails the test if opening blocks.
func openInTime(t *testing.T, path string) error {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		_, err := Open(path)
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-time.After(time.Second):
		t.Fatal("Open waits")
		return nil
	}
}
