package program_test

import (
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testplan"
	"github.com/lowtoggle/lowtoggle/transform/plan"
)

// TestFaultsAreTold: a failure within a program, of values or of codes, ends the plan with its error.
func TestFaultsAreTold(t *testing.T) {
	testplan.FaultsAreTold(t, plan.Selection{Only: []string{"re:.*(up|gate)_proj"}},
		testplan.Frozen{Model: "gptq", Passes: "scales,grid=2,compensate=0.02", MinSNR: 12, Tokens: true},
		testplan.Frozen{Model: "llama-tiny", Fields: testplan.Narrow, Passes: "scale,sparsify=0.2/4x1,grid,compensate", MinSNR: 12, Tokens: true},
	)
}
