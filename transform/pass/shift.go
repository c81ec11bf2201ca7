package pass

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/lowtoggle/lowtoggle/internal/elementary"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// Shifted is the data of a step of [Shift]. A step either adds a constant, or folds a norm's scale or bias into a
// following layer, or fills a folded norm with a constant.
type Shifted struct {
	// Add is added to every weight.
	Add float64 `json:"add,omitempty"`
	// Scale names the norm's weight γ that multiplies the columns: w ← w·diag(γ).
	Scale string `json:"scale,omitempty"`
	// Bias names the norm's bias β, and Weight the layer's weight: b ← b + w·β.
	Bias   string `json:"bias,omitempty"`
	Weight string `json:"weight,omitempty"`
	// Fill sets every value: 1 for a folded γ, 0 for a folded β.
	Fill *float64 `json:"fill,omitempty"`
	// Epilogue is true if a runtime must subtract Add·Σx from every output, so the result is not drop-in. An extra
	// tensor stores the constant of each output.
	Epilogue bool `json:"epilogue,omitempty"`
}

// shiftName avoids an initialisation cycle of Shift.
const shiftName = "shift"

// Shift adds one constant to all weights of a layer.
var Shift = &Pass{
	Name: shiftName, Class: Compensated, NeedsFamily: true,
	Usage: "shift[=S[/epilogue]]",
	Doc: "Adds one constant to all weights of a layer, so that almost all weights become positive and have similar " +
		"exponents. The constant is the power of two nearest to S·σ; σ is the root mean square of the layer's weights. " +
		"The default of S is 8. With a budget of output SNR, the default is the largest of 8, 4, 2 and 1 that keeps " +
		"the budget. A larger S rounds the weights more coarsely. At S = 8, layers in BF16 keep an output SNR of about " +
		"35 dB. The function stays the same if the inputs of the layer sum to zero. The outputs of a LayerNorm sum to " +
		"zero once the norm's scale and bias are folded into the next layer. The function also stays the same in an " +
		"untied lm_head, because all logits change by the same amount. In all other layers, a runtime must subtract " +
		"the constant times the sum of the inputs. With /epilogue, shift changes these layers too, and stores the " +
		"constants as extra tensors. Unchanged runtimes cannot use this result.",
	Args: func(args []string) error {
		if s, err := strconv.ParseFloat(args[0], 64); err != nil || !(s >= 0.5 && s <= 64) {
			return fmt.Errorf("%q is not a number from 0.5 to 64", args[0])
		}
		if len(args) > 2 || len(args) == 2 && args[1] != "epilogue" {
			return errors.New(`only "epilogue" may follow S`)
		}
		return nil
	},
	Plan:    planShift,
	Compile: compileShift,
	Check:   checkFolds,
	NeedsRuntime: func(s *plan.Step) bool {
		sh, _ := plan.Data[Shifted](s)
		return sh.Epilogue
	},
	Describe: func(s *plan.Step) string {
		if sh, _ := plan.Data[Shifted](s); sh.Epilogue {
			return "shift (not drop-in)"
		}
		return "shift"
	},
}

// planShift folds and shifts layer by layer. A layer whose output SNR would be below the budget keeps its weights.
func planShift(ctx context.Context, m *Model, args []string) (steps []*plan.Step, err error) {
	strengths := []float64{8}
	if len(args) > 0 {
		s, _ := strconv.ParseFloat(args[0], 64)
		strengths[0] = s
	} else if m.Budget.MinSNR != nil {
		strengths = []float64{8, 4, 2, 1}
	}
	epilogue := len(args) > 1
	norms := map[string][]*arch.Claim{}
	var order []string
	for _, claim := range m.Linears() {
		if n := claim.Norm; n != nil && n.Kind == arch.LayerNorm {
			if norms[n.Weight] == nil {
				order = append(order, n.Weight)
			}
			norms[n.Weight] = append(norms[n.Weight], claim)
		}
	}
	for _, norm := range order {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		more, err := m.shiftBehindNorm(ctx, norms[norm], strengths)
		if err != nil {
			return nil, err
		}
		steps = append(steps, more...)
	}
	for _, claim := range m.Linears() {
		behindNorm := claim.Norm != nil && claim.Norm.Kind == arch.LayerNorm
		if behindNorm || !claim.Softmax && !epilogue {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		more, err := m.shiftAlone(ctx, claim, strengths, !claim.Softmax)
		if err != nil {
			return nil, err
		}
		steps = append(steps, more...)
	}
	return steps, nil
}

// shiftBehindNorm folds one norm into all layers that read its output, and shifts these layers.
func (m *Model) shiftBehindNorm(ctx context.Context, layers []*arch.Claim, strengths []float64) ([]*plan.Step, error) {
	norm := layers[0].Norm
	for _, s := range strengths {
		var steps []*plan.Step
		fits := true
		for _, l := range layers {
			fold, err := m.fold(ctx, l, s)
			if errors.Is(err, plan.ErrInvalid) {
				m.Note("shift: the layers behind %s are not shifted: %s", norm.Weight, why(err))
				return nil, nil
			}
			if err != nil {
				return nil, err
			}
			fits = fits && fold != nil
			steps = append(steps, fold...)
		}
		if fits {
			one, zero := 1.0, 0.0
			steps = append(steps, &plan.Step{Tensor: norm.Weight, Data: Shifted{Fill: &one}})
			if norm.Bias != "" {
				steps = append(steps, &plan.Step{Tensor: norm.Bias, Data: Shifted{Fill: &zero}})
			}
			return steps, nil
		}
	}
	m.Note("shift: the layers behind %s are not shifted: their output SNR would be below the budget, or a value would leave the range of its type", norm.Weight)
	return nil, nil
}

// why returns the text of a plan.ErrInvalid without the class.
func why(err error) string { return strings.TrimPrefix(err.Error(), plan.ErrInvalid.Error()+": ") }

// fold returns the steps for one layer behind a norm: the step of the weight first, then the step of the bias. It
// returns nil if the layer's output SNR would be below the budget. If the layer cannot be folded, the error is a
// plan.ErrInvalid.
func (m *Model) fold(ctx context.Context, l *arch.Claim, strength float64) ([]*plan.Step, error) {
	weight, err := m.shiftOf(ctx, l, Shifted{Scale: l.Norm.Weight}, strength)
	if err != nil || weight == nil || l.Norm.Bias == "" {
		return weight, err
	}
	if l.Bias == "" {
		return nil, fmt.Errorf("%w: %s has no bias that could absorb the norm's bias", plan.ErrInvalid, l.Name)
	}
	bias := &plan.Step{Pass: shiftName, Tensor: l.Bias, Data: Shifted{Bias: l.Norm.Bias, Weight: l.Name}}
	w, _ := m.Weights.Weight(l.Bias)
	if _, err := m.Compiler.Program(ctx, w, []*plan.Step{bias}); err != nil {
		return nil, err
	}
	return append(weight, bias), nil
}

// shiftAlone shifts a layer whose inputs may have any sum.
func (m *Model) shiftAlone(ctx context.Context, l *arch.Claim, strengths []float64, epilogue bool) ([]*plan.Step, error) {
	for _, s := range strengths {
		steps, err := m.shiftOf(ctx, l, Shifted{Epilogue: epilogue}, s)
		if errors.Is(err, plan.ErrInvalid) {
			m.Note("shift: %s is not shifted: %s", l.Name, why(err))
			return nil, nil
		}
		if err != nil || steps != nil {
			return steps, err
		}
	}
	m.Note("shift: %s is not shifted: its output SNR would be below the budget, or a value would leave the range of its type", l.Name)
	return nil, nil
}

// shiftOf completes a layer's shift with the constant for a strength. It returns nil if the layer's output SNR would be
// below the budget, or if a value would leave the range of its type. If the layer holds NaN or infinity, the error is
// a plan.ErrInvalid.
func (m *Model) shiftOf(ctx context.Context, l *arch.Claim, sh Shifted, strength float64) (steps []*plan.Step, err error) {
	w, _ := m.Weights.Weight(l.Name)
	err = guard(w, func() (err error) {
		steps, err = m.shiftOfWeight(ctx, w, sh, strength)
		return err
	})
	return steps, err
}

func (m *Model) shiftOfWeight(ctx context.Context, w *quant.Weight, sh Shifted, strength float64) ([]*plan.Step, error) {
	step := &plan.Step{Pass: shiftName, Tensor: w.Name, Data: sh}
	p, err := m.Compiler.Program(ctx, w, []*plan.Step{step})
	if err != nil {
		return nil, err
	}
	var sum, peak float64
	err = p.EachValues(ctx, 0, p.Rows, func(_ program.Block, values []float32) {
		for _, v := range values {
			sum += float64(float64(v) * float64(v)) // the conversion prevents fusing, for equal results on all machines
			peak = max(peak, math.Abs(float64(v)))  // max keeps NaN
		}
	})
	if err != nil {
		return nil, err
	}
	if sum-sum != 0 {
		return nil, fmt.Errorf("%w: %s holds NaN or infinity", plan.ErrInvalid, w.Name)
	}
	sh.Add = powerNear(strength * math.Sqrt(sum/float64(max(1, w.Rows*w.Cols))))
	if peak+sh.Add > float64(p.Format.Value(p.Format.MaxFinite)) {
		return nil, nil
	}
	step.Data = sh
	if ok, err := m.Fits(ctx, step); err != nil || !ok {
		return nil, err
	}
	return []*plan.Step{step}, nil
}

func powerNear(v float64) float64 {
	if v == 0 {
		return 0
	}
	return math.Ldexp(1, int(math.Round(elementary.Log2(v))))
}
