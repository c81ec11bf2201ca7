package verify

import (
	"github.com/lowtoggle/lowtoggle/weights"

	"context"
	"errors"
	"fmt"
	"math"

	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// Fold is the claim of a compensated step. The claim is one of four: the constant Add is added to every weight; the
// weight of the norm Scale is folded into the inputs; the norm's Bias is folded into the bias of the layer Weight;
// all values of a norm are Fill. With Epilogue, a runtime must subtract the constant again, and an extra tensor holds
// the constant. Scale, Bias and Weight are names of tensors.
type Fold struct {
	Add      float64  `json:"add"`
	Scale    string   `json:"scale"`
	Bias     string   `json:"bias"`
	Weight   string   `json:"weight"`
	Fill     *float64 `json:"fill"`
	Epilogue bool     `json:"epilogue"`
}

// wholeFolds returns an error if a norm is folded only in part, if a step belongs to no fold, or if an added constant
// changes the function.
func (c *claims) wholeFolds() error {
	if c.layout == nil {
		return nil
	}
	folds := map[string]bool{} // tensors whose step belongs to a fold
	behind := map[string][]*arch.Claim{}
	for _, l := range c.layout.Claims {
		if l.Role == arch.Linear && l.Norm != nil && l.Norm.Kind == arch.LayerNorm {
			behind[l.Norm.Weight] = append(behind[l.Norm.Weight], l)
		}
	}
	for norm, layers := range behind {
		done, all := c.foldOf(layers, folds)
		if done > 0 && done < all {
			return fmt.Errorf("%s is folded only in part: the plan has %d of %d steps", norm, done, all)
		}
	}
	for name := range c.steps {
		s, claim := c.folded(name), c.layout.Claims[name]
		if s == nil || claim == nil {
			continue
		}
		fold := s.Fill != nil || s.Bias != "" || s.Scale != ""
		switch {
		case fold && !folds[name]:
			return fmt.Errorf("the plan folds %q, and the family does not allow this fold", name)
		case s.Add != 0 && claim.Role != arch.Linear:
			return fmt.Errorf("%q is not a linear layer, so no constant can be added to it", name)
		case !fold && !claim.Softmax && !s.Epilogue:
			return fmt.Errorf("a constant added to %q changes the function, because its inputs need not sum to 0", name)
		}
	}
	return nil
}

// foldOf counts the plan's steps that fold one norm into all its layers, and the steps of a complete fold.
func (c *claims) foldOf(layers []*arch.Claim, folds map[string]bool) (done, all int) {
	need := func(name string, holds func(s *Fold) bool) {
		all++
		if s := c.folded(name); s != nil && holds(s) {
			done++
			folds[name] = true
		}
	}
	fill := func(v float64) func(*Fold) bool {
		return func(s *Fold) bool { return s.Fill != nil && *s.Fill == v && s.Add == 0 }
	}
	n := layers[0].Norm
	need(n.Weight, fill(1))
	if n.Bias != "" {
		need(n.Bias, fill(0))
	}
	for _, l := range layers {
		need(l.Name, func(s *Fold) bool { return s.Fill == nil && s.Bias == "" && s.Scale == n.Weight })
		if n.Bias != "" {
			need(l.Bias, func(s *Fold) bool {
				return s.Fill == nil && s.Bias == n.Bias && s.Weight == l.Name && s.Add == 0
			})
		}
	}
	return done, all
}

// foldedValues sets the pair's values to the values that a fold computes. It returns the factors of the inputs (nil:
// ones). Values and factors are in the source's order.
func (c *claims) foldedValues(ctx context.Context, p *pair, s *Fold) (scale []float64, err error) {
	if c.layout == nil || c.layout.Claims[p.a.Name] == nil {
		return nil, errors.New("the claimed fold needs a known family")
	}
	switch {
	case s.Fill != nil:
		if c.layout.Claims[p.a.Name].Role != arch.Norm {
			return nil, errors.New("only a norm can be filled with a constant")
		}
		p.aValues = make([]float64, p.rows*p.cols)
		for i := range p.aValues {
			p.aValues[i] = *s.Fill
		}
	case s.Bias != "":
		p.aValues, err = c.foldedBias(ctx, p.a.Name, s)
	case s.Scale != "":
		p.inputRows = c.layout.OutAxis(p.a.Name) == 1
		if scale, err = c.normScale(s.Scale); err == nil && len(scale) != p.inputs() {
			err = fmt.Errorf("the claimed fold has %d factors for %d inputs", len(scale), p.inputs())
		}
	}
	return scale, err
}

// normScale returns a norm's weight, multiplied by its claimed powers of two.
func (c *claims) normScale(name string) ([]float64, error) {
	v, err := c.vector(name)
	claim := c.layout.Claims[name]
	if err != nil || claim == nil {
		return nil, errors.Join(err, fmt.Errorf("%q is not a norm", name))
	}
	exps := claim.Axes[0].Exps(func(n string) []int { return c.exp[n] })
	for i := range v {
		v[i] = math.Ldexp(v[i], number(exps, i))
	}
	return v, nil
}

// foldedBias returns b + w·β for the bias b, the weight w and the norm's bias β. It reads w element by element, so no
// decoded copy is in memory.
func (c *claims) foldedBias(ctx context.Context, name string, s *Fold) ([]float64, error) {
	b, err := c.vector(name)
	if err != nil {
		return nil, err
	}
	beta, err := c.vector(s.Bias)
	if err != nil {
		return nil, err
	}
	w, ok := c.src.Tensor(s.Weight)
	f, known := w.DType.Format()
	claim := c.layout.Claims[s.Weight]
	if !ok || !known || claim == nil || w.Len() != len(b)*len(beta) {
		return nil, fmt.Errorf("the claimed fold of %q does not fit the shapes of its tensors", s.Weight)
	}
	weights.Need(w.Data)
	for i := range w.Len() {
		if i%(1<<20) == 0 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
		}
		n, k := i/len(beta), i%len(beta)
		if claim.OutAxis == 1 {
			n, k = i%len(b), i/len(b)
		}
		b[n] += float64(float64(f.Value(f.Elem(w.Data, i))) * beta[k])
	}
	return b, nil
}

// vector returns the values of a one-dimensional tensor of the source.
func (c *claims) vector(name string) ([]float64, error) {
	t, ok := c.src.Tensor(name)
	f, known := t.DType.Format()
	if !ok || !known || len(t.Shape) != 1 {
		return nil, fmt.Errorf("the claimed fold needs the vector %q", name)
	}
	weights.Need(t.Data)
	list := make([]float64, t.Len())
	for i := range list {
		list[i] = float64(f.Value(f.Elem(t.Data, i)))
	}
	return list, nil
}
