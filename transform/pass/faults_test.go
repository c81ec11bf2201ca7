package pass_test

import (
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testplan"
	"github.com/lowtoggle/lowtoggle/transform/plan"
)

// TestFaultsAreTold: a failure within a pass ends the plan with its error.
func TestFaultsAreTold(t *testing.T) {
	testplan.FaultsAreTold(t, plan.Selection{},
		testplan.Frozen{Model: "llama-tiny", Fields: testplan.Narrow, Passes: "scale,reorder,signs,grid", MinSNR: 20, Decode: true},
		testplan.Frozen{Model: "gpt2-tiny", Passes: "shift=4/epilogue,grid", MinSNR: 10},
		testplan.Frozen{Model: "llama-tiny", Fields: testplan.Narrow, Passes: "sparsify", MinSNR: 10},
		testplan.Frozen{Model: "llama-tiny", Fields: testplan.Narrow, Passes: "prune=0.3,trellis=0.05,compensate", Tokens: true},
	)
}
