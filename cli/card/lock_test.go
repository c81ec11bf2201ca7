//go:build unix

package card

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/lowtoggle/lowtoggle/cli/exit"
)

// TestCalibratesOfOneFile: a second calibrate of the same file is an error, by whatever path it names the file. A
// calibrate of another file is not.
func TestCalibratesOfOneFile(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	folder := t.TempDir()
	t.Chdir(folder)
	lock, err := lockComponents("two" + componentsPostfix)
	if err != nil {
		t.Fatal(err)
	}
	whole := filepath.Join(folder, "two")
	_, err = runCard(t.Context(), "calibrate", "--device", "simulated", "--components", whole)
	want := fmt.Sprintf("another calibrate is writing %s (pid %d): wait for it", whole+componentsPostfix, os.Getpid())
	if err == nil || exit.Status(err) != exit.Failed || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	other, err := lockComponents("other" + componentsPostfix)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
	if err := lock.Close(); err != nil {
		t.Error(err)
	}
	again, err := lockComponents(whole + componentsPostfix)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}
