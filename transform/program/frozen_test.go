package program_test

import (
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testplan"
)

// TestFrozenResults: programs give the frozen bytes for values and codes. go test . -run Frozen checks the same for
// whole commands.
func TestFrozenResults(t *testing.T) {
	testplan.CheckFrozen(t, "testdata/frozen.txt", false, slices.Concat(testplan.FrozenPlain, testplan.FrozenCodes, testplan.FrozenFormats, testplan.FrozenTokens, testplan.FrozenReference)...)
}
