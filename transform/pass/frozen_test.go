package pass_test

import (
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testplan"
)

// TestFrozenPlans: what passes decide, and the bytes that follow, are as they were. go test . -run Frozen holds the same of whole
// commands.
func TestFrozenPlans(t *testing.T) {
	testplan.CheckFrozen(t, "testdata/frozen.txt", false, testplan.FrozenPlain...)
}
