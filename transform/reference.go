package transform

import (
	"errors"
	"fmt"
	"slices"

	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// ErrNoReference marks a plan that needs its reference model.
var ErrNoReference = errors.New("give the unquantised model that it was planned with as the reference")

// useReference makes the weights of an unquantised model the target of new codes. ref may be nil. A reference without one of the
// quantised weights is an error, and so is one for a model that has none.
func (s *source) useReference(ref *weights.Model) error {
	if ref == nil {
		return nil
	}
	d, err := quant.Describe(ref)
	if err != nil {
		return err
	}
	set, found := quant.Group(ref, d), false
	for _, w := range s.weights.All {
		if w.Quantised == nil {
			continue
		}
		found = true
		r, ok := set.Weight(w.Name)
		switch {
		case !ok:
			return fmt.Errorf("%s: has no weight %q, which is quantised in %s: give the unquantised model that it was made from", ref.Dir, w.Name, s.Dir)
		case r.Quantised != nil || d.Holds(w.Name):
			return fmt.Errorf("%s: weight %q is quantised here, too: give the unquantised model that %s was made from", ref.Dir, w.Name, s.Dir)
		case !slices.Equal(r.Shape, w.Shape):
			return fmt.Errorf("%s: weight %q has shape %v, and %v in %s: give the unquantised model that it was made from", ref.Dir, w.Name, r.Shape, w.Shape, s.Dir)
		}
		if _, numbers := r.DType.Format(); !numbers {
			return fmt.Errorf("%s: weight %q is of type %s, which is not read", ref.Dir, w.Name, r.DType)
		}
	}
	if !found {
		return fmt.Errorf("%s: has no quantised weights that can be read, so a reference changes nothing: leave it out", s.Dir)
	}
	fingerprint, err := plan.Fingerprint(ref)
	s.reference, s.referenceKey = set, fingerprint.SHA256
	return err
}

// checkReference returns an error if a plan was made with another reference.
func (s *source) checkReference(p *plan.Plan) error {
	switch {
	case p.Request.Reference == s.referenceKey:
		return nil
	case p.Request.Reference == "":
		return errors.New("the plan was made without a reference: give none")
	case s.referenceKey == "":
		return fmt.Errorf("the plan was made with a reference: %w", ErrNoReference)
	}
	return fmt.Errorf("the plan was made with another reference: %w", ErrNoReference)
}
