package verify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// claims is what the output's manifest says was done, sorted by what it was done to.
type claims struct {
	src    *weights.Model
	layout *arch.Layout // nil where the family is not known
	plan   *plan.Plan
	perm   map[string][]int
	flip   map[string][]bool
	exp    map[string][]int
	steps  map[string][]claimed // by tensor
	snr    map[string]float64   // promised, by tensor
}

// claimed is a step on a tensor.
type claimed struct {
	pass string
	*Claim
}

// asRead is a step as it is read from a manifest: checks decode no type of a pass.
func asRead(s *plan.Step) *plan.Step {
	js, err := json.Marshal(s.Data)
	if err != nil {
		return s
	}
	read := *s
	read.Data = json.RawMessage(js)
	return &read
}

func newClaims(src *weights.Model, layout *arch.Layout, p *plan.Plan, checks map[string]*Check) (*claims, error) {
	if p != nil {
		if err := sameFamily(p, layout); err != nil {
			return nil, err
		}
	}
	c := &claims{src: src, layout: layout, plan: p, perm: map[string][]int{}, flip: map[string][]bool{},
		exp: map[string][]int{}, steps: map[string][]claimed{}, snr: map[string]float64{}}
	if p == nil {
		return c, nil
	}
	for _, s := range p.Steps {
		check := checks[s.Pass]
		switch {
		case check == nil:
			return nil, fmt.Errorf("there is no check of the pass %q", s.Pass)
		case check.Symmetry != nil:
			if layout == nil || layout.Index(s.Index) == nil {
				return nil, fmt.Errorf("there is no index %q", s.Index)
			}
			sym, err := check.Symmetry(asRead(s), layout.Index(s.Index))
			if err == nil {
				err = c.symmetry(sym, layout.Index(s.Index))
			}
			if err != nil {
				return nil, fmt.Errorf("%s: index %s: %w", s.Pass, s.Index, err)
			}
		default:
			if err := c.tensorStep(s, check); err != nil {
				return nil, fmt.Errorf("%s: tensor %q: %w", s.Pass, s.Tensor, err)
			}
		}
	}
	for _, o := range p.Predictions {
		if o.SNR != nil {
			c.snr[o.Tensor] = *o.SNR
		}
	}
	if c.needsRuntime() == p.DropIn {
		return nil, fmt.Errorf("it says \"drop_in\": %v, and its steps say otherwise", p.DropIn)
	}
	return c, c.wholeFolds()
}

// needsRuntime reports whether a runtime must be changed to use the result.
func (c *claims) needsRuntime() bool {
	for _, steps := range c.steps {
		if slices.ContainsFunc(steps, func(s claimed) bool { return s.NeedsRuntime }) {
			return true
		}
	}
	return false
}

// sameFamily is an error where a plan was made with another family than the one it is read with.
func sameFamily(p *plan.Plan, layout *arch.Layout) error {
	family := ""
	if layout != nil {
		family = layout.Family
	}
	if p.Model.Family != family {
		return fmt.Errorf("it was made for the family %q, and the source is read as %q", p.Model.Family, family)
	}
	return nil
}

// tensorStep notes a step on a tensor, held by itself: it is the only one of its pass, and it can be done.
func (c *claims) tensorStep(s *plan.Step, check *Check) error {
	if t, ok := c.src.Tensor(s.Tensor); !ok || ofAdapter(c.src, t) {
		return errors.New("the source has no such tensor")
	}
	for _, other := range c.steps[s.Tensor] {
		if other.pass == s.Pass {
			return errors.New("has two steps")
		}
	}
	claim, err := check.Claim(asRead(s))
	if err != nil {
		return err
	}
	if err := c.foldsAlone(s.Tensor, claim.Fold); err != nil {
		return err
	}
	c.steps[s.Tensor] = append(c.steps[s.Tensor], claimed{s.Pass, claim})
	return nil
}

// foldsAlone is an error where a fold changes what an adapter changes, too, or a tensor that the family does not
// know: that one would have to take its part.
func (c *claims) foldsAlone(tensor string, f *Fold) error {
	if f == nil || c.layout == nil {
		return nil
	}
	adapter := c.layout.Adapter
	if adapter != nil && adapter.Problem != "" {
		return fmt.Errorf("the adapter cannot follow: %s", adapter.Problem)
	}
	for _, name := range []string{tensor, f.Scale, f.Bias, f.Weight} {
		if name == "" {
			continue
		}
		if doubt := c.layout.Doubt(name); doubt != "" {
			return errors.New(doubt)
		}
		if adapter != nil && adapter.Changes[name] != "" {
			return fmt.Errorf("the adapter's %s changes %s", adapter.Changes[name], name)
		}
	}
	return nil
}

// ofAdapter tells the adapter's tensors from the base's.
func ofAdapter(m *weights.Model, t weights.Tensor) bool {
	return m.Adapter != nil && t.File == m.Adapter.Path
}

// symmetry notes an exact step, held against what the family allows on its index.
func (c *claims) symmetry(s Symmetry, ix *arch.Index) error {
	if ix.Blocked != "" {
		return errors.New(ix.Blocked)
	}
	if s.Order != nil {
		seen := make([]bool, ix.Len)
		for _, label := range s.Order {
			if label < 0 || label >= ix.Len || seen[label] {
				return errors.New("its order is no permutation")
			}
			seen[label] = true
		}
		if !ix.Permute || len(s.Order) != ix.Len {
			return errors.New("may not be permuted so")
		}
		c.perm[ix.Name] = s.Order
	}
	if s.Flip != nil {
		c.flip[ix.Name] = make([]bool, ix.Len)
		for _, label := range s.Flip {
			if label < 0 || label >= ix.Len || !ix.Sign {
				return errors.New("may not change signs so")
			}
			c.flip[ix.Name][label] = true
		}
	}
	if s.Exponents != nil {
		if len(s.Exponents) != ix.Len || !ix.Scale {
			return errors.New("may not be scaled so")
		}
		c.exp[ix.Name] = s.Exponents
	}
	return nil
}

// image is the relation that the claims make of a tensor.
func (c *claims) image(t weights.Tensor) (im image, claimed bool) {
	if c.layout == nil || c.layout.Claims[t.Name] == nil {
		return im, false
	}
	var row, col line
	switch axes := c.layout.Claims[t.Name].Axes; len(axes) {
	case 0:
		return im, false
	case 1:
		row = c.line(axes[0])
	default:
		row, col = c.rows(axes[:len(axes)-1]), c.line(axes[len(axes)-1])
	}
	return image{row.from, col.from, row.flip, col.flip, row.exp, col.exp}, row.moves() || col.moves()
}

// look compares one tensor with its source and with what is claimed of it.
func (c *claims) look(ctx context.Context, a, b weights.Tensor) (Tensor, error) {
	t := Tensor{Name: a.Name, DType: a.DType.String(), Shape: a.Shape, Linear: c.layout.IsLinear(a.Info) && !ofAdapter(c.src, a)}
	unchanged := Identical
	if c.layout != nil {
		if claim := c.layout.Claims[a.Name]; claim != nil {
			t.Kind = claim.Kind
		} else {
			unchanged = Untouched
		}
	}
	f, known := a.DType.Format()
	p := newPair(a, b, f)
	same := bytes.Equal(a.Data, b.Data)
	claimed, moved := c.image(a)
	var err error
	switch {
	case same && !moved && len(c.steps[a.Name]) == 0:
		if known {
			t.NonFinite = p.nonFinite()
		}
	case !known:
		t.Class = Exact
		t.Relation = claimed.summary("claimed")
		if !p.moved(&claimed) {
			t.Class, t.Problem = Lossy, fmt.Sprintf("it is not what the manifest claims, and values of type %s are never changed", a.DType)
		}
	case c.folded(a.Name) != nil:
		err = c.lookFolded(ctx, &t, p, c.folded(a.Name))
	default:
		err = c.lookImage(ctx, &t, p)
	}
	if same { // what is claimed may well come out as nothing to do
		t.Class, t.Relation = unchanged, nil
	}
	return t, err
}

func newPair(a, b weights.Tensor, f weights.Format) *pair {
	p := &pair{a: a, b: b, f: f}
	p.rows, p.cols = a.Matrix()
	return p
}

// folded finds the claim that a tensor was shifted or takes part in a fold.
func (c *claims) folded(name string) *Fold {
	for _, s := range c.steps[name] {
		if s.Fold != nil {
			return s.Fold
		}
	}
	return nil
}

// lookImage finds the tensor's relation and compares every element under it.
func (c *claims) lookImage(ctx context.Context, t *Tensor, p *pair) error {
	claimed, hasClaim := c.image(p.a)
	d, err := p.compare(ctx, &claimed, nil, 0, c.tolerance(p))
	if err != nil {
		return err
	}
	im, source := claimed, "claimed"
	if hasClaim || d.noise > d.signal/100 { // else everything stands where it stood
		if im, source, err = c.search(ctx, t, p, claimed, &d); err != nil {
			return err
		}
	}
	t.Relation = im.summary(source)
	t.fill(p, d)
	t.Class = Lossy
	if d.changed == 0 {
		t.Class = Exact
	}
	return c.holdClaims(ctx, t, p, d, hasClaim)
}

// search looks for an image in the data alone, and takes it instead of the claimed one, with what
// it leaves, where it fits better. Where the data are not conclusive, where several images fit
// because values coincide, and where values also moved, the claimed image is what counts.
func (c *claims) search(ctx context.Context, t *Tensor, p *pair, claimed image, under *difference) (image, string, error) {
	im, found, err := p.find(ctx)
	if err != nil || !found {
		return claimed, "claimed", err
	}
	d, err := p.compare(ctx, &im, nil, 0, nil)
	switch {
	case err != nil || under.noise < d.noise:
		return claimed, "claimed", err
	case under.noise == d.noise:
		return claimed, "found", nil
	case len(c.steps[t.Name]) > 0:
		return claimed, "claimed", nil
	}
	if c.plan != nil {
		t.Problem = "it is an image of its source, but not the one that the manifest claims"
	}
	*under = d
	return im, "found", nil
}

// tolerance of the claimed steps; nil where nothing is claimed that moves values.
func (c *claims) tolerance(p *pair) *tolerance {
	if len(c.steps[p.a.Name]) == 0 {
		return nil
	}
	var list []*Claim
	for _, s := range c.steps[p.a.Name] {
		list = append(list, s.Claim)
	}
	return newTolerance(p.f, c.layout.OutAxis(p.a.Name), list)
}

// lookFolded compares a tensor that a shift changed with what the arithmetic asks for.
func (c *claims) lookFolded(ctx context.Context, t *Tensor, p *pair, s *Fold) error {
	t.Class = Compensated
	im, _ := c.image(p.a)
	scale, err := c.foldedValues(ctx, p, s)
	if err != nil {
		t.Problem = err.Error()
		return ctx.Err()
	}
	if s.Fill != nil { // the readers took the norm's powers of two along with the rest of it
		im = image{}
	}
	d, err := p.compare(ctx, &im, scale, s.Add, c.tolerance(p))
	if err != nil {
		return err
	}
	t.fill(p, d)
	if s.Add != 0 {
		t.Shift = &s.Add
	}
	t.Relation = im.summary("claimed")
	return c.holdClaims(ctx, t, p, d, true)
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
func (c *claims) holdClaims(ctx context.Context, t *Tensor, p *pair, d difference, moved bool) error {
	bad := func(format string, args ...any) {
		if t.Problem == "" {
			t.Problem = fmt.Sprintf(format, args...)
		}
	}
	if d.spread > 0 {
		bad("%d values are NaN or infinite that were not, or were and are not as they were", d.spread)
	}
	if c.plan == nil {
		return nil
	}
	steps := c.steps[t.Name]
	if len(steps) == 0 && d.changed > 0 {
		bad("%d values changed, and the manifest claims nothing lossy", d.changed)
	}
	if len(steps) == 0 && !moved {
		bad("it changed, and the manifest claims nothing about it")
	}
	for _, s := range steps {
		if s.Holds == nil {
			continue
		}
		im, _ := c.image(p.a)
		if err := s.Holds(ctx, &Result{p.f, p.rows, p.cols, c.layout.OutAxis(p.a.Name), p, im}); err != nil {
			bad("%s: %v", s.pass, err)
		}
	}
	if d.wrong != "" {
		bad("%s", d.wrong)
	}
	const tolerance = 0.01 // dB: sums in another order
	if want, ok := c.snr[t.Name]; ok && t.SNR != nil && *t.SNR < want-tolerance {
		bad("its signal-to-noise ratio is %.2f dB, the manifest claims %.2f", *t.SNR, want)
	}
	if least := c.plan.Request.MinSNR; least != nil && t.Linear && t.SNR != nil && *t.SNR < *least-tolerance && !slices.ContainsFunc(steps, func(s claimed) bool { return s.Anywhere }) {
		bad("its signal-to-noise ratio is %.2f dB, the budget asks for %.2f", *t.SNR, *least)
	}
	return ctx.Err()
}
