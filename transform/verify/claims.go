package verify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// claims are the steps in the output's manifest, by the index or tensor that they change.
type claims struct {
	src    *weights.Model
	layout *arch.Layout // nil for an unknown family
	plan   *plan.Plan
	perm   map[string][]int
	flip   map[string][]bool
	exp    map[string][]int
	steps  map[string][]claimed // by tensor
	snr    map[string]float64   // lowest output SNR in dB that the plan's predictions allow, by tensor

	missed map[string]bool // tensors that did not keep the budget according to the plan

	quantised *quant.Description
	result    *quant.Description // of the output; nil if no step changes codes
	reference *quant.Set         // weights that codes should approximate; nil: unknown
	made      *quant.Description // of the output if the plan stores weights in another format; else nil
}

// sampled is the largest distance, in dB, of a weight's output SNR below the SNR of the plan's sampled rows.
const sampled = 1

// fewChanges is the output SNR in dB above which so few values changed that a sample of rows is not representative.
const fewChanges = 50

// claimed is a step on a tensor.
type claimed struct {
	pass string
	*Claim
}

// asRead returns a step with its data as JSON, as if read from a manifest. Checks therefore never get a pass's own
// type.
func asRead(s *plan.Step) *plan.Step {
	js, err := json.Marshal(s.Data)
	if err != nil {
		return s
	}
	read := *s
	read.Data = json.RawMessage(js)
	return &read
}

// newClaims reads the claims of a plan, which may be nil. made describes the output if the plan stores weights in
// another format.
func newClaims(src *weights.Model, layout *arch.Layout, q, made *quant.Description, p *plan.Plan, checks map[string]*Check) (*claims, error) {
	if p != nil {
		if err := sameFamily(p, layout); err != nil {
			return nil, err
		}
	}
	c := &claims{src: src, layout: layout, quantised: q, made: made, plan: p, perm: map[string][]int{}, flip: map[string][]bool{},
		exp: map[string][]int{}, steps: map[string][]claimed{}, snr: map[string]float64{}, missed: map[string]bool{}}
	if p == nil {
		return c, nil
	}
	for _, s := range p.Steps {
		check := checks[s.Pass]
		switch {
		case check == nil:
			return nil, fmt.Errorf("there is no check for the pass %q: use the program that made the plan", s.Pass)
		case check.Symmetry != nil:
			if layout == nil || layout.Index(s.Index) == nil {
				return nil, fmt.Errorf("%s: the model has no index %q", s.Pass, s.Index)
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
		c.missed[o.Tensor] = o.Missed != ""
		switch {
		case o.SNR != nil:
			c.snr[o.Tensor] = *o.SNR
		case o.SampleSNR != nil:
			c.snr[o.Tensor] = min(*o.SampleSNR-sampled, fewChanges)
		}
	}
	if c.needsRuntime() == p.DropIn && p.Request.Format == "" { // older versions called a new format drop-in
		return nil, fmt.Errorf("the plan says \"drop_in\": %v, but its steps say the opposite", p.DropIn)
	}
	return c, c.wholeFolds()
}

// needsRuntime reports whether only a changed runtime can use the result.
func (c *claims) needsRuntime() bool {
	for _, steps := range c.steps {
		if slices.ContainsFunc(steps, func(s claimed) bool { return s.NeedsRuntime }) {
			return true
		}
	}
	return false
}

// sameFamily returns an error if the plan was made for another family than the source's.
func sameFamily(p *plan.Plan, layout *arch.Layout) error {
	was := p.Model.Family
	switch {
	case layout == nil && was == "", layout != nil && was == layout.Family:
		return nil
	case layout == nil:
		return fmt.Errorf("it was made for family %s, and the source's family is not known: give the family that the plan was made with", was)
	case was == "":
		return fmt.Errorf("it was made without a family, and the source's family is %s: give no family, or convert again", layout.Family)
	}
	return fmt.Errorf("it was made for family %s, and the source's family is %s: give the family that the plan was made with", was, layout.Family)
}

// tensorStep adds a step on a tensor. It returns an error if the pass has another step on the tensor, or if the step
// is not possible.
func (c *claims) tensorStep(s *plan.Step, check *Check) error {
	q, coded := c.quantised.Weight(s.Tensor)
	if made := c.madeOf(s.Tensor); made != nil {
		q, coded = made, true
	}
	coded = coded && q.CanRead() == nil
	if t, ok := c.src.Tensor(s.Tensor); !coded && (!ok || ofAdapter(c.src, t)) {
		return errors.New("the source has no such tensor")
	}
	if f, role, ok := c.quantised.Tensor(s.Tensor); ok && !coded {
		return fmt.Errorf("is a part (%s) of a quantised layer (%s): no step may change this tensor", role, f)
	}
	for _, other := range c.steps[s.Tensor] {
		if other.pass == s.Pass {
			return errors.New("has two steps of this pass")
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

// foldsAlone returns an error if an adapter also changes a tensor of the fold, or if a tensor unknown to the family
// may depend on it. Such a tensor would have to be part of the fold.
func (c *claims) foldsAlone(tensor string, f *Fold) error {
	if f == nil || c.layout == nil {
		return nil
	}
	adapter := c.layout.Adapter
	if adapter != nil && adapter.Problem != "" {
		return fmt.Errorf("the adapter cannot be converted: %s", adapter.Problem)
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

// ofAdapter reports whether a tensor belongs to the adapter.
func ofAdapter(m *weights.Model, t weights.Tensor) bool {
	return m.Adapter != nil && t.File == m.Adapter.Path
}

// symmetry adds an exact step. It returns an error if the family does not allow the step on its index.
func (c *claims) symmetry(s Symmetry, ix *arch.Index) error {
	if ix.Blocked != "" {
		return errors.New(ix.Blocked)
	}
	if s.Order != nil {
		seen := make([]bool, ix.Len)
		for _, label := range s.Order {
			if label < 0 || label >= ix.Len || seen[label] {
				return errors.New("its order is not a permutation")
			}
			seen[label] = true
		}
		if !ix.Permute || len(s.Order) != ix.Len {
			return errors.New("the family does not allow this order")
		}
		c.perm[ix.Name] = s.Order
	}
	if s.Flip != nil {
		c.flip[ix.Name] = make([]bool, ix.Len)
		for _, label := range s.Flip {
			if label < 0 || label >= ix.Len || !ix.Sign {
				return errors.New("the family does not allow these signs")
			}
			c.flip[ix.Name][label] = true
		}
	}
	if s.Exponents != nil {
		if len(s.Exponents) != ix.Len || !ix.Scale {
			return errors.New("the family does not allow these exponents")
		}
		c.exp[ix.Name] = s.Exponents
	}
	return nil
}

// image returns the claimed relation of a weight to its source after the exact steps. claimed is false if there are
// no such steps.
func (c *claims) image(name string) (im image, claimed bool) {
	if c.layout == nil || c.layout.Claims[name] == nil {
		return im, false
	}
	var row, col line
	switch axes := c.layout.Claims[name].Axes; len(axes) {
	case 0:
		return im, false
	case 1:
		row = c.line(axes[0])
	default:
		row, col = c.rows(axes[:len(axes)-1]), c.line(axes[len(axes)-1])
	}
	return image{row.from, col.from, row.flip, col.flip, row.exp, col.exp}, row.moves() || col.moves()
}

// look compares the output's tensor b with its source a and with the claims.
func (c *claims) look(ctx context.Context, a, b weights.Tensor) (Tensor, error) {
	t := Tensor{Name: a.Name, DType: a.DType.String(), Shape: a.Shape}
	format, role, isQuantised := c.quantised.Tensor(a.Name)
	if isQuantised && role != quant.Codes {
		t.Part = role
	}
	t.Linear = c.layout.IsLinear(a.Info) && !isQuantised && !ofAdapter(c.src, a)
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
	same := bytes.Equal(weights.Need(a.Data), weights.Need(b.Data))
	if q := c.changed(a.Name); q != nil {
		return t, c.lookCodes(ctx, &t, q, role, same)
	}
	if isQuantised && same && role == quant.Codes && c.reference != nil {
		err := c.lookKept(ctx, &t)
		return t, err
	}
	if isQuantised {
		if t.Class = Untouched; !same {
			t.Class, t.Problem = Lossy, fmt.Sprintf("differs from the source, and holds %s of a quantised weight (%s), which must be copied", role, format)
		}
		return t, nil
	}
	claimed, moved := c.image(a.Name)
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
			t.Class, t.Problem = Lossy, fmt.Sprintf("is not the claimed permutation of the source's tensor, and no pass changes values of type %s", a.DType)
		}
	case c.folded(a.Name) != nil:
		err = c.lookFolded(ctx, &t, p, c.folded(a.Name))
	default:
		err = c.lookImage(ctx, &t, p)
	}
	if same { // the claimed steps may change no bytes
		t.Class, t.Relation = unchanged, nil
	}
	return t, err
}

// changed returns the quantised weight that a tensor belongs to, if steps change it; else nil.
func (c *claims) changed(tensor string) *quant.Quantised {
	q, ok := c.quantised.WeightOf(tensor)
	if !ok {
		return nil
	}
	if _, moved := c.image(q.Name); !moved && len(c.steps[q.Name]) == 0 {
		return nil
	}
	return q
}

func newPair(a, b weights.Tensor, f weights.Format) *pair {
	p := &pair{a: a, b: b, f: f}
	p.rows, p.cols = a.Matrix()
	return p
}

// folded returns the claim of a tensor that was shifted or is part of a fold; nil for other tensors.
func (c *claims) folded(name string) *Fold {
	for _, s := range c.steps[name] {
		if s.Fold != nil {
			return s.Fold
		}
	}
	return nil
}

// lookImage determines the tensor's relation to its source and compares every element.
func (c *claims) lookImage(ctx context.Context, t *Tensor, p *pair) error {
	claimed, hasClaim := c.image(p.a.Name)
	d, err := p.compare(ctx, &claimed, nil, 0, c.tolerance(p))
	if err != nil {
		return err
	}
	im, source := claimed, "claimed"
	// Otherwise the values are at their old places, or a search would not be conclusive: see search.
	if hasClaim || len(c.steps[t.Name]) == 0 && d.noise > d.signal/100 {
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

// search searches the data for an image of the source. If the found image fits better than the claimed one, search
// returns it and sets under to its difference. It returns the claimed image in three cases: the data are not
// conclusive; both images fit equally well because values coincide; lossy steps are claimed.
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
		t.Problem = "the order, signs or exponents differ from those in the manifest"
	}
	*under = d
	return im, "found", nil
}

// tolerance returns the distance by which the claimed steps may move values; nil if no step changes values.
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

// lookFolded compares a shifted or folded tensor with values recomputed by the fold's arithmetic.
func (c *claims) lookFolded(ctx context.Context, t *Tensor, p *pair, s *Fold) error {
	t.Class = Compensated
	im, _ := c.image(p.a.Name)
	scale, err := c.foldedValues(ctx, p, s)
	if parallel.Ended(err) {
		return err
	}
	if err != nil {
		t.Problem = err.Error()
		return nil
	}
	if s.Fill != nil { // the norm's powers of two were folded too
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

// fill copies the results of a comparison into t.
func (t *Tensor) fill(p *pair, d difference) {
	t.SNR = decibels(d.signal, d.noise)
	t.NonFinite = d.nonFinite
	t.ZerosAdded = d.zerosAdded
	if d.changed > 0 {
		t.BitsZeroed = max(0, p.zeroBits(p.b)-p.zeroBits(p.a))
	}
}

// holdClaims compares the results with the claims, and sets the tensor's problem.
func (c *claims) holdClaims(ctx context.Context, t *Tensor, p *pair, d difference, moved bool) error {
	bad := func(format string, args ...any) {
		if t.Problem == "" {
			t.Problem = fmt.Sprintf(format, args...)
		}
	}
	if d.spread > 0 {
		bad("%s NaN or infinite in only one of the models, or NaN with other bits", valuesAre(d.spread))
	}
	if c.plan == nil {
		return nil
	}
	steps := c.steps[t.Name]
	if len(steps) == 0 && d.changed > 0 {
		bad("values changed (%d), and the manifest has no step that changes values of this tensor", d.changed)
	}
	if len(steps) == 0 && !moved {
		bad("changed, and the manifest has no step for this tensor")
	}
	for _, s := range steps {
		if s.Holds == nil {
			continue
		}
		im, _ := c.image(p.a.Name)
		err := s.Holds(ctx, &Result{p.f, p.rows, p.cols, c.layout.OutAxis(p.a.Name), p, im})
		if parallel.Ended(err) {
			return err
		}
		if err != nil {
			bad("%s: %v", s.pass, err)
		}
	}
	if d.wrong != "" {
		bad("%s", d.wrong)
	}
	const tolerance = 0.01 // in dB; sums are in another order
	if want, ok := c.snr[t.Name]; ok && t.SNR != nil && *t.SNR < want-tolerance {
		bad("the output SNR is %s, and the manifest claims %s", inDecibels(*t.SNR), inDecibels(want))
	}
	if least := c.plan.Request.MinSNR; least != nil && t.Linear && t.SNR != nil && *t.SNR < *least-tolerance && !slices.ContainsFunc(steps, func(s claimed) bool { return s.Anywhere }) {
		bad("the output SNR is %s, and the budget requires at least %s", inDecibels(*t.SNR), inDecibels(*least))
	}
	return ctx.Err()
}
