package predict

import "github.com/lowtoggle/lowtoggle/cost"

// Ratio is a predicted energy, after over before, of many layers together. Each layer counts by its number
// of weights, which is its share of the multiplications. The zero value has no layers.
type Ratio struct {
	Relative    float64    `json:"relative_energy"`
	Interval    [2]float64 `json:"interval"` // 95 %
	Calibration string     `json:"calibration"`

	weights, before, after, half float64
}

// Add adds a layer with n weights.
func (r *Ratio) Add(n int, before, after cost.Estimate) {
	w := float64(n)
	r.weights += w
	r.before += w * before.Relative
	r.after += w * after.Relative
	// The error of a prediction is common to before and after: the ratio's error grows with the
	// change, up to the prediction's own.
	change := after.Relative/before.Relative - 1
	full := (after.Interval[1] - after.Interval[0]) / 2
	r.half += w * min(full, max(change, -change))
	r.Calibration = after.Calibration
	if r.weights > 0 {
		r.Relative = r.after / r.before
		h := r.half / r.weights
		r.Interval = [2]float64{r.Relative - h, r.Relative + h}
	}
}

// Known is r, or nil if nothing was added.
func (r *Ratio) Known() *Ratio {
	if r.weights == 0 {
		return nil
	}
	return r
}

func estimateOf(p cost.Prediction) cost.Estimate {
	return cost.Estimate{Relative: p.Relative, Interval: p.Interval, Calibration: p.Calibration}
}
