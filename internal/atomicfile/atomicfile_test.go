package atomicfile_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/atomicfile"
)

// TestWhole: a file is created and replaced, and no other file is left in the folder.
func TestWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "plan.json")
	for _, data := range []string{"one", "", "another"} {
		if err := atomicfile.Write(path, []byte(data)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != data {
			t.Errorf("%q, %v, want %q", got, err, data)
		}
	}
	checkEntries(t, filepath.Dir(path), 1)
}

// TestNotAtAll: if writing fails, the file does not change, and the error is returned.
func TestNotAtAll(t *testing.T) {
	path := filepath.Join(t.TempDir(), "plan.json")
	wrong := errors.New("wrong")
	half := func(w io.Writer) error {
		if _, err := w.Write(make([]byte, 1<<20)); err != nil {
			t.Error(err)
		}
		return wrong
	}
	if err := atomicfile.Stream(path, half); !errors.Is(err, wrong) {
		t.Errorf("error %v, want %v", err, wrong)
	}
	checkEntries(t, filepath.Dir(path), 0)
	if err := atomicfile.Write(path, []byte("first")); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Stream(path, half); !errors.Is(err, wrong) {
		t.Errorf("error %v, want %v", err, wrong)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "first" {
		t.Errorf("%q, %v", got, err)
	}
	checkEntries(t, filepath.Dir(path), 1)
}

// TestNameTaken: a folder with the name is an error, and no temporary file stays.
func TestNameTaken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "taken")
	if err := os.Mkdir(path, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Write(path, []byte("data")); err == nil {
		t.Error("a folder was replaced")
	}
	checkEntries(t, filepath.Dir(path), 1)
}

// TestPermissions: a new file has the permissions of os.Create. A replaced file keeps its own.
func TestPermissions(t *testing.T) {
	folder := t.TempDir()
	plain, err := os.Create(filepath.Join(folder, "plain"))
	if err != nil {
		t.Fatal(err)
	}
	if err := plain.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "file")
	write := func() {
		t.Helper()
		if err := atomicfile.Write(path, []byte("data")); err != nil {
			t.Fatal(err)
		}
	}
	write()
	if got, want := mode(t, path), mode(t, plain.Name()); got != want {
		t.Errorf("a new file has %v, want %v", got, want)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	want := mode(t, path)
	write()
	if got := mode(t, path); got != want {
		t.Errorf("a replaced file has %v, want %v", got, want)
	}
}

// TestIsPartial: the unfinished file is recognised while it is written.
func TestIsPartial(t *testing.T) {
	path := filepath.Join(t.TempDir(), "layer.bin")
	err := atomicfile.Stream(path, func(io.Writer) error {
		entries, err := os.ReadDir(filepath.Dir(path))
		if err != nil || len(entries) != 1 {
			t.Fatalf("%v, %v", entries, err)
		}
		if of, ok := atomicfile.IsPartial(entries[0].Name()); !ok || of != "layer.bin" {
			t.Errorf("%s: partial %v of %q", entries[0].Name(), ok, of)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"layer.bin", ".hidden", "1", ".1"} {
		if of, ok := atomicfile.IsPartial(name); ok {
			t.Errorf("%s: partial of %q", name, of)
		}
	}
}

// TestRenameNew: an existing folder that is not empty does not change.
func TestRenameNew(t *testing.T) {
	folder := t.TempDir()
	from, to := filepath.Join(folder, "from"), filepath.Join(folder, "to")
	for _, dir := range []string{from, filepath.Join(to, "full")} {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := atomicfile.RenameNew(from, to); err == nil {
		t.Error("a folder was replaced")
	}
	if err := atomicfile.RenameNew(from, filepath.Join(folder, "free")); err != nil {
		t.Error(err)
	}
	if err := atomicfile.SyncFolder(folder); err != nil {
		t.Error(err)
	}
	checkEntries(t, folder, 2)
}

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return st.Mode()
}

func checkEntries(t *testing.T, folder string, want int) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != want {
		t.Errorf("the folder holds %v (%v), want %d entries", entries, err, want)
	}
}
