package verify

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// Fold is what a compensated step claims: a constant Add on every weight, the norm Scale folded into the columns,
// the norm's Bias folded into the bias of Weight, or a norm's values all set to Fill. Epilogue asks a runtime to
// subtract the constant again; it is stored in an extra tensor.
type Fold struct {
	Add      float64  `json:"add"`
	Scale    string   `json:"scale"`
	Bias     string   `json:"bias"`
	Weight   string   `json:"weight"`
	Fill     *float64 `json:"fill"`
	Epilogue bool     `json:"epilogue"`
}

// wholeFolds is an error where a norm is folded in part, where a step belongs to no fold, or where
// a constant is added that changes the function.
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
			return fmt.Errorf("%s is folded only in part: %d of %d steps", norm, done, all)
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
			return fmt.Errorf("the fold of %q is part of none that its family allows", name)
		case s.Add != 0 && claim.Role != arch.Linear:
			return fmt.Errorf("%q is no layer that a constant can be added to", name)
		case !fold && !claim.Softmax && !s.Epilogue:
			return fmt.Errorf("a constant added to %q is not free: its inputs may have any sum", name)
		}
	}
	return nil
}

// foldOf counts the steps that fold one norm into all its layers, and how many there must be.
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

// foldedValues puts the numbers that a fold makes into the pair, in the source's place, and gives
// the factors on its inputs (nil: ones), by the source's positions.
func (c *claims) foldedValues(ctx context.Context, p *pair, s *Fold) (scale []float64, err error) {
	if c.layout == nil || c.layout.Claims[p.a.Name] == nil {
		return nil, errors.New("the claimed fold needs a family that is known")
	}
	switch {
	case s.Fill != nil:
		if c.layout.Claims[p.a.Name].Role != arch.Norm {
			return nil, errors.New("only a norm can have been folded away")
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

// normScale is a norm's weight with its powers of two.
func (c *claims) normScale(name string) ([]float64, error) {
	v, err := c.vector(name)
	claim := c.layout.Claims[name]
	if err != nil || claim == nil {
		return nil, errors.Join(err, fmt.Errorf("%q is no norm", name))
	}
	exps := claim.Axes[0].Exps(func(n string) []int { return c.exp[n] })
	for i := range v {
		v[i] = math.Ldexp(v[i], number(exps, i))
	}
	return v, nil
}

// foldedBias is b + w·β; the weight is read element by element and never held.
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
		return nil, fmt.Errorf("the claimed fold of %q does not fit", s.Weight)
	}
	for i := range w.Len() {
		if i%(1<<20) == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		n, k := i/len(beta), i%len(beta)
		if claim.OutAxis == 1 {
			n, k = i%len(b), i/len(b)
		}
		b[n] += float64(f.Value(f.Elem(w.Data, i))) * beta[k]
	}
	return b, nil
}

func (c *claims) vector(name string) ([]float64, error) {
	t, ok := c.src.Tensor(name)
	f, known := t.DType.Format()
	if !ok || !known || len(t.Shape) != 1 {
		return nil, fmt.Errorf("the claimed fold needs the vector %q", name)
	}
	list := make([]float64, t.Len())
	for i := range list {
		list[i] = float64(f.Value(f.Elem(t.Data, i)))
	}
	return list, nil
}
