// Package goldenfile compares files of this repository with the content that a test expects.
package goldenfile

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Update is the flag -update of a test that uses this package: the files are rewritten.
var Update = flag.Bool("update", false, "rewrite the files that tests compare with")

// Same fails the test if a file differs from want. With -update it writes the file first.
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

// SameBetween fails the test if the text between two marks of a file differs from want.
func SameBetween(t testing.TB, path, begin, end, want string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no text between %s and %s", path, begin, end)
	}
	Same(t, path, []byte(before+begin+want+end+after))
}
