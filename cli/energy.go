package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/weights"
)

// activity counts a tensor's toggles.
func (o readings) activity(ctx context.Context, t weights.Tensor) (a cost.Activity, err error) {
	err = weights.Guard(t.File, func() error {
		a, err = cost.Measure(ctx, t, o.workers)
		return err
	})
	return a, err
}

// energy predicts a product by a tensor that is not empty, from a sample of its rows, relative to random
// weights of the scale of like, which is t itself or what t was converted from.
func (o readings) energy(ctx context.Context, t, like weights.Tensor, outAxis int) (e cost.Estimate, err error) {
	files := t.File
	if like.File != t.File {
		files += " or " + like.File
	}
	err = weights.Guard(files, func() error {
		w := cost.SampleOf(t, outAxis)
		if w.Scale, err = cost.SampleOf(like, outAxis).RMS(ctx); err == nil {
			e, err = o.calibration.Energy(ctx, w, o.role, o.workload)
		}
		if err != nil {
			err = fmt.Errorf("%s: tensor %q: predicting energy: %w", t.File, t.Name, err)
		}
		return err
	})
	return e, err
}

// ratio is a predicted energy after over before, of many layers together: each counts by its
// number of weights, which is its share of the multiplications.
type ratio struct {
	Relative    float64    `json:"relative_energy"`
	Interval    [2]float64 `json:"interval"`
	Calibration string     `json:"calibration"`
	weight      float64
	before      float64
	after       float64
	half        float64
}

// add takes in a layer with the given number of weights.
func (r *ratio) add(n int, before, after cost.Estimate) {
	w := float64(n)
	r.weight += w
	r.before += w * before.Relative
	r.after += w * after.Relative
	// The error of a prediction is common to before and after: what the ratio can be wrong by
	// grows with the change, up to the prediction's own error.
	change := after.Relative/before.Relative - 1
	full := (after.Interval[1] - after.Interval[0]) / 2
	r.half += w * min(full, max(change, -change))
	r.Calibration = after.Calibration
	if r.weight > 0 {
		r.Relative = r.after / r.before
		h := r.half / r.weight
		r.Interval = [2]float64{r.Relative - h, r.Relative + h}
	}
}

// known is r, or nil where no layer was taken in: absent means not known.
func (r *ratio) known() *ratio {
	if r.weight == 0 {
		return nil
	}
	return r
}

// change is the ratio for a table, "–" where it is not known.
func (r *ratio) change() string {
	if r.known() == nil {
		return "–"
	}
	return term.Change(r.Relative)
}

// print writes the prediction as a sentence.
func (r *ratio) print(w io.Writer, load cost.Workload, role cost.Role) {
	fmt.Fprint(w, term.Wrap(fmt.Sprintf("energy for %s, weights %s: %s predicted, between %s and %s (%s)", load, role,
		term.Change(r.Relative), term.Change(r.Interval[0]), term.Change(r.Interval[1]), r.Calibration), "", "  ", term.Width))
}

// outlookRatio is the whole plan's prediction.
func outlookRatio(plan *transform.Plan, elements map[string]int) *ratio {
	var r ratio
	for _, o := range plan.Outlook {
		if o.Before != nil && o.After != nil {
			r.add(elements[o.Tensor], *o.Before, *o.After)
		}
	}
	return r.known()
}
