package profile

import (
	"context"
	"errors"
	"fmt"

	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// Group is work that several cards of one host execute at the same time.
type Group struct {
	Machines []measure.Machine
	Clock    power.Clock // of all cards
	// Works are the workloads, in the order of the launcher's segment numbers. The caller sets Name, Problem, W and X.
	Works    []Product
	Launcher Launcher
	// Load is the load of the self-test of all cards' sensors.
	Load power.Load
}

// MeasureGroup profiles each workload of a group alone, starting from idle cards, and returns one result per card. Each
// run is recorded on all cards. MeasureGroup closes the launcher. Its errors are those of [Measure].
func MeasureGroup(ctx context.Context, g Group, o Options) ([]*Result, error) {
	if err := errors.Join(g.validate(), o.Validate()); err != nil {
		if g.Launcher != nil {
			err = errors.Join(err, g.Launcher.Close())
		}
		return nil, err
	}
	p := newProfiler(g.Machines, g.Clock, o)
	p.alone, p.launcher, p.result.Products = true, g.Launcher, g.Works
	return p.measure(ctx, func(ctx context.Context) error {
		for _, c := range p.cards {
			if err := p.selfTest(ctx, c, g.Load); err != nil {
				return err
			}
		}
		return p.timeAll(ctx)
	})
}

func (g Group) validate() error {
	if len(g.Machines) < 2 || len(g.Works) < 1 || len(g.Works) > mostKernels {
		return fmt.Errorf("%d cards and %d workloads: give at least two cards and 1 to %d workloads", len(g.Machines), len(g.Works), mostKernels)
	}
	return nil
}
