package transform

import (
	"fmt"
	"slices"
)

// planBudget lets the search choose for every layer, and says what is expected of each.
func (p *planner) planBudget(targets []*target, lossy []Choice) error {
	steps, err := p.search(targets, lossy)
	if err != nil {
		return err
	}
	p.plan.Steps = append(p.plan.Steps, flatten(steps)...)
	if err := p.pruneUnread(); err != nil {
		return err
	}
	planned := byTensor(p.plan.Steps)
	outlook := make([]Outlook, len(targets))
	err = p.parallel(p.ctx, "look", len(targets), len(targets), func(i int) (err error) {
		t := targets[i]
		steps := slices.DeleteFunc(planned[t.tensor.Name], func(s *Step) bool { return slices.Contains(t.fixed, s) })
		outlook[i], err = t.expect(steps)
		if missed := p.lacking(steps); len(missed) > 0 {
			outlook[i].Missed = fmt.Sprintf("%v would take more than its share of the budget of loss", missed)
		}
		return err
	})
	p.plan.Outlook = append(p.plan.Outlook, outlook...)
	return err
}

// lacking are the passes with arguments that none of a layer's steps carries out. What only modifies
// others is not missed where there is nothing to modify.
func (p *planner) lacking(steps []*Step) (missed []string) {
	for _, c := range p.opt.Passes {
		asked := c.Pass.Class == Lossy && !c.Pass.modifies && len(c.Args) > 0
		if asked && !slices.ContainsFunc(steps, func(s *Step) bool { return s.Pass == c.Pass.Name }) {
			missed = append(missed, c.String())
		}
	}
	return missed
}

func flatten(lists [][]*Step) (all []*Step) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// expect is the outlook of a target under steps besides those that are fixed.
func (t *target) expect(steps []*Step) (out Outlook, err error) {
	out = Outlook{Tensor: t.tensor.Name, Linear: true}
	sample, err := t.sample([][]*Step{steps})
	if err != nil {
		return out, err
	}
	before, err := sample.energy(t.p, t.base.untouched())
	if err != nil {
		return out, err
	}
	prog, err := t.compile(steps...)
	if err != nil {
		return out, err
	}
	if err := prog.prepare(t.p.ctx, 1); err != nil {
		return out, err
	}
	defer prog.letGo()
	after, err := sample.energy(t.p, prog)
	if err != nil {
		return out, err
	}
	loss, err := t.inputLoss(prog)
	out.Before, out.After, out.InputSNR = &before, &after, finiteOrNil(loss.Decibels())
	return out, err
}
