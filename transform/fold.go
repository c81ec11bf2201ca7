package transform

import (
	"errors"
	"fmt"
	"math"

	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// affine is w·diag(γ) + c on rows that are already gathered.
type affine struct {
	gamma   []float32 // by place on the input axis; nil for ones
	add     float32
	inputs0 bool // inputs are rows (storage [in, out])
}

// factor of element [n, k] of the result.
func (a *affine) factor(n, k int) float32 {
	switch {
	case a.gamma == nil:
		return 1
	case a.inputs0:
		return a.gamma[n]
	}
	return a.gamma[k]
}

// apply computes in float64 and rounds to float32 and from there to the stored type. NaN and
// infinity stay.
func (a *affine) apply(b block) {
	for i := range b.rows {
		for k := range b.cols {
			at := i*b.cols + k
			bits := b.format.Elem(b.data, at)
			if !b.format.Finite(bits) {
				continue
			}
			v := float64(float64(b.format.Value(bits))*float64(a.factor(b.first+i, k))) + float64(a.add)
			b.format.SetElem(b.data, at, b.format.FromValue(float32(v)))
		}
	}
}

// compileShift holds a shift against what the family says of the tensor: only what keeps the
// function is compiled.
func compileShift(s *Step, c *compiler) error {
	p, sh := c.prog, s.Shift
	if sh == nil {
		return errors.New("says nothing to do")
	}
	if c.layout == nil || c.layout.Claims[p.src.Name] == nil {
		return errors.New("is no part of a family that is known")
	}
	if !p.format.IsFloat() {
		return errors.New("integers cannot be shifted")
	}
	claim := c.layout.Claims[p.src.Name]
	if err := checkOwn(c.layout, p.src.Name, sh.Scale, sh.Bias, sh.Weight); err != nil {
		return err
	}
	switch {
	case sh.Fill != nil:
		return c.fill(claim, *sh.Fill)
	case sh.Bias != "":
		return c.foldBias(claim, sh)
	}
	return c.foldScale(claim, sh)
}

// fill replaces a norm's weight or bias that was folded away. A constant looks the same in every
// order, and folding took its powers of two along.
func (c *compiler) fill(claim *arch.Claim, v float64) error {
	p := c.prog
	if claim.Role != arch.Norm || v != 0 && v != 1 {
		return errors.New("only a norm's weights can be filled, with 0 or 1")
	}
	p.row, p.col = axisMap{}, axisMap{}
	p.values = make([]float32, p.rows*p.cols)
	for i := range p.values {
		p.values[i] = float32(v)
	}
	return nil
}

// checkOwn is an error where something else has a part in one of the base's tensors: what a fold takes
// from a norm, or a constant, would have to be given to that as well.
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

// foldScale multiplies a layer's inputs by its norm's weight, and adds the constant.
func (c *compiler) foldScale(claim *arch.Claim, sh *Shift) error {
	p := c.prog
	layerNorm := sh.Scale != "" && claim.Norm != nil && claim.Norm.Weight == sh.Scale && claim.Norm.Kind == arch.LayerNorm
	switch {
	case claim.Role != arch.Linear:
		return errors.New("is no layer")
	case len(claim.Axes) != 2:
		return errors.New("is no matrix: its inputs and outputs are not those of one product")
	case sh.Scale != "" && !layerNorm:
		return fmt.Errorf("no LayerNorm of weight %q feeds it", sh.Scale)
	case !layerNorm && !claim.Softmax && !sh.Epilogue:
		return errors.New("its inputs may have any sum: a constant is not free")
	case math.Abs(sh.Add) > math.MaxFloat32:
		return errors.New("the constant is too large")
	}
	p.affine = &affine{add: float32(sh.Add), inputs0: p.outAxis == 1}
	if !layerNorm {
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
	marks, _ := c.syms.matrix(c.layout.Claims[sh.Scale])
	p.affine.gamma = make([]float32, inputs)
	for i := range gamma {
		from := at(gather, i, i)
		p.affine.gamma[i] = marks.mark(gamma[from], from)
	}
	return nil
}

// mark multiplies the value at a source position by its sign and power of two.
func (a axisMap) mark(v float32, from int) float32 {
	if at(a.flip, from, false) {
		v = -v
	}
	return float32(math.Ldexp(float64(v), at(a.exp, from, 0)))
}

// foldBias computes b + w·β.
func (c *compiler) foldBias(claim *arch.Claim, sh *Shift) error {
	p, layer := c.prog, c.layout.Claims[sh.Weight]
	if layer == nil || layer.Bias != claim.Name || layer.Norm == nil || layer.Norm.Bias != sh.Bias {
		return fmt.Errorf("is not the bias of %q behind a norm with the bias %q", sh.Weight, sh.Bias)
	}
	b, err := c.vector(claim.Name)
	if err != nil {
		return err
	}
	beta, err := c.vector(sh.Bias)
	if err != nil {
		return err
	}
	sum, err := c.product(layer, beta, len(b))
	if err != nil {
		return err
	}
	for n := range b {
		v := p.row.mark(float32(float64(b[n])+sum[n]), n)
		if !(math.Abs(float64(v)) <= float64(p.format.Value(p.format.MaxFinite))) {
			return fmt.Errorf("value %d would be %g: more than its type holds, or NaN", n, v)
		}
		b[n] = v
	}
	p.values = b
	p.row.flip, p.row.exp = nil, nil
	return nil
}

// product is w·x for a layer's stored weight, in the source's labels; the weight is read row by
// row and never held.
func (c *compiler) product(layer *arch.Claim, x []float32, outputs int) ([]float64, error) {
	t, _ := c.model.Tensor(layer.Name)
	f, known := t.DType.Format()
	rows, cols := t.Matrix()
	inputs, n := cols, rows
	if layer.OutAxis == 1 {
		inputs, n = rows, cols
	}
	if !known || inputs != len(x) || n != outputs {
		return nil, fmt.Errorf("%d outputs and %d inputs do not make %s", outputs, len(x), layer.Name)
	}
	sum, w := make([]float64, outputs), make([]float32, cols)
	for r := range rows {
		if err := c.ctx.Err(); err != nil {
			return nil, err
		}
		f.Decode(w, t.Data[r*cols*f.Bits/8:])
		for k, v := range w {
			out, in := r, k
			if layer.OutAxis == 1 {
				out, in = k, r
			}
			sum[out] += float64(float64(v) * float64(x[in])) // explicit, so that no machine fuses it
		}
	}
	return sum, nil
}

// vector decodes a norm's weight or a bias, which must be finite.
func (c *compiler) vector(name string) ([]float32, error) {
	t, ok := c.model.Tensor(name)
	f, known := t.DType.Format()
	if !ok || !known || !f.IsFloat() || len(t.Shape) > 1 {
		return nil, fmt.Errorf("the model has no vector %q that can be folded", name)
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
