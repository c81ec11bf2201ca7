package profile

import (
	"context"
	"errors"
	"fmt"

	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// Group is work that runs on several cards of a host at the same time.
type Group struct {
	Machines []measure.Machine
	Clock    power.Clock // of all cards
	// Works are the workloads of the launcher's segments, in the order of their numbers. The caller sets Name, Problem, W and X.
	Works    []Product
	Launcher Launcher
	// Load tests the sensors of all cards.
	Load power.Load
}

// MeasureGroup profiles each of a group's workloads alone, from idle cards, and returns a result for each card. All cards'
// sensors are read in the same runs. It closes the launcher. Errors are those of [Measure].
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
		return fmt.Errorf("%d cards and %d works: give two cards or more, and 1 to %d works", len(g.Machines), len(g.Works), mostKernels)
	}
	return nil
}
