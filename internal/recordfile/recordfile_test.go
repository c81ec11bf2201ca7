package recordfile

import (
	"os"
	"path/filepath"
	"testing"
)

type counts struct{ Runs int }

// TestContinued: a written record is read again, a missing record is empty, and the error for another file names it.
func TestContinued(t *testing.T) {
	path := filepath.Join(t.TempDir(), "folder", "record.json")
	var c counts
	if err := Read(path, &c); err != nil || c.Runs != 0 {
		t.Errorf("absent: %v, %v", c, err)
	}
	if err := Write(path, counts{3}); err != nil {
		t.Fatal(err)
	}
	if err := Read(path, &c); err != nil || c.Runs != 3 {
		t.Errorf("%v, %v", c, err)
	}
	if err := os.WriteFile(path, []byte("{"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := Read(path, &c); err == nil || err.Error()[:len(path)] != path {
		t.Error(err)
	}
}
