package transform

import (
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/lowtoggle/lowtoggle/transform/apply"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/quant"
	"github.com/lowtoggle/lowtoggle/weights/quantise"
)

// source is a model with the data that planning and applying share. Each part of the data is computed once.
type source struct {
	*weights.Model
	weights     *quant.Set
	quantised   *quant.Description
	layout      *arch.Layout // nil for an unknown family, or one that does not fit
	unresolved  error        // why layout is nil
	fingerprint plan.Model
	results     *program.Results
	target      *quantise.Target // layout of the result; nil: the source's layout
	selector    *plan.Selector   // selects the weights that do not change; nil: all may change
	count       *counters

	// reference has the weights that codes should approximate, by name; nil without a reference. referenceKey is the
	// fingerprint of their model, or empty. With a target, reference has the source's own weights, and the
	// fingerprint is empty.
	reference    *quant.Set
	referenceKey string

	// compiler has the last plan's steps, compiled. hessians are those of the plan; nil if its passes use none.
	compiler *program.Compiler
	compiled *plan.Plan
	hessians program.Hessians
}

// openSource reads headers, samples for the fingerprint, and the catalogue. It reuses data that the tokens of the
// same model already have; t may be nil. Tokens of another model, or with another family, are an error.
//
// which selects the weights that do not change. With a format, the source's weights and layout are those of the model
// in this format, before any code is chosen.
func openSource(m *weights.Model, family *arch.Family, t *Tokens, count *counters, format quantise.Format, which plan.Selection) (*source, error) {
	if err := m.Usable(); err != nil {
		return nil, err
	}
	if err := t.usable(); err != nil {
		return nil, err
	}
	selector, err := which.Selector()
	if err != nil {
		return nil, err
	}
	if err = refuseAdapter(m); err != nil {
		return nil, err
	}
	if count == nil {
		count = &counters{}
	}
	if family, err = t.familyBeside(family); err != nil {
		return nil, weights.FileErrorf(m.Dir, "%w", err)
	}
	own := t != nil && t.model == m
	var fingerprint plan.Model
	var reading errgroup.Group // reading samples of the whole model takes as long as the rest of this function
	if own {
		fingerprint = t.fingerprint
	} else {
		count.fingerprints++
		reading.Go(func() (err error) { fingerprint, err = plan.Fingerprint(m); return err })
	}
	defer reading.Wait() // the caller may close the model after an error
	q, err := quant.Describe(m)
	if err != nil {
		return nil, err
	}
	s := &source{Model: m, weights: quant.Group(m, q), quantised: q, results: &program.Results{}, count: count, selector: selector}
	if format.Name != "" {
		if s.target, err = quantise.NewTarget(m, family, format, leaves(selector)); err != nil {
			return nil, err
		}
		s.reference, s.quantised = s.weights, s.target.Description
		s.weights = quant.Group(s.target.Model, s.quantised)
	}
	switch {
	case own && s.target == nil:
		s.layout = t.scorer.Layout
	case s.target != nil:
		s.layout, s.unresolved = arch.ResolveDescribed(s.target.Model, family, s.quantised)
	default:
		count.resolved++
		s.layout, s.unresolved = arch.ResolveDescribed(m, family, q)
	}
	if err := reading.Wait(); err != nil {
		return nil, err
	}
	if s.fingerprint = fingerprint; t != nil && t.fingerprint != s.fingerprint {
		return nil, weights.FileErrorf(m.Dir, "the tokens belong to another model, %s: call NewTokens with this model", t.model.Dir)
	}
	return s, nil
}

// checkOut returns an error for an unsuitable output folder; see [CheckOut].
func (s *source) checkOut(out string, store apply.Store, resume bool, old *apply.Made) error {
	s.count.outChecks++
	return apply.CheckOut(s.Model, placed(out, store), resume, old)
}

// placed returns the place of an output. A place in a store has many spellings; the result is always the store's URL.
func placed(out string, store apply.Store) string {
	if store != nil {
		return store.URL()
	}
	return out
}

// compile compiles the steps. The compiler may also be used for other steps on tensors. A step on a tensor of an
// unreadable quantised weight is a [plan.ErrInvalid].
func (s *source) compile(layout *arch.Layout, h program.Hessians, t Table, steps []*plan.Step) (*program.Compiler, error) {
	for _, step := range steps {
		if q, ok := s.quantised.Weight(step.Tensor); ok {
			if err := q.CanRead(); err != nil {
				return nil, fmt.Errorf("%w: %s: weight %q is quantised (%s) and can only be copied: %w", plan.ErrInvalid, step.Pass, step.Tensor, q.Format, err)
			}
			continue
		}
		if f, role, ok := s.quantised.Tensor(step.Tensor); ok {
			return nil, fmt.Errorf("%w: %s: tensor %q holds %s of a quantised weight (%s) and can only be copied", plan.ErrInvalid, step.Pass, step.Tensor, role, f)
		}
	}
	return program.NewCompiler(program.CompilerOptions{Weights: s.weights, Layout: layout, Hessians: h, Rules: t.rules(),
		Results: s.results, Count: &s.count.Counters, Reference: s.reference}, steps)
}

// ErrOtherFamily marks a plan that was made for another family than the model's.
var ErrOtherFamily = errors.New("give the family that the plan was made with")

// layoutOf returns the layout for a plan; nil if the plan was made without a family. A plan of another family is an
// error.
func (s *source) layoutOf(p *plan.Plan) (*arch.Layout, error) {
	if p.Model.Family == "" {
		return nil, nil
	}
	if s.unresolved != nil {
		return nil, s.unresolved
	}
	if s.layout.Family != p.Model.Family {
		return nil, weights.FileErrorf(s.Dir, "the plan was made for family %s, and the model's family is %s: %w", p.Model.Family, s.layout.Family, ErrOtherFamily)
	}
	return s.layout, nil
}

// unknown reports whether the family is not in the catalogue.
func (s *source) unknown() bool { return errors.Is(s.unresolved, arch.ErrUnknownFamily) }
