package transform

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// embedderName is the file of a folder that is loaded as an embedder (sentence-transformers), whatever
// head config.json speaks of.
const embedderName = "modules.json"

// Resolve lays the catalogue over a model, and over the adapter beside it. With no family given, a model
// that is in no catalogue (or has no config.json) has a nil layout and the reason; a family that does not
// fit is an error.
func Resolve(m *weights.Model, family *arch.Family) (layout *arch.Layout, unknown, err error) {
	if family == nil {
		if m.Config == nil {
			return nil, fmt.Errorf("%s has no config.json", m.Dir), nil
		}
		family, err = arch.Detect(m.Config)
		if errors.Is(err, arch.ErrUnknownFamily) {
			return nil, fmt.Errorf("%w; --arch FILE describes another", err), nil
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", m.Dir, err)
		}
	}
	layout, err = family.Resolve(m.Config, m.Infos())
	if err != nil {
		return nil, nil, fmt.Errorf("%s: does not fit the family %s: %w", m.Dir, family.Name, err)
	}
	if slices.Contains(m.Others, embedderName) {
		layout.Keep(embedderName + " makes the model's hidden states its outputs")
	}
	if m.Adapter != nil {
		layout = layout.Adapt(m.AdapterConfig, m.Adapter.Tensors)
	}
	return layout, nil, nil
}

// resolve finds the model's family. Passes that need one make its absence an error, and so does a family
// that was given and does not fit; for the others that is only a note.
func (p *planner) resolve() error {
	needed := slices.IndexFunc(p.opt.Passes, func(c Choice) bool { return c.Pass.NeedsFamily })
	layout, unknown, err := Resolve(p.model, p.opt.Family)
	const allCount = "every matrix whose name does not speak of an embedding counts as a layer"
	switch {
	case err != nil && p.opt.Family != nil:
		return err
	case err != nil && needed >= 0:
		return fmt.Errorf("%s needs a model that fits its family: %w", p.opt.Passes[needed].Pass.Name, err)
	case err != nil:
		p.note("%s: %s", strings.ReplaceAll(err.Error(), "\n", "; "), allCount)
		return nil
	case unknown != nil && needed >= 0:
		return fmt.Errorf("%s needs to know the model's family: %w", p.opt.Passes[needed].Pass.Name, unknown)
	case unknown != nil:
		p.note("the family is not known (%v): %s", unknown, allCount)
		return nil
	}
	p.layout = layout
	p.plan.Model.Family = layout.Family
	for _, s := range layout.Strangers() {
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
