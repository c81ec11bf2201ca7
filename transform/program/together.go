package program

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lowtoggle/lowtoggle/transform/rounding"
	"github.com/lowtoggle/lowtoggle/weights"
)

// PrepareTogether prepares programs of one layer that a device can compute together: they use the same loaded layer and
// differ in the prices of values alone. It leaves the others to Prepare.
func PrepareTogether(ctx context.Context, programs []*Program, workers int) error {
	type group struct {
		programs []*Program
		tables   []rounding.Table
		choosing choosing
	}
	var groups []*group
	for _, p := range programs {
		if !p.HoldsResult() || p.joint == nil || p.joint.layer == nil || p.joint.data != nil {
			continue
		}
		c, err := p.joint.choosing(ctx, p, p.joint.layer)
		if err != nil {
			return err
		}
		t, ok := c.table(p.joint.layer)
		if !ok {
			continue
		}
		i := slices.IndexFunc(groups, func(g *group) bool {
			return g.programs[0].joint.layer == p.joint.layer && g.choosing.damp == c.damp && slices.Equal(g.choosing.first, c.first) && g.tables[0].Alike(t)
		})
		if i < 0 {
			i = len(groups)
			groups = append(groups, &group{choosing: c})
		}
		groups[i].programs, groups[i].tables = append(groups[i].programs, p), append(groups[i].tables, t)
	}
	for _, g := range groups {
		l, c := g.programs[0].joint.layer, g.choosing
		all, err := l.on.Round(ctx, l.W, rounding.FactorOptions{Damp: c.damp, First: c.first}, g.tables, rounding.Options{Workers: workers, Zero: len(c.first)})
		if errors.Is(err, rounding.ErrNoFeedback) {
			continue
		}
		for i, p := range g.programs {
			if err == nil {
				err = weights.Guard(p.File(), func() (err error) {
					p.joint.data, err = p.stored(ctx, l, all[i], workers)
					return err
				})
			}
			if err != nil {
				return fmt.Errorf("%s: tensor %q: %w", p.File(), p.Source.Name, err)
			}
		}
	}
	return nil
}
