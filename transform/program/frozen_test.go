package program_test

import (
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testplan"
)

// TestFrozenResults: what programs make of values and codes has the bytes that it had. go test . -run Frozen holds the same of whole
// commands.
func TestFrozenResults(t *testing.T) {
	testplan.CheckFrozen(t, "testdata/frozen.txt", false, append(append(append([]testplan.Frozen{}, testplan.FrozenPlain...), testplan.FrozenCodes...), testplan.FrozenFormats...)...)
}
