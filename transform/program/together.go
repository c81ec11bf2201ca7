package program

import (
	"context"
	"errors"
	"slices"

	"github.com/lowtoggle/lowtoggle/transform/rounding"
	"github.com/lowtoggle/lowtoggle/weights"
)

// PrepareTogether prepares programs of one layer that a device can compute together: they use the same loaded layer
// and differ only in the energies of values. Other programs are left to Prepare.
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
		l := g.programs[0].joint.layer
		all, err := g.choosing.onDevice(ctx, l, g.tables, workers)
		if errors.Is(err, rounding.ErrNoFeedback) {
			continue
		}
		if err != nil {
			p := g.programs[0]
			return weights.TensorErrorf(p.File(), p.Source.Name, "%w", err)
		}
		for i, p := range g.programs {
			p.joint.data = p.received(l, all[i])
		}
	}
	return nil
}
