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
		"so that neighbours agree in more than half of their signs. On rows of thousands of unrelated " +
		"signs that is a few percent of the sign toggles: next to nothing in energy.",
	plan: func(ctx context.Context, p *planner, _ []string) error {
		return p.eachIndex(ctx, func(ix *arch.Index) bool { return ix.Sign }, signIndex)
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

// signIndex walks the index in its planned order and gives each label the sign that makes most of
// its signs equal its predecessor's.
func signIndex(p *planner, ix *arch.Index) ([]*Step, error) {
	uses := signedUses(p.uses(ix))
	fixed := make([]bool, ix.Len)
	for _, u := range uses {
		if err := u.markFixed(p.ctx, fixed); err != nil {
			return nil, err
		}
	}
	uses = slices.DeleteFunc(uses, func(u *use) bool { return u.weight == 0 })
	if len(uses) == 0 || ix.Len < 2 {
		return nil, nil
	}
	sketch, err := p.sketch(ix, uses, func(u *use) uint32 { return u.format.SignMask() })
	if err != nil {
		return nil, err
	}
	order := p.order(ix)
	flip := make([]bool, ix.Len)
	var list []int
	for i, label := range order[1:] {
		prev := order[i]
		flip[label] = !fixed[label] && flip[prev] != (sketch.distance(prev, label) > sketch.bits/2)
	}
	for label, f := range flip {
		if f {
			list = append(list, label)
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
