package verify_test

import (
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testplan"
)

// TestFrozenVerdicts: results of every kind are accepted, and after a changed byte the report has the frozen
// problems.
func TestFrozenVerdicts(t *testing.T) {
	testplan.CheckFrozen(t, "testdata/frozen.txt", true, slices.Concat(testplan.FrozenPlain, testplan.FrozenCodes, testplan.FrozenFormats, testplan.FrozenTokens, testplan.FrozenReference)...)
}
