package transform

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"

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
const ShiftSuffix = ".lowtoggle_shift"

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
	gamma, err := p.finite(norm.Weight)
	if err != nil {
		p.note("shift: %v: its layers stay as they are", err)
		return nil
	}
	for _, s := range strengths {
		var steps []*Step
		fits := true
		for _, l := range layers {
			fold, err := p.fold(l, gamma, s)
			if err != nil {
				p.note("shift: %v: the layers behind %s stay as they are", err, norm.Weight)
				return nil
			}
			ok, err := p.fits(l.Name, fold[0])
			if err != nil {
				return err
			}
			fits = fits && ok
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
	p.note("shift: the layers behind %s would fall below the budget: they stay as they are", norm.Weight)
	return nil
}

// fold is the steps for one layer behind a norm: its weight first, then its bias.
func (p *planner) fold(l *arch.Claim, gamma []float32, strength float64) ([]*Step, error) {
	w, err := p.finite(l.Name)
	if err != nil {
		return nil, err
	}
	if l.Norm.Bias != "" && l.Bias == "" {
		return nil, fmt.Errorf("%s has no bias that could take the norm's", l.Name)
	}
	t, _ := p.model.Tensor(l.Name)
	rows, cols := t.Matrix()
	var sum float64
	for n := range rows {
		for k := range cols {
			in := k
			if l.OutAxis == 1 {
				in = n
			}
			v := float64(w[n*cols+k]) * float64(gamma[in])
			sum += v * v
		}
	}
	steps := []*Step{{Tensor: l.Name, Shift: &Shift{
		Add: powerNear(strength * math.Sqrt(sum/float64(len(w)))), Scale: l.Norm.Weight}}}
	if l.Norm.Bias != "" {
		if _, err := p.finite(l.Norm.Bias); err != nil {
			return nil, err
		}
		if _, err := p.finite(l.Bias); err != nil {
			return nil, err
		}
		steps = append(steps, &Step{Tensor: l.Bias, Shift: &Shift{Bias: l.Norm.Bias, Weight: l.Name}})
	}
	return steps, nil
}

// shiftAlone shifts a layer whose inputs may have any sum.
func (p *planner) shiftAlone(l *arch.Claim, strengths []float64, epilogue bool) error {
	w, err := p.finite(l.Name)
	if err != nil {
		p.note("shift: %v: it stays as it is", err)
		return nil
	}
	var sum float64
	for _, v := range w {
		sum += float64(v) * float64(v)
	}
	for _, s := range strengths {
		step := &Step{Tensor: l.Name, Shift: &Shift{Add: powerNear(s * math.Sqrt(sum/float64(len(w)))), Epilogue: epilogue}}
		ok, err := p.fits(l.Name, step)
		if err != nil {
			return err
		}
		if ok {
			p.add(step)
			return nil
		}
	}
	p.note("shift: %s would fall below the budget: it stays as it is", l.Name)
	return nil
}

func powerNear(v float64) float64 {
	if v == 0 {
		return 0
	}
	return math.Ldexp(1, int(math.Round(math.Log2(v))))
}

// finite decodes a whole tensor, and is an error where it holds NaN or infinity or integers.
func (p *planner) finite(name string) ([]float32, error) {
	t, ok := p.model.Tensor(name)
	f, known := t.DType.Format()
	if !ok || !known || !f.IsFloat() {
		return nil, fmt.Errorf("%s is of a type that cannot be shifted", name)
	}
	return finite(t, f)
}

func finite(t weights.Tensor, f weights.Format) ([]float32, error) {
	v := make([]float32, t.Len())
	f.Decode(v, t.Data)
	for _, x := range v {
		if x-x != 0 {
			return nil, fmt.Errorf("%s holds NaN or infinity", t.Name)
		}
	}
	return v, nil
}

// affine is w·diag(γ) + c on rows that are already gathered.
type affine struct {
	gamma   []float32 // by place on the input axis; nil for ones
	add     float32
	inputs0 bool // inputs are rows (storage [in, out])
}

// at is the factor of element [n, k] of the result.
func (a *affine) factor(n, k int) float32 {
	switch {
	case a.gamma == nil:
		return 1
	case a.inputs0:
		return a.gamma[n]
	}
	return a.gamma[k]
}

// apply computes in float32 and rounds once to the stored type.
func (a *affine) apply(b block) {
	for i := range b.rows {
		for k := range b.cols {
			at := i*b.cols + k
			v := float64(b.format.Value(b.format.Elem(b.data, at)))
			v = float64(v*float64(a.factor(b.first+i, k))) + float64(a.add)
			b.format.SetElem(b.data, at, b.format.FromValue(float32(v)))
		}
	}
}

func compileShift(s *Step, c *compiler) error {
	p, sh := c.prog, s.Shift
	switch {
	case sh == nil:
		return errors.New("says nothing to do")
	case !p.format.IsFloat():
		return errors.New("integers cannot be shifted")
	case sh.Fill != nil:
		p.values = make([]float32, p.rows*p.cols)
		for i := range p.values {
			p.values[i] = float32(*sh.Fill)
		}
		return nil
	case sh.Bias != "":
		return c.foldBias(sh)
	}
	if _, err := finite(p.src, p.format); err != nil {
		return err
	}
	p.affine = &affine{add: float32(sh.Add), inputs0: p.outAxis == 1}
	if sh.Scale == "" {
		return nil
	}
	gamma, err := c.vector(sh.Scale)
	if err != nil {
		return err
	}
	inputs, gather := p.cols, p.col.gather
	if p.outAxis == 1 {
		inputs, gather = p.rows, p.row.gather
	}
	if len(gamma) != inputs {
		return fmt.Errorf("%s has %d values for %d inputs", sh.Scale, len(gamma), inputs)
	}
	p.affine.gamma = make([]float32, inputs)
	for i := range gamma {
		p.affine.gamma[i] = gamma[at(gather, i, i)]
	}
	return nil
}

// foldBias computes b + w·β in the source's labels.
func (c *compiler) foldBias(sh *Shift) error {
	b, err := c.vector(c.prog.src.Name)
	if err != nil {
		return err
	}
	beta, err := c.vector(sh.Bias)
	if err != nil {
		return err
	}
	claim := c.layout.Claims[sh.Weight]
	w, err := c.vector(sh.Weight)
	if err != nil || claim == nil {
		return errors.Join(err, fmt.Errorf("%s is no layer", sh.Weight))
	}
	if len(b)*len(beta) != len(w) {
		return fmt.Errorf("%d outputs and %d inputs do not make %s", len(b), len(beta), sh.Weight)
	}
	for n := range b {
		sum := float64(b[n])
		for k := range beta {
			at := n*len(beta) + k
			if claim.OutAxis == 1 {
				at = k*len(b) + n
			}
			sum += float64(float64(w[at]) * float64(beta[k])) // explicit, so that no machine fuses it
		}
		b[n] = float32(sum)
	}
	c.prog.values = b
	return nil
}

// vector decodes a tensor that must be finite.
func (c *compiler) vector(name string) ([]float32, error) {
	t, ok := c.model.Tensor(name)
	f, known := t.DType.Format()
	if !ok || !known || !f.IsFloat() {
		return nil, fmt.Errorf("the model has no tensor %q that can be folded", name)
	}
	return finite(t, f)
}
