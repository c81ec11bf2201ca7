package predict

import (
	"strings"

	"github.com/lowtoggle/lowtoggle/cost"
)

// Ratio is the predicted energy of many layers together, after a conversion relative to before. Each layer is weighted
// by its number of weights, which is proportional to its multiplications. The zero value has no layers.
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
	r.before += float64(w * before.Relative)
	r.after += float64(w * after.Relative)
	// The predictions before and after share most of their error. The ratio's error is therefore the size of the
	// change, and at most the error of the prediction.
	change := after.Relative/before.Relative - 1
	full := (after.Interval[1] - after.Interval[0]) / 2
	r.half += float64(w * min(full, max(change, -change)))
	r.Calibration = fuller(r.Calibration, after.Calibration)
	if r.weights > 0 {
		r.Relative = r.after / r.before
		h := r.half / r.weights
		r.Interval = [2]float64{r.Relative - h, r.Relative + h}
	}
}

// over returns the energy of a source relative to the first source, with the same products. As in [Conversion], each
// layer contributes to the interval by its number of weights.
func over(first, p Prediction) *Ratio {
	var r Ratio
	for i, l := range p.Layers {
		r.Add(l.Problem.N*l.Problem.K, estimateOf(first.Layers[i].Prediction), estimateOf(l.Prediction))
	}
	half := float64((r.Interval[1] - r.Interval[0]) / 2)
	r.Relative = p.Relative / first.Relative // layers are weighted by energy
	r.Interval = [2]float64{r.Relative - half, r.Relative + half}
	return &r
}

// fuller returns the longer of two calibration labels. The longer one also says which type's model was applied to
// another type.
func fuller(a, b string) string {
	if strings.HasPrefix(b, a) {
		return b
	}
	return a
}

// Known returns r, or nil if no layer was added.
func (r *Ratio) Known() *Ratio {
	if r.weights == 0 {
		return nil
	}
	return r
}

func estimateOf(p cost.Prediction) cost.Estimate {
	return cost.Estimate{Relative: p.Relative, Interval: p.Interval, Calibration: p.Calibration}
}
