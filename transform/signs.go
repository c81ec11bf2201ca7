package transform

import (
	"context"
	"fmt"
	"slices"

	"github.com/lowtoggle/lowtoggle/weights/arch"
)

var signsPass = &Pass{
	Name: "signs", Class: Exact, NeedsFamily: true,
	Usage: "signs",
	Doc: "Multiplies labels of an index by −1 on both of its sides (up and down of a gated layer, V and " +
		"O, pairs of Q and K under rotary positions, the residual stream where the norm is an RMSNorm), " +
		"so that neighbours agree in more than half of their signs. With reorder the order counts on it. On " +
		"rows of thousands of unrelated signs that is a few percent of the sign toggles: next to nothing in energy.",
	plan: func(ctx context.Context, p *planner, _ []string) error {
		views := newPreviews(p)
		return p.eachIndex(ctx, func(ix *arch.Index) bool { return ix.Sign }, func(p *planner, ix *arch.Index) ([]*Step, error) {
			return signIndex(p, views, ix)
		})
	},
	merge: func(s *Step, sym *Symmetry, n int) error {
		if sym.Flip != nil {
			return fmt.Errorf("the index has its signs set twice")
		}
		sym.Flip = make([]bool, n)
		for i, label := range s.Flip {
			if label < 0 || label >= n || i > 0 && label <= s.Flip[i-1] {
				return fmt.Errorf("the flipped labels are no ascending list within 0 and %d", n-1)
			}
			sym.Flip[label] = true
		}
		return nil
	},
}

// signIndex gives each label in its planned order the sign that makes most of its signs equal its
// neighbours'.
func signIndex(p *planner, views *previews, ix *arch.Index) ([]*Step, error) {
	fixed := make([]bool, ix.Len)
	for _, u := range signedUses(p.uses(ix)) {
		if err := u.markFixed(p.ctx, fixed); err != nil {
			return nil, err
		}
	}
	uses, err := p.following(ix)
	uses = signedUses(uses)
	if err != nil || len(uses) == 0 || ix.Len < 2 {
		return nil, err
	}
	sketch, err := newSketch(p.ctx, uses, sketchOptions{labels: ix.Len, maxBytes: p.sketchBytes(uses).bytes,
		signs: true, only: true, workers: p.opt.Workers, view: views.of})
	if err != nil {
		return nil, err
	}
	course := newCourse(ix.Len, sketch.groups, sketch.heavy)
	path := course.pick(p.order(ix))
	crossings, err := sketch.crossings(p.ctx, course, path, p.opt.Workers)
	if err != nil {
		return nil, err
	}
	stay := make([]bool, len(path))
	for i, label := range path {
		stay[i] = fixed[label]
	}
	var list []int
	for i, turned := range crossings.signs(stay) {
		if turned {
			list = append(list, path[i])
		}
	}
	if list == nil {
		return nil, nil
	}
	slices.Sort(list)
	return []*Step{{Index: ix.Name, Flip: list}}, nil
}

// markFixed marks the labels that cannot change their sign bit for bit: those with values that
// are not finite, or with an I8 of −128.
func (u *use) markFixed(ctx context.Context, fixed []bool) error {
	return u.each(ctx, func(label int, b uint32, _ int) {
		if _, ok := scaled(u.format, b, true, 0); !ok {
			fixed[label] = true
		}
	})
}
