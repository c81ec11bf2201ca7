// Package goldenfile compares files of this repository with what a test says that they should hold.
package goldenfile

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Update is the flag -update of a test that uses this package: files are rewritten instead.
var Update = flag.Bool("update", false, "rewrite the files that tests compare with")

// Same reports a file that differs from want. With -update it writes the file first.
func Same(t testing.TB, path string, want []byte) {
	t.Helper()
	if *Update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(have), string(want)); diff != "" {
		t.Errorf("%s is stale; run go test -run %s -update in the test's folder:\n%s", path, t.Name(), diff)
	}
}
