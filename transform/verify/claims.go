package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// claims is what the output's manifest says was done, sorted by what it was done to.
type claims struct {
	src    *weights.Model
	layout *arch.Layout // nil where the family is not known
	plan   *transform.Plan
	perm   map[string][]int
	flip   map[string][]bool
	exp    map[string][]int
	steps  map[string][]*transform.Step // by tensor
	snr    map[string]float64           // promised, by tensor
}

func newClaims(src *weights.Model, family *arch.Family, plan *transform.Plan) (*claims, error) {
	layout, _, err := transform.Resolve(src, family)
	if err != nil && (plan == nil || plan.Model.Family != "") {
		return nil, err
	}
	c := &claims{src: src, layout: layout, plan: plan, perm: map[string][]int{}, flip: map[string][]bool{},
		exp: map[string][]int{}, steps: map[string][]*transform.Step{}, snr: map[string]float64{}}
	if plan == nil {
		return c, nil
	}
	for _, s := range plan.Steps {
		if s.Tensor != "" {
			c.steps[s.Tensor] = append(c.steps[s.Tensor], s)
			continue
		}
		if layout == nil || layout.Index(s.Index) == nil {
			return nil, fmt.Errorf("there is no index %q", s.Index)
		}
		if err := c.symmetry(s, layout.Index(s.Index)); err != nil {
			return nil, err
		}
	}
	for _, o := range plan.Outlook {
		if o.SNR != nil {
			c.snr[o.Tensor] = *o.SNR
		}
	}
	return c, nil
}

// symmetry notes an exact step, held against what the family allows on its index.
func (c *claims) symmetry(s *transform.Step, ix *arch.Index) error {
	switch {
	case ix.Blocked != "":
		return fmt.Errorf("index %s: %s", ix.Name, ix.Blocked)
	case s.Order != nil:
		seen := make([]bool, ix.Len)
		for _, label := range s.Order {
			if label < 0 || label >= ix.Len || seen[label] {
				return fmt.Errorf("index %s: its order is no permutation", ix.Name)
			}
			seen[label] = true
		}
		if !ix.Permute || len(s.Order) != ix.Len {
			return fmt.Errorf("index %s: may not be permuted so", ix.Name)
		}
		c.perm[ix.Name] = s.Order
	case s.Flip != nil:
		c.flip[ix.Name] = make([]bool, ix.Len)
		for _, label := range s.Flip {
			if label < 0 || label >= ix.Len || !ix.Sign {
				return fmt.Errorf("index %s: may not change signs so", ix.Name)
			}
			c.flip[ix.Name][label] = true
		}
	case s.Exponents != nil:
		if len(s.Exponents) != ix.Len || !ix.Scale {
			return fmt.Errorf("index %s: may not be scaled so", ix.Name)
		}
		c.exp[ix.Name] = s.Exponents
	}
	return nil
}

// extra reports whether the plan announces a tensor that the source has not.
func (c *claims) extra(name string) bool {
	for tensor, steps := range c.steps {
		for _, s := range steps {
			if s.Shift != nil && s.Shift.Epilogue && name == tensor+transform.ShiftSuffix {
				return true
			}
		}
	}
	return false
}

// image is the relation that the claims make of a tensor.
func (c *claims) image(t weights.Tensor) (im image, claimed bool) {
	if c.layout == nil || c.layout.Claims[t.Name] == nil {
		return im, false
	}
	axes := c.layout.Claims[t.Name].Axes
	if len(axes) == 0 {
		return im, false
	}
	one := func(a *arch.Axis) (gather []int, flip []bool, exp []int) {
		gather = a.Gather(func(n string) []int { return c.perm[n] })
		flip = a.Signs(func(n string) []bool { return c.flip[n] })
		exp = a.Exps(func(n string) []int { return c.exp[n] })
		if gather != nil { // signs and exponents come by the source's position
			flip, exp = follow(flip, gather), follow(exp, gather)
		}
		return gather, flip, exp
	}
	im.row, im.rowFlip, im.rowExp = one(axes[0])
	if len(axes) > 1 {
		im.col, im.colFlip, im.colExp = one(axes[len(axes)-1])
	}
	return im, im.row != nil || im.col != nil || im.rowFlip != nil || im.colFlip != nil || im.rowExp != nil || im.colExp != nil
}

func follow[T any](list []T, gather []int) []T {
	if list == nil {
		return nil
	}
	moved := make([]T, len(gather))
	for i, from := range gather {
		moved[i] = list[from]
	}
	return moved
}

// look compares one tensor with its source and with what is claimed of it.
func (c *claims) look(ctx context.Context, a, b weights.Tensor) (Tensor, error) {
	t := Tensor{Name: a.Name, DType: a.DType.String(), Shape: a.Shape, Linear: transform.Linear(c.layout, a.Info), Class: Identical}
	if c.layout != nil {
		if claim := c.layout.Claims[a.Name]; claim != nil {
			t.Kind = claim.Kind
		} else {
			t.Class = Untouched
		}
	}
	f, known := a.DType.Format()
	if bytes.Equal(a.Data, b.Data) {
		if known {
			p := newPair(a, b, f)
			t.NonFinite = p.nonFinite()
		}
		return t, nil // a claim may well come out as nothing to do
	}
	t.Class = Lossy
	if !known {
		t.Problem = fmt.Sprintf("its bytes differ, and values of type %s are never changed", a.DType)
		return t, nil
	}
	p := newPair(a, b, f)
	if fold := c.folded(a.Name); fold != nil {
		return t, c.lookFolded(&t, p, fold)
	}
	return t, c.lookImage(ctx, &t, p)
}

func newPair(a, b weights.Tensor, f weights.Format) *pair {
	p := &pair{a: a, b: b, f: f}
	p.rows, p.cols = a.Matrix()
	return p
}

// folded finds the claim that a tensor was shifted or takes part in a fold.
func (c *claims) folded(name string) *transform.Shift {
	for _, s := range c.steps[name] {
		if s.Shift != nil {
			return s.Shift
		}
	}
	return nil
}

// lookImage finds the tensor's relation and compares every element under it.
func (c *claims) lookImage(ctx context.Context, t *Tensor, p *pair) error {
	claimed, hasClaim := c.image(p.a)
	im, found, err := p.find(ctx)
	if err != nil {
		return err
	}
	var d difference
	if found {
		d = p.compare(&im, nil, 0)
	}
	// Where the data alone are not conclusive, or where values coincide so that several images
	// fit, the claimed one is measured.
	if under := p.compare(&claimed, nil, 0); !found || under.noise <= d.noise {
		source := "claimed"
		if found && under.noise == d.noise {
			source = "found"
		}
		d, im = under, claimed
		t.Relation = im.summary(source)
	} else {
		t.Relation = im.summary("found")
		if d.noise < under.noise {
			t.Problem = "it is an image of its source, but not the one that the manifest claims"
		}
	}
	t.fill(p, d)
	if d.changed == 0 {
		t.Class = Exact
	}
	c.holdClaims(t, p, d, hasClaim)
	return nil
}

// lookFolded compares a tensor that a shift changed with what the arithmetic asks for.
func (c *claims) lookFolded(t *Tensor, p *pair, s *transform.Shift) error {
	t.Class = Compensated
	im, _ := c.image(p.a)
	want, scale, err := c.foldedValues(p, s)
	if err != nil {
		t.Problem = err.Error()
		return nil
	}
	if want != nil {
		p.aValues = want
	}
	d := p.compare(&im, scale, s.Add)
	t.fill(p, d)
	if s.Add != 0 {
		t.Shift = &s.Add
	}
	t.Relation = im.summary("claimed")
	c.holdClaims(t, p, d, true)
	// Without a lossy step nothing but the rounding of the stored type may be lost.
	if len(c.steps[t.Name]) == 1 && d.worstUlp > 1 {
		t.Problem = fmt.Sprintf("a value is %.3g units in the last place off what folding and shifting give", d.worstUlp)
	}
	return nil
}

// foldedValues gives the numbers that a fold puts in the source's place (nil: the source's own)
// and the factors on its inputs (nil: ones), by the source's positions.
func (c *claims) foldedValues(p *pair, s *transform.Shift) (want, scale []float64, err error) {
	read := func(name string) []float64 {
		t, ok := c.src.Tensor(name)
		f, known := t.DType.Format()
		if !ok || !known {
			err = errors.Join(err, fmt.Errorf("the claimed fold needs %q", name))
			return nil
		}
		v := make([]float32, t.Len())
		f.Decode(v, t.Data)
		list := make([]float64, len(v))
		for i, x := range v {
			list[i] = float64(x)
		}
		return list
	}
	switch {
	case s.Fill != nil:
		want = make([]float64, p.rows*p.cols)
		for i := range want {
			want[i] = *s.Fill
		}
	case s.Bias != "":
		bias, beta, w := read(p.a.Name), read(s.Bias), read(s.Weight)
		claim := c.layout.Claims[s.Weight]
		if err != nil || claim == nil || len(w) != len(bias)*len(beta) {
			return nil, nil, errors.Join(err, fmt.Errorf("the claimed fold of %q does not fit", s.Weight))
		}
		for n := range bias {
			for k := range beta {
				if claim.OutAxis == 1 {
					bias[n] += w[k*len(bias)+n] * beta[k]
				} else {
					bias[n] += w[n*len(beta)+k] * beta[k]
				}
			}
		}
		want = bias
	case s.Scale != "":
		p.inputRows = c.layout.Claims[p.a.Name].OutAxis == 1
		scale = read(s.Scale)
		if inputs := p.inputs(); err == nil && len(scale) != inputs {
			err = fmt.Errorf("the claimed fold has %d factors for %d inputs", len(scale), inputs)
		}
	}
	return want, scale, err
}

// fill takes over what a comparison measured.
func (t *Tensor) fill(p *pair, d difference) {
	t.SNR = decibels(d.signal, d.noise)
	t.NonFinite = d.nonFinite
	t.ZerosAdded = d.zerosAdded
	if d.changed > 0 {
		t.BitsZeroed = max(0, p.zeroBits(p.b)-p.zeroBits(p.a))
	}
}

// holdClaims compares what was found with what is claimed.
func (c *claims) holdClaims(t *Tensor, p *pair, d difference, moved bool) {
	bad := func(format string, args ...any) {
		if t.Problem == "" {
			t.Problem = fmt.Sprintf(format, args...)
		}
	}
	if d.spread > 0 {
		bad("%d values are NaN or infinite that were not, or were and are not as they were", d.spread)
	}
	if c.plan == nil {
		return
	}
	steps := c.steps[t.Name]
	if len(steps) == 0 && d.changed > 0 {
		bad("%d values changed, and the manifest claims nothing lossy", d.changed)
	}
	if len(steps) == 0 && !moved {
		bad("it changed, and the manifest claims nothing about it")
	}
	for _, s := range steps {
		if err := c.holdStep(s, p); err != nil {
			bad("%s: %v", s.Pass, err)
		}
	}
	const tolerance = 0.01 // dB: sums in another order
	if want, ok := c.snr[t.Name]; ok && t.SNR != nil && *t.SNR < want-tolerance {
		bad("its signal-to-noise ratio is %.2f dB, the manifest claims %.2f", *t.SNR, want)
	}
	if least := c.plan.Request.MinSNR; least != nil && t.Linear && t.SNR != nil && *t.SNR < *least-tolerance {
		bad("its signal-to-noise ratio is %.2f dB, the budget asks for %.2f", *t.SNR, *least)
	}
}

// holdStep checks the property that a lossy step leaves behind.
func (c *claims) holdStep(s *transform.Step, p *pair) error {
	switch {
	case s.Round != nil && p.f.IsFloat():
		if got := p.zeroBits(p.b); got < s.Round.Zeroed {
			return fmt.Errorf("%d low bits are claimed to be zero, %d are", s.Round.Zeroed, got)
		}
	case s.Grid != nil:
		return p.onGrid(s.Grid.Exponents, c.outAxis(p))
	case s.Zeros != nil && s.Zeros.Pattern == "2:4":
		return p.twoOfFour(c.outAxis(p) == 1)
	}
	return nil
}

func (c *claims) outAxis(p *pair) int {
	if c.layout == nil || c.layout.Claims[p.a.Name] == nil {
		return 0
	}
	return c.layout.Claims[p.a.Name].OutAxis
}

// onGrid checks that every finite value is a multiple of its output's step.
func (p *pair) onGrid(exps []int, outAxis int) error {
	for n := range p.rows {
		for k := range p.cols {
			e := n
			if outAxis == 1 {
				e = k
			}
			if e >= len(exps) {
				return fmt.Errorf("there are %d steps for more outputs", len(exps))
			}
			v := p.value(p.b, n, k)
			if q := math.Ldexp(v, -exps[e]); v-v == 0 && q != math.Trunc(q) {
				return fmt.Errorf("element [%d, %d] is no multiple of 2^%d", n, k, exps[e])
			}
		}
	}
	return nil
}

// twoOfFour checks that of every four neighbouring finite inputs at least two are zero.
func (p *pair) twoOfFour(inputsAreRows bool) error {
	outer, inner := p.rows, p.cols
	if inputsAreRows {
		outer, inner = inner, outer
	}
	for o := range outer {
		for i := 0; i+4 <= inner; i += 4 {
			used, finite := 0, true
			for j := i; j < i+4; j++ {
				n, k := o, j
				if inputsAreRows {
					n, k = j, o
				}
				v := p.value(p.b, n, k)
				finite = finite && v-v == 0
				if v != 0 {
					used++
				}
			}
			if finite && used > 2 {
				return fmt.Errorf("output %d has %d values in its inputs %d to %d", o, used, i, i+3)
			}
		}
	}
	return nil
}
