//go:build linux && (amd64 || arm64) && !nogpu

package cuda

import (
	"slices"
	"strings"
	"testing"
)

// purego must be able to call every function type; registering calls nothing.
func TestEveryFunctionCanBeRegistered(t *testing.T) {
	a := new(api)
	for _, s := range slices.Concat(a.driverSymbols(), a.blasSymbols(), new(compiler).symbols()) {
		if err := register(s, 1); err != nil {
			t.Error(err)
		}
	}
}

func TestRegisterReportsPanics(t *testing.T) {
	var f func() (int, int)
	if err := register(symbol{"cuTwice", &f}, 1); err == nil || !strings.Contains(err.Error(), "cuTwice: ") {
		t.Error(err)
	}
}
