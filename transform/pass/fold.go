package pass

import (
	"errors"
	"fmt"
	"math"

	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// compileShift compiles a step of Shift. It returns an error for a shift that would change the model's function
// according to the family.
func compileShift(s *plan.Step, c *program.Context) (o program.Operation, err error) {
	p := c.Program
	sh, err := plan.Data[Shifted](s)
	if err != nil {
		return o, err
	}
	if c.Layout == nil || c.Layout.Claims[p.Source.Name] == nil {
		return o, errors.New("the tensor is not part of a known family")
	}
	if !p.Format.IsFloat() {
		return o, errors.New("integers cannot be shifted")
	}
	claim := c.Layout.Claims[p.Source.Name]
	if err := checkOwn(c.Layout, p.Source.Name, sh.Scale, sh.Bias, sh.Weight); err != nil {
		return o, err
	}
	switch {
	case sh.Fill != nil:
		return fill(c, claim, *sh.Fill)
	case sh.Bias != "":
		return foldBias(c, claim, sh)
	}
	return foldScale(c, claim, sh)
}

// fill replaces a norm's weight or bias that was folded into other layers. The constant is the same in every order.
// Folding has already moved the norm's powers of two.
func fill(c *program.Context, claim *arch.Claim, v float64) (o program.Operation, err error) {
	if claim.Role != arch.Norm || v != 0 && v != 1 {
		return o, errors.New("only a norm's weight or bias can be filled, with 0 or 1")
	}
	o.Values = make([]float32, c.Program.Rows*c.Program.Cols)
	for i := range o.Values {
		o.Values[i] = float32(v)
	}
	return o, nil
}

// checkOwn returns an error if an adapter changes one of the tensors. A fold or a constant would also have to change
// the adapter.
func checkOwn(layout *arch.Layout, tensors ...string) error {
	for _, name := range tensors {
		if name == "" {
			continue
		}
		if doubt := layout.Doubt(name); doubt != "" {
			return errors.New(doubt)
		}
		if a := layout.Adapter; a != nil && a.Changes[name] != "" {
			return fmt.Errorf("the adapter's %s changes %s", a.Changes[name], name)
		}
	}
	return nil
}

// foldScale multiplies a layer's inputs by the weight of the preceding norm, and adds the constant.
func foldScale(c *program.Context, claim *arch.Claim, sh Shifted) (o program.Operation, err error) {
	p := c.Program
	layerNorm := sh.Scale != "" && claim.Norm != nil && claim.Norm.Weight == sh.Scale && claim.Norm.Kind == arch.LayerNorm
	switch {
	case claim.Role != arch.Linear:
		return o, errors.New("is not a linear layer")
	case len(claim.Axes) != 2:
		return o, errors.New("is not a matrix")
	case sh.Scale != "" && !layerNorm:
		return o, fmt.Errorf("no LayerNorm with the weight %q comes before this layer", sh.Scale)
	case !layerNorm && !claim.Softmax && !sh.Epilogue:
		return o, errors.New("its inputs need not sum to 0, so a constant would change the outputs")
	case math.Abs(sh.Add) > math.MaxFloat32:
		return o, errors.New("the constant is too large")
	}
	o.Affine = &program.Affine{Add: float32(sh.Add), InputRows: p.OutAxis == 1}
	if sh.Epilogue {
		o.Extra = &program.Extra{Suffix: weights.ShiftSuffix, Value: float32(sh.Add)}
	}
	if !layerNorm {
		return o, nil
	}
	gamma, err := vector(c, sh.Scale)
	if err != nil {
		return o, err
	}
	axis, inputs := p.InputAxis()
	if len(gamma) != inputs {
		return o, fmt.Errorf("%s has %d values for %d inputs", sh.Scale, len(gamma), inputs)
	}
	marks, _ := c.Symmetries.Matrix(c.Layout.Claims[sh.Scale])
	o.Affine.Gamma = make([]float32, inputs)
	for i := range gamma {
		from := axis.From(i)
		o.Affine.Gamma[i] = marked(marks, gamma[from], from)
	}
	return o, nil
}

// marked multiplies the value at a source position by the position's sign and power of two.
func marked(a program.AxisMap, v float32, from int) float32 {
	if a.Flipped(from) {
		v = -v
	}
	return float32(math.Ldexp(float64(v), a.Power(from)))
}

// foldBias computes b + w·β.
func foldBias(c *program.Context, claim *arch.Claim, sh Shifted) (o program.Operation, err error) {
	p, layer := c.Program, c.Layout.Claims[sh.Weight]
	if layer == nil || layer.Bias != claim.Name || layer.Norm == nil || layer.Norm.Bias != sh.Bias {
		return o, fmt.Errorf("is not the bias of %q behind a norm with the bias %q", sh.Weight, sh.Bias)
	}
	b, err := vector(c, claim.Name)
	if err != nil {
		return o, err
	}
	beta, err := vector(c, sh.Bias)
	if err != nil {
		return o, err
	}
	sum, err := product(c, layer, beta, len(b))
	if err != nil {
		return o, err
	}
	for n := range b {
		v := marked(p.Row, float32(float64(b[n])+sum[n]), n)
		if !(math.Abs(float64(v)) <= float64(p.Format.Value(p.Format.MaxFinite))) {
			return o, fmt.Errorf("value %d would be %g, which is not a finite value of the tensor's type", n, v)
		}
		b[n] = v
	}
	o.Values = b
	return o, nil
}

// product returns w·x for a layer's stored weight, in the order of the source's labels. It reads the weight row by
// row.
func product(c *program.Context, layer *arch.Claim, x []float32, outputs int) ([]float64, error) {
	t, _ := c.Weights.Weight(layer.Name)
	f, known := t.DType.Format()
	inputs, n := t.Cols, t.Rows
	if layer.OutAxis == 1 {
		inputs, n = t.Rows, t.Cols
	}
	if !known || inputs != len(x) || n != outputs {
		return nil, fmt.Errorf("%s does not have %d outputs and %d inputs", layer.Name, outputs, len(x))
	}
	sum, w := make([]float64, outputs), make([]float32, t.Cols)
	return sum, guard(t, func() error {
		for r := range t.Rows {
			if err := c.Err(); err != nil {
				return err
			}
			f.Decode(w, t.ReadRows(nil, r, 1))
			for k, v := range w {
				out, in := r, k
				if layer.OutAxis == 1 {
					out, in = k, r
				}
				sum[out] += float64(float64(v) * float64(x[in])) // the conversion prevents fusing, for equal results on all machines
			}
		}
		return nil
	})
}

// vector decodes a norm's weight or a bias. All values must be finite.
func vector(c *program.Context, name string) ([]float32, error) {
	t, ok := c.Weights.Weight(name)
	if !ok || len(t.Shape) > 1 {
		return nil, fmt.Errorf("the model has no vector %q that can be folded", name)
	}
	f, known := t.DType.Format()
	if !known || !f.IsFloat() {
		return nil, fmt.Errorf("the model has no vector %q that can be folded", name)
	}
	v := make([]float32, t.Rows*t.Cols)
	err := guard(t, func() error {
		f.Decode(v, t.ReadRows(nil, 0, t.Rows))
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, x := range v {
		if x-x != 0 {
			return nil, fmt.Errorf("%s holds NaN or infinity", t.Name)
		}
	}
	return v, nil
}
