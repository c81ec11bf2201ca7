package atomicfile_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/atomicfile"
)

// TestMakeFolder: a folder is made with its parents. An existing folder is no error, but a file is.
func TestMakeFolder(t *testing.T) {
	top := t.TempDir()
	for range 2 {
		if err := atomicfile.MakeFolder(filepath.Join(top, "a", "b", "c")); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(top)
	if err := atomicfile.MakeFolder("d/e"); err != nil {
		t.Error(err)
	}
	if st, err := os.Stat("d/e"); err != nil || !st.IsDir() {
		t.Errorf("%v, %v", st, err)
	}
	if err := os.WriteFile("file", nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.MakeFolder("file/g"); err == nil {
		t.Error("a folder was made below a file")
	}
}
