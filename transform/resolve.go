package transform

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// resolve finds the model's family. Passes that need one make its absence an error, and so does a family
// that was given and does not fit; for the others that is only a note.
func (p *planner) resolve() error {
	needed := slices.IndexFunc(p.opt.Passes, func(c Choice) bool { return c.Pass.NeedsFamily })
	layout, err := arch.Resolve(p.model, p.opt.Family)
	unknown := errors.Is(err, arch.ErrUnknownFamily)
	const allCount = "every matrix whose name does not speak of an embedding counts as a layer"
	switch {
	case unknown && needed >= 0:
		return fmt.Errorf("%s needs to know the model's family: %w", p.opt.Passes[needed].Pass.Name, err)
	case unknown:
		p.note("the family is not known (%v): %s", err, allCount)
		return nil
	case err != nil && p.opt.Family != nil:
		return err
	case err != nil && needed >= 0:
		return fmt.Errorf("%s needs a model that fits its family: %w", p.opt.Passes[needed].Pass.Name, err)
	case err != nil:
		p.note("%s: %s", strings.ReplaceAll(err.Error(), "\n", "; "), allCount)
		return nil
	}
	p.layout = layout
	p.plan.Model.Family = layout.Family
	for _, s := range layout.UnclaimedGroups() {
		p.note("%s: no part of the family %s: left untouched", s, layout.Family)
	}
	if needed < 0 {
		return nil
	}
	for _, b := range layout.BlockedIndices() {
		p.note("%s", b)
	}
	if !slices.ContainsFunc(p.opt.Passes, func(c Choice) bool { return c.Pass.Class != Lossy }) {
		return nil
	}
	return checkAdapters(p.model, layout)
}
