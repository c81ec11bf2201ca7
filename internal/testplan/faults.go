package testplan

import (
	"context"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/plan"
)

// FaultsAreTold makes plans of conversions, for the tensors of a selection, in which one check of the context, prediction of energy or read of a Hessian fails. Each
// failure must end the plan with its error.
func FaultsAreTold(t *testing.T, of plan.Selection, list ...Frozen) {
	t.Helper()
	for _, c := range list {
		t.Run(c.String(), func(t *testing.T) {
			src := c.source(t)
			o, h := c.options(t, src)
			o.Workers, o.Selection = 1, of
			testmodel.EachFault(t, func(ctx context.Context, f *testmodel.Faults) error {
				o.Cost = testmodel.FaultyCost{Faults: f}
				if h != nil {
					o.Hessians = testmodel.FaultyHessians{Hessians: h.(*testmodel.Hessians), Faults: f}
				}
				_, err := transform.Plan(ctx, src, o)
				return err
			})
		})
	}
}
