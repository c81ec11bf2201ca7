package pass_test

import (
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testplan"
)

// TestFrozenPlans: the decisions of passes and the resulting bytes do not change. go test . -run Frozen checks the
// same for whole commands.
func TestFrozenPlans(t *testing.T) {
	testplan.CheckFrozen(t, "testdata/frozen.txt", false, slices.Concat(testplan.FrozenPlain, testplan.FrozenTokens, testplan.FrozenCodes[:12], testplan.FrozenFormats)...)
}
