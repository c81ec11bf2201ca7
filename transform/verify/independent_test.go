package verify_test

import (
	"go/build"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/verify"
)

// TestChecksAreIndependent: every pass has its own check, and verify calls no code that transforms.
func TestChecksAreIndependent(t *testing.T) {
	seen := map[*verify.Check]string{}
	for _, r := range transform.Passes {
		switch {
		case r.Check == nil:
			t.Errorf("%s has no check", r.Pass.Name)
		case seen[r.Check] != "":
			t.Errorf("%s has the check of %s", r.Pass.Name, seen[r.Check])
		case (r.Check.Symmetry != nil) != (r.Pass.Symmetry != nil) || (r.Check.Claim != nil) != (r.Pass.Compile != nil):
			t.Errorf("%s: its check is not of its class", r.Pass.Name)
		}
		seen[r.Check] = r.Pass.Name
	}
	p, err := build.ImportDir(".", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range p.Imports {
		if _, room, found := strings.Cut(path, "lowtoggle/transform"); found && room != "/plan" {
			t.Errorf("verify imports %s", path)
		}
	}
	if !slices.Contains(p.Imports, "github.com/lowtoggle/lowtoggle/transform/plan") {
		t.Errorf("unexpected imports: %q", p.Imports)
	}
}
