package demo

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
)

func TestWriteCopiesEveryFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "model")
	if err := Write(dir); err != nil {
		t.Fatal(err)
	}
	want := files(t, FS())
	got := files(t, os.DirFS(dir))
	if len(got) != len(want) {
		t.Errorf("wrote %d files, want %d", len(got), len(want))
	}
	for name, data := range want {
		if !bytes.Equal(got[name], data) {
			t.Errorf("%s differs from the embedded file", name)
		}
	}
}

func TestModelOpens(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "model")
	if err := Write(dir); err != nil {
		t.Fatal(err)
	}
	m, err := weights.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
}

func TestWriteRefusesExistingFolder(t *testing.T) {
	dir := t.TempDir()
	err := Write(dir)
	if !errors.Is(err, fs.ErrExist) {
		t.Fatalf("error %v, want one that says the folder exists", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("%d files written into a folder that existed", len(left))
	}
}

func TestWriteNeedsParent(t *testing.T) {
	err := Write(filepath.Join(t.TempDir(), "absent", "model"))
	if !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("error %v, want one that says the parent does not exist", err)
	}
}

// files reads a whole tree, by path.
func files(t *testing.T, fsys fs.FS) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	err := fs.WalkDir(fsys, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		all[path], err = fs.ReadFile(fsys, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
