package predict

import (
	"fmt"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/gemm"
)

// worker is a [Predictor] that derives time, power and clock from a product's own shape. A [cost.Calibration] is one.
type worker interface {
	Work(p cost.Product, r cost.Prediction, stack int) (cost.Work, error)
	Reach() (lowest, highest cost.Setting)
	Tokens(arith.Type) (measured, most int)
}

// Work returns the work of one pass, layer by layer, for [cost.Calibration.AtSetting]. The error names the first layer for which
// the calibration lacks time, power or clock.
func (p Prediction) Work() ([]cost.Work, error) { return p.work, p.workError }

// work derives every layer's work from its prediction. The layer gets the work's time, power and clock instead of those of the
// nearest measured shape. Energy stays. Layers without a figure of these stay as they are.
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

// weightBytes returns the size of all weights.
func weightBytes(layers []Layer) (bytes int) {
	for _, l := range layers {
		bytes += l.Problem.N * l.Problem.K * l.Problem.Type.Operand().Bits() / 8
	}
	return bytes
}

// otherBatch returns a warning if decode was measured with fewer than half or more than twice as many tokens as a product has,
// or if the product has too many tokens for decode.
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
		return fmt.Sprintf("%d tokens are too many for decode: with more than %d, reading the weights no longer bounds the time, and the figures are those of prefill%s", p.M, most, see)
	case p.M >= 2*measured || 2*p.M <= measured:
		tokens := "tokens"
		if p.M == 1 {
			tokens = "token"
		}
		return fmt.Sprintf("decode was measured with %d tokens: the figures for %d %s are those of %d, and the interval does not cover the difference; a conversion saves less with more tokens%s",
			measured, p.M, tokens, measured, see)
	}
	return ""
}
