package pass

import (
	"context"
	"fmt"
	"slices"

	"github.com/lowtoggle/lowtoggle/transform/order"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// signsName avoids an initialisation cycle of Signs.
const signsName = "signs"

// Signs multiplies labels of an index by −1. The data of a step is the ascending list of flipped labels.
var Signs = &Pass{
	Name: signsName, Class: Exact, NeedsFamily: true,
	Usage: "signs",
	Doc: "Multiplies labels of an index by −1 on both sides, so that neighbours agree in more than half of their signs. " +
		"Examples of the two sides are up and down of a gated FFN, V and O, and rotary pairs of Q and K. The residual " +
		"stream can change signs only if the norms are RMSNorms. The pass reorder takes the signs into account. In rows of " +
		"thousands of unrelated signs, the pass removes a few per cent of the sign toggles, which saves no measurable " +
		"energy.",
	Plan: func(ctx context.Context, m *Model, _ []string) ([]*plan.Step, error) {
		views := m.previews()
		return m.eachIndex(ctx, signsName, true, sketches, func(ix *arch.Index) bool { return ix.Sign }, func(ctx context.Context, ix *arch.Index) ([]*plan.Step, error) {
			return m.signIndex(ctx, views, ix)
		})
	},
	Symmetry: func(s *plan.Step, n int, sym *program.Symmetry) error {
		flipped, err := plan.Data[[]int](s, "flip")
		if err != nil {
			return err
		}
		if sym.Flip != nil {
			return fmt.Errorf("the index has its signs set twice")
		}
		sym.Flip = make([]bool, n)
		for i, label := range flipped {
			if label < 0 || label >= n || i > 0 && label <= flipped[i-1] {
				return fmt.Errorf("the flipped labels must be an ascending list of numbers from 0 to %d", n-1)
			}
			sym.Flip[label] = true
		}
		return nil
	},
}

// signIndex gives each label, in its planned order, the sign that makes most of the label's signs equal to its
// neighbours'.
func (m *Model) signIndex(ctx context.Context, views *previews, ix *arch.Index) ([]*plan.Step, error) {
	fixed := make([]bool, ix.Len)
	for _, u := range signedUses(m.uses(ix)) {
		if err := u.markFixed(ctx, fixed); err != nil {
			return nil, err
		}
	}
	uses, err := m.lagged(ctx, ix)
	uses = signedUses(uses)
	if err != nil || len(uses) == 0 || ix.Len < 2 {
		return nil, err
	}
	shown, err := views.show(ctx, uses)
	if err != nil {
		return nil, err
	}
	bytes, _ := m.sketchBytes(uses)
	sketch, err := order.NewSketch(ctx, shown, order.SketchOptions{Labels: ix.Len, MaxBytes: bytes, Signs: true, OnlySigns: true, Workers: m.Workers})
	if err != nil {
		return nil, err
	}
	place := sketch.Placement()
	path := place.Pick(m.order(ix))
	toggles, err := sketch.Toggles(ctx, place, path, m.Workers)
	if err != nil {
		return nil, err
	}
	stay := make([]bool, len(path))
	for i, label := range path {
		stay[i] = fixed[label]
	}
	var list []int
	for i, flipped := range toggles.Signs(stay) {
		if flipped {
			list = append(list, path[i])
		}
	}
	if list == nil {
		return nil, nil
	}
	slices.Sort(list)
	return []*plan.Step{{Index: ix.Name, Data: list}}, nil
}

// order returns the order planned for an index so far.
func (m *Model) order(ix *arch.Index) []int {
	if s := m.Compiler.Symmetries()[ix.Name]; s != nil && s.Perm != nil {
		return s.Perm
	}
	return order.Identity(ix.Len)
}

// markFixed marks the labels whose sign cannot change exactly: labels with values that are not finite, or with an I8
// of −128.
func (u *use) markFixed(ctx context.Context, fixed []bool) error {
	return guard(u.w, func() error {
		return u.each(ctx, func(label int, b uint32, _ int) {
			if _, ok := program.Scaled(u.Format, b, true, 0); !ok {
				fixed[label] = true
			}
		})
	})
}
