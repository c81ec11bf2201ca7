package transform

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// ErrNoReference marks a plan that requires its reference model.
var ErrNoReference = errors.New("give the unquantised model that was the reference when the plan was made")

// useReference makes the weights of an unquantised model the targets of new codes. ref may be nil. It returns an
// error if ref lacks one of the quantised weights, and if the source has no quantised weights.
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
			return weights.FileErrorf(ref.Dir, "has no weight %q, which is quantised in %s: give the unquantised model that %[2]s was made from", w.Name, s.Dir)
		case r.Quantised != nil || d.Holds(w.Name):
			return weights.FileErrorf(ref.Dir, "weight %q is quantised here too: give the unquantised model that %s was made from", w.Name, s.Dir)
		case !slices.Equal(r.Shape, w.Shape):
			return weights.FileErrorf(ref.Dir, "weight %q has shape %v, and %v in %s: give the unquantised model that %[4]s was made from", w.Name, r.Shape, w.Shape, s.Dir)
		}
		if _, numbers := r.DType.Format(); !numbers {
			return weights.FileErrorf(ref.Dir, "weight %q is of type %s, which cannot be read: give the unquantised model in BF16, F16 or F32", w.Name, r.DType)
		}
	}
	if !found {
		return weights.FileErrorf(s.Dir, "has no quantised weights that can be read, so a reference changes nothing: leave the reference out")
	}
	fingerprint, err := plan.Fingerprint(ref)
	s.reference, s.referenceKey = set, fingerprint.SHA256
	return err
}

// leastOfOrigin is the lowest plausible output SNR, in dB, of quantised weights relative to the model that they were
// made from. Relative to unrelated weights, the output SNR is at most 0 dB.
const leastOfOrigin = 1

// checkOrigin returns an error if the layers' quantised weights differ too much from the reference's. It reads some
// rows of each layer.
func (p *planner) checkOrigin(ctx context.Context, layers []*pass.Layer) error {
	if p.referenceKey == "" {
		return nil
	}
	const rows, limit = 64, 100
	snr := make([]float64, len(layers))
	err := parallel.Run(ctx, len(layers), p.opt.Workers, func(ctx context.Context, i int) error {
		snr[i] = math.NaN()
		base := layers[i].Base()
		if !base.Referenced() {
			return nil
		}
		return weights.Guard(base.File(), func() error {
			loss, err := base.Loss(ctx, 0, min(rows, base.Rows))
			snr[i] = max(-limit, min(loss.Decibels(), limit))
			return err
		})
	})
	if err != nil {
		return err
	}
	snr = slices.DeleteFunc(snr, math.IsNaN)
	mean := 0.0
	for _, v := range snr {
		mean += v / float64(len(snr))
	}
	if len(snr) > 0 && mean < leastOfOrigin {
		return fmt.Errorf("%s is not the model that %s was made from: relative to %[1]s, the output SNR of the quantised layers is %.1[3]f dB on average: give the unquantised model",
			p.opt.Reference.Dir, p.Dir, mean)
	}
	return nil
}

// checkReference returns an error if a plan was made with another reference.
func (s *source) checkReference(p *plan.Plan) error {
	switch {
	case p.Request.Reference == s.referenceKey:
		return nil
	case p.Request.Reference == "":
		return errors.New("the plan was made without a reference: give no reference")
	case s.referenceKey == "":
		return fmt.Errorf("the plan needs its reference model: %w", ErrNoReference)
	}
	return fmt.Errorf("the plan was made with another reference: %w", ErrNoReference)
}
