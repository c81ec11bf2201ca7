//go:build unix

package synth

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/lock"
)

// TestLeftovers: the folder of a process that was killed is removed. A folder that a process is writing, and one of another
// name, stay.
func TestLeftovers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "m")
	name := func(suffix string) string { return filepath.Join(filepath.Dir(dir), ".m.partial-"+suffix) }
	stays := map[string]bool{"1": false, "2": true, "2x": true}
	for suffix := range stays {
		if err := os.MkdirAll(filepath.Join(name(suffix), "sub"), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	held, err := lock.Folder(name("2"))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	err = stage(dir, func(string) error {
		for suffix, want := range stays {
			if _, err := os.Lstat(name(suffix)); (err == nil) != want {
				t.Errorf("%s: %v, want it to stay: %v", name(suffix), err, want)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(dir); err != nil {
		t.Error(err)
	}
	// A call that fails because the result exists still removes the leftovers of a killed process.
	if err := os.Mkdir(name("1"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := stage(dir, nil); !errors.Is(err, fs.ErrExist) {
		t.Errorf("error %v, want %v", err, fs.ErrExist)
	}
	if _, err := os.Lstat(name("1")); err == nil {
		t.Errorf("%s stays", name("1"))
	}
}
