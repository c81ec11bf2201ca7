package verify_test

import (
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testplan"
)

// TestFrozenVerdicts: results of every kind are accepted, and what is found in them after a byte has changed is what was found.
func TestFrozenVerdicts(t *testing.T) {
	testplan.CheckFrozen(t, "testdata/frozen.txt", true, append(append(append([]testplan.Frozen{}, testplan.FrozenPlain...), testplan.FrozenCodes...), testplan.FrozenFormats...)...)
}
