package search

import (
	"context"
	"slices"

	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/plan"
)

// combine lists the combinations of lossy steps for a layer. Each combination has one candidate of every pass with
// arguments, and at most one candidate of the passes without arguments. Passes with Feedback are added to every
// combination that is not empty. If the layer's codes approximate the values of a reference, these passes are also
// added to the empty combination.
func combine(ctx context.Context, l *pass.Layer, lossy []pass.Choice) ([][]*plan.Step, error) {
	fixed := [][]*plan.Step{nil}     // alternatives of the passes with arguments
	var free, modifiers []*plan.Step // candidates of passes without arguments, and of passes with Feedback
	for _, c := range lossy {
		if q := l.Codes(); q != nil && c.Fits(q) != "" {
			continue
		}
		all, err := c.Pass.Candidates(ctx, l, c.Args)
		if err != nil {
			return nil, err
		}
		var steps []*plan.Step
		for _, data := range all {
			steps = append(steps, c.Pass.TensorStep(l.Weight.Name, data))
		}
		switch {
		case c.Pass.Feedback != nil:
			modifiers = append(modifiers, steps...)
		case len(c.Args) == 0 && c.Pass.Args != nil:
			free = append(free, steps...)
		case len(steps) > 0:
			fixed = withEach(fixed, steps, lossy)
		}
	}
	all := fixed
	for _, s := range free {
		all = append(all, withEach(fixed, []*plan.Step{s}, lossy)...)
	}
	for _, m := range modifiers {
		for i, c := range all {
			if len(c) > 0 || l.Base().Referenced() {
				all[i] = append(c[:len(c):len(c)], m)
			}
		}
	}
	return all, nil
}

// withEach appends each of the steps to each of the combinations, in the order of the passes.
func withEach(combinations [][]*plan.Step, steps []*plan.Step, passes []pass.Choice) [][]*plan.Step {
	rank := func(s *plan.Step) int {
		return slices.IndexFunc(passes, func(c pass.Choice) bool { return c.Pass.Name == s.Pass })
	}
	var all [][]*plan.Step
	for _, c := range combinations {
		for _, s := range steps {
			next := append(append([]*plan.Step{}, c...), s)
			slices.SortStableFunc(next, func(a, b *plan.Step) int { return rank(a) - rank(b) })
			all = append(all, next)
		}
	}
	return all
}
