//go:build unix

package atomicfile_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/atomicfile"
)

// TestLeftovers: the next write removes the unfinished file of a killed process. The file of a running process stays
// until the process is done.
func TestLeftovers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "plan.json")
	var left string
	err := atomicfile.Stream(path, func(io.Writer) error {
		entries, err := os.ReadDir(filepath.Dir(path))
		if err != nil || len(entries) != 1 {
			t.Fatalf("%v, %v", entries, err)
		}
		left = filepath.Join(filepath.Dir(path), entries[0].Name())
		if err := atomicfile.Write(path, []byte("meanwhile")); err != nil {
			t.Error(err)
		}
		if err := atomicfile.RemoveLeft(filepath.Dir(path)); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(left); err != nil {
			t.Errorf("the unfinished file: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	checkEntries(t, filepath.Dir(path), 1)
	if err := os.WriteFile(left, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Write(path, []byte("whole")); err != nil {
		t.Fatal(err)
	}
	checkEntries(t, filepath.Dir(path), 1)
	if err := os.WriteFile(left, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.RemoveLeft(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	checkEntries(t, filepath.Dir(path), 1)
	// A folder with the name stays, and does not prevent writing.
	if err := os.Mkdir(left, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(atomicfile.Check(path), atomicfile.Write(path, []byte("again"))); err != nil {
		t.Fatal(err)
	}
	checkEntries(t, filepath.Dir(path), 2)
}
