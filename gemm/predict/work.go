package predict

import (
	"fmt"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/gemm"
)

// worker is a [Predictor] that derives time, power and clock from a product's own shape. [cost.Calibration] implements
// it.
type worker interface {
	Work(p cost.Product, r cost.Prediction, stack int) (cost.Work, error)
	Reach() (lowest, highest cost.Setting)
	Tokens(arith.Type) (measured, most int)
}

// Work returns the work of one pass, layer by layer, for [cost.Calibration.AtSetting]. The error names the first layer
// for which the calibration has no time, power or clock.
func (p Prediction) Work() ([]cost.Work, error) { return p.work, p.workError }

// work derives every layer's work from its prediction. It replaces the layer's time, power and clock, which are those
// of the nearest measured shape, by the work's. The layer's energy is kept. Layers whose work is unknown are not
// changed.
func work(by Predictor, layers []Layer, cold bool) (all []cost.Work, err error) {
	c, ok := by.(worker)
	if !ok {
		return nil, nil
	}
	stack := 1
	if cold {
		stack = gemm.Stack(len(layers), weightBytes(layers))
	}
	_, highest := c.Reach()
	for i := range layers {
		l := &layers[i]
		w, wrong := c.Work(costProduct(l.Problem, cold), l.Prediction, stack)
		if wrong != nil {
			if err == nil {
				err = fmt.Errorf("%s: %w", l.Layer, wrong)
			}
			continue
		}
		if l.BelowCap != nil {
			below := *l.BelowCap
			below.Clock = max(w.Clock, min(below.Clock, highest.Clock))
			l.BelowCap = &below
		}
		l.Seconds, l.Watts, l.Clock = &w.Seconds, &w.Watts, &w.Clock
		all = append(all, w)
	}
	return all, err
}

// weightBytes returns the size of all layers' weights.
func weightBytes(layers []Layer) (bytes int) {
	for _, l := range layers {
		bytes += l.Problem.N * l.Problem.K * l.Problem.Type.Operand().Bits() / 8
	}
	return bytes
}

// otherBatch returns a warning if a product's number of tokens is far from the number for which decode was measured
// (less than half or more than twice), or too large for decode.
func otherBatch(by Predictor, p gemm.Problem) string {
	c, ok := by.(worker)
	if !ok {
		return ""
	}
	const see = " (docs/whole-model.md#other-batch-sizes)"
	switch measured, most := c.Tokens(p.Type); {
	case measured == 0:
		return ""
	case p.M > most:
		return fmt.Sprintf("%d tokens are too many for decode: above %d tokens, the figures of prefill apply%s", p.M, most, see)
	case p.M >= 2*measured || 2*p.M <= measured:
		return fmt.Sprintf("these figures are for decode with %d tokens, as measured, not with %d: the interval does not cover the difference; a conversion saves less with more tokens%s",
			measured, p.M, see)
	}
	return ""
}
