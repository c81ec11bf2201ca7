//go:build unix

package synth

import (
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
}
