//go:build unix

package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCalibratesOfOneFile: a second one is refused, by whatever path it names the file, and one of another file is not.
func TestCalibratesOfOneFile(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	folder := t.TempDir()
	t.Chdir(folder)
	lock, err := lockComponents("two" + componentsPostfix)
	if err != nil {
		t.Fatal(err)
	}
	whole := filepath.Join(folder, "two")
	var stdout, stderr bytes.Buffer
	status := Main([]string{"lowtoggle", "calibrate", "--components", whole, "--device", "simulated"}, &stdout, &stderr)
	want := fmt.Sprintf("lowtoggle: another calibrate is writing %s (pid %d): wait for it", whole+componentsPostfix, os.Getpid())
	if status != exitFailed || strings.Join(strings.Fields(stderr.String()), " ") != want {
		t.Errorf("status %d, %q", status, stderr.String())
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
