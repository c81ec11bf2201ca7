package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// ErrNoReference marks a reference for an output that was made without one.
var ErrNoReference = errors.New("the output was made without a reference: give no reference")

// useReference compares the claims with the reference. A model that the plan does not name is reported as a problem.
func (r *Report) useReference(c *claims, m *weights.Model) error {
	if r.Plan == nil {
		return nil // a missing manifest is already reported
	}
	if r.Plan.Request.Reference == "" {
		return ErrNoReference
	}
	f, err := plan.Fingerprint(m)
	if err != nil {
		return err
	}
	if f.SHA256 != r.Plan.Request.Reference {
		r.problem("%s is not the reference that the manifest names: its SHA-256 is %.12s…, and the manifest says %.12s…", m.Dir, f.SHA256, r.Plan.Request.Reference)
		return nil
	}
	d, err := quant.Describe(m)
	if err != nil {
		return err
	}
	c.reference = quant.Group(m, d)
	return nil
}

// near returns the reference's weight that a quantised weight approximates, and its format; nil without a reference.
func (c *claims) near(q *quant.Quantised) (w *quant.Weight, f weights.Format, err error) {
	if c.reference == nil {
		return nil, f, nil
	}
	w, ok := c.reference.Weight(q.Name)
	if !ok || w.Quantised != nil || !slices.Equal(w.Shape, q.Shape) {
		return nil, f, fmt.Errorf("the reference has no unquantised weight %q of shape %v", q.Name, q.Shape)
	}
	if f, ok = w.DType.Format(); !ok {
		return nil, f, fmt.Errorf("the reference's weight %q is of type %s", q.Name, w.DType)
	}
	return w, f, nil
}

// referenceSNR adds the differences between the reference's values and the values of result and source.
func referenceSNR(ctx context.Context, m *Codes, result, source *difference) error {
	want, got := make([]float32, m.Result.K), make([]float32, m.Result.K)
	for n := range m.Result.N {
		if err := ctx.Err(); err != nil {
			return err
		}
		m.Near(want, n)
		m.Result.Row(got, n)
		result.row(want, got)
		m.Source.Row(got, n)
		source.row(want, got)
	}
	return nil
}
