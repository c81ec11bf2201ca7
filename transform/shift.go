package transform

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// Shift is what shift does to a tensor: one of adding a constant, folding a norm's scale or bias
// into what follows, or filling what was folded away.
type Shift struct {
	// Add is added to every weight.
	Add float64 `json:"add,omitempty"`
	// Scale names the norm's weight γ that multiplies the columns: w ← w·diag(γ).
	Scale string `json:"scale,omitempty"`
	// Bias names the norm's bias β, and Weight the layer's weight: b ← b + w·β.
	Bias   string `json:"bias,omitempty"`
	Weight string `json:"weight,omitempty"`
	// Fill sets every value: 1 for a folded γ, 0 for a folded β.
	Fill *float64 `json:"fill,omitempty"`
	// Epilogue is set where a runtime must subtract Add·Σx from every output: not drop-in. The
	// constant is stored per output in an extra tensor.
	Epilogue bool `json:"epilogue,omitempty"`
}

// ShiftSuffix follows a weight's name in the name of the extra F32 tensor [N] that an epilogue
// shift writes: y[m,n] − suffix[n]·Σ_k x[m,k] is the original output.
const ShiftSuffix = weights.ShiftSuffix

var shiftPass = &Pass{
	Name: "shift", Class: Compensated, NeedsFamily: true,
	Usage: "shift[=S[/epilogue]]",
	Doc: "Adds one constant near S·σ (a power of two; S is 8 unless given) to all weights of a layer, so " +
		"that sign and exponent stand still. Free where the layer's input sums to zero, which a LayerNorm " +
		"makes it do once its scale is folded into the weights, and on an untied lm_head, whose logits all " +
		"move alike. Stored values round more coarsely the larger S is: at S = 8 a BF16 weight keeps about " +
		"35 dB. Everywhere else the result is not drop-in: a runtime must subtract the shift times the sum " +
		"of the inputs; /epilogue asks for that and stores the shifts as extra tensors.",
	check: func(args []string) error {
		if s, err := strconv.ParseFloat(args[0], 64); err != nil || !(s >= 0.5 && s <= 64) {
			return fmt.Errorf("%q is no number from 0.5 to 64", args[0])
		}
		if len(args) > 2 || len(args) == 2 && args[1] != "epilogue" {
			return errors.New(`only "epilogue" may follow`)
		}
		return nil
	},
	plan:    planShift,
	compile: compileShift,
}

// planShift folds and shifts layer by layer; a layer that would fall below the budget keeps its
// weights.
func planShift(ctx context.Context, p *planner, args []string) error {
	strengths := []float64{8}
	if len(args) > 0 {
		s, _ := strconv.ParseFloat(args[0], 64)
		strengths[0] = s
	} else if p.opt.MinSNR != nil {
		strengths = []float64{8, 4, 2, 1}
	}
	epilogue := len(args) > 1
	norms := map[string][]*arch.Claim{}
	var order []string
	for _, claim := range p.linears() {
		if n := claim.Norm; n != nil && n.Kind == arch.LayerNorm {
			if norms[n.Weight] == nil {
				order = append(order, n.Weight)
			}
			norms[n.Weight] = append(norms[n.Weight], claim)
		}
	}
	for _, norm := range order {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := p.shiftBehindNorm(norms[norm], strengths); err != nil {
			return err
		}
	}
	for _, claim := range p.linears() {
		behindNorm := claim.Norm != nil && claim.Norm.Kind == arch.LayerNorm
		if behindNorm || !claim.Softmax && !epilogue {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := p.shiftAlone(claim, strengths, !claim.Softmax); err != nil {
			return err
		}
	}
	return nil
}

// shiftBehindNorm folds one norm into all layers that read it and shifts those.
func (p *planner) shiftBehindNorm(layers []*arch.Claim, strengths []float64) error {
	norm := layers[0].Norm
	for _, s := range strengths {
		var steps []*Step
		fits := true
		for _, l := range layers {
			fold, err := p.fold(l, s)
			if errors.Is(err, ErrPlan) {
				p.note("shift: the layers behind %s stay as they are: %s", norm.Weight, why(err))
				return nil
			}
			if err != nil {
				return err
			}
			fits = fits && fold != nil
			steps = append(steps, fold...)
		}
		if fits {
			one, zero := 1.0, 0.0
			steps = append(steps, &Step{Tensor: norm.Weight, Shift: &Shift{Fill: &one}})
			if norm.Bias != "" {
				steps = append(steps, &Step{Tensor: norm.Bias, Shift: &Shift{Fill: &zero}})
			}
			p.add(steps...)
			return nil
		}
	}
	p.note("shift: the layers behind %s would fall below the budget or leave their range: they stay as they are", norm.Weight)
	return nil
}

// why is what an error of class ErrPlan says besides.
func why(err error) string { return strings.TrimPrefix(err.Error(), ErrPlan.Error()+": ") }

// fold is the steps for one layer behind a norm: its weight first, then its bias. It is nil where
// the layer would fall below the budget, and of class ErrPlan where it cannot be folded at all.
func (p *planner) fold(l *arch.Claim, strength float64) ([]*Step, error) {
	weight, err := p.shiftOf(l, Shift{Scale: l.Norm.Weight}, strength)
	if err != nil || weight == nil || l.Norm.Bias == "" {
		return weight, err
	}
	if l.Bias == "" {
		return nil, fmt.Errorf("%w: %s has no bias that could take the norm's", ErrPlan, l.Name)
	}
	bias := &Step{Pass: p.pass.Name, Tensor: l.Bias, Shift: &Shift{Bias: l.Norm.Bias, Weight: l.Name}}
	t, _ := p.model.Tensor(l.Bias)
	if _, err := p.compiler.program(t, []*Step{bias}); err != nil {
		return nil, err
	}
	return append(weight, bias), nil
}

// shiftAlone shifts a layer whose inputs may have any sum.
func (p *planner) shiftAlone(l *arch.Claim, strengths []float64, epilogue bool) error {
	for _, s := range strengths {
		steps, err := p.shiftOf(l, Shift{Epilogue: epilogue}, s)
		if errors.Is(err, ErrPlan) {
			p.note("shift: %s stays as it is: %s", l.Name, why(err))
			return nil
		}
		if err != nil || steps != nil {
			p.add(steps...)
			return err
		}
	}
	p.note("shift: %s would fall below the budget or leave its range: it stays as it is", l.Name)
	return nil
}

// shiftOf completes a layer's shift by the constant that strength asks for. It is nil where the
// layer would fall below the budget or leave its type's range, and of class ErrPlan where it holds
// NaN or infinity.
func (p *planner) shiftOf(l *arch.Claim, sh Shift, strength float64) ([]*Step, error) {
	step := &Step{Pass: p.pass.Name, Tensor: l.Name, Shift: &sh}
	t, _ := p.model.Tensor(l.Name)
	prog, err := p.compiler.program(t, []*Step{step})
	if err != nil {
		return nil, err
	}
	var sum, peak float64
	err = prog.eachValues(p.ctx, 0, prog.rows, func(_ block, values []float32) {
		for _, v := range values {
			sum += float64(float64(v) * float64(v)) // explicit, so that no machine fuses it
			peak = max(peak, math.Abs(float64(v)))  // NaN stays
		}
	})
	if err != nil {
		return nil, err
	}
	if sum-sum != 0 {
		return nil, fmt.Errorf("%w: %s holds NaN or infinity", ErrPlan, l.Name)
	}
	sh.Add = powerNear(strength * math.Sqrt(sum/float64(max(1, t.Len()))))
	if peak+sh.Add > float64(prog.format.Value(prog.format.MaxFinite)) {
		return nil, nil
	}
	if ok, err := p.fits(l.Name, step); err != nil || !ok {
		return nil, err
	}
	return []*Step{step}, nil
}

func powerNear(v float64) float64 {
	if v == 0 {
		return 0
	}
	return math.Ldexp(1, int(math.Round(math.Log2(v))))
}
