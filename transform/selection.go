package transform

import (
	"errors"
	"fmt"
	"slices"

	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// leftAlone is the reason, in messages, why a weight of a [plan.Selection] does not change. The text follows the
// tensor's name.
const leftAlone = "is excluded by ignore or only"

// ErrCustomCode marks a model with its own code, which may compute another function than the model's family.
var ErrCustomCode = errors.New("the model has its own code")

// namesOf lists a weight's name and the names of its tensors.
func namesOf(w *quant.Weight) []string {
	names := []string{w.Name}
	for _, t := range w.Parts {
		names = append(names, t.Name)
	}
	return names
}

// leaves returns the argument of [quantise.NewTarget]: a function that reports which weights of an unquantised model
// do not change. nil: all weights may change.
func leaves(s *plan.Selector) func(name string) bool {
	if s.LeavesNone() {
		return nil
	}
	return func(name string) bool { return s.Leaves(name) }
}

// leaveAlone excludes the weights of the request's selection, and notes their number. Patterns without a match are an
// error.
func (p *planner) leaveAlone() error {
	if err := p.refuseCustomCode(); err != nil {
		return err
	}
	keepRouters := p.opt.KeepRouters && slices.ContainsFunc(p.opt.Passes, func(c pass.Choice) bool { return c.Pass.Class == pass.Lossy })
	routers, layers := 0, 0
	var kept []string
	var all [][]string
	for _, w := range p.weights.All {
		names := namesOf(w)
		all = append(all, names)
		if p.selector.Leaves(names...) {
			kept = append(kept, names...)
			if p.isLayer(w) {
				layers++
			}
		} else if keepRouters && p.isRouter(w) {
			routers++
		}
	}
	if err := p.selector.Check(all); err != nil {
		return err
	}
	if routers > 0 {
		p.plan.Request.KeepRouters = true
		p.note("lossy passes do not change %s, because errors in a router send tokens to other experts", amount(routers, "router", "routers"))
	}
	if len(kept) == 0 {
		return nil
	}
	p.model.Layout = p.model.Layout.Keep(kept, leftAlone)
	p.note("ignore or only excludes %s from all changes", amount(layers, "linear layer", "linear layers"))
	return nil
}

// refuseCustomCode returns an error if a pass relies on the family's function and the model's own code may compute
// another function.
func (p *planner) refuseCustomCode() error {
	field := arch.CustomCode(p.Config)
	if field == "" || p.model.Layout == nil {
		return nil
	}
	if p.opt.TrustFamily {
		p.note("config.json names the model's own code (auto_map: %s); because of --trust-family, this code is assumed to compute the function of the family %s", field, p.model.Layout.Family)
		return nil
	}
	i := slices.IndexFunc(p.opt.Passes, func(c pass.Choice) bool { return c.Pass.Class != pass.Lossy })
	if i < 0 {
		return nil
	}
	return fmt.Errorf("%w: config.json names it (auto_map: %s), and %s keeps only the function of the family %s: "+
		"leave the pass out or, if the model's code computes this function, give --trust-family", ErrCustomCode, field, p.opt.Passes[i], p.model.Layout.Family)
}

// checkCustomCode returns an error for a plan with exact steps and a model with its own code, unless the plan trusts
// the family.
func (s *source) checkCustomCode(p *plan.Plan) error {
	field := arch.CustomCode(s.Config)
	if field == "" || p.Request.TrustFamily || !slices.ContainsFunc(p.Steps, func(step *plan.Step) bool { return step.Index != "" }) {
		return nil
	}
	return fmt.Errorf("%w: config.json names it (auto_map: %s), and the plan's exact steps rely on the family %s: make the plan again, with --trust-family if the model's code computes the family's function",
		ErrCustomCode, field, p.Model.Family)
}

// stays reports whether lossy passes do not change a weight.
func (p *planner) stays(w *quant.Weight) bool {
	return p.opt.KeepRouters && p.isRouter(w) || p.selector.Leaves(namesOf(w)...)
}

// isRouter reports whether a weight belongs to a router in a block.
func (p *planner) isRouter(w *quant.Weight) bool {
	if !arch.IsRouter(w.Name) || !p.isLayer(w) {
		return false
	}
	l := p.model.Layout
	return l == nil || l.Claims[w.Name] != nil && l.Claims[w.Name].Layer >= 0
}

// changed returns the layers that lossy passes may change.
func (p *planner) changed(layers []*pass.Layer) []*pass.Layer {
	return slices.DeleteFunc(slices.Clone(layers), func(l *pass.Layer) bool { return p.stays(l.Weight) })
}
