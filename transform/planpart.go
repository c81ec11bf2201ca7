package transform

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/transform/apply"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/search"
	"github.com/lowtoggle/lowtoggle/weights"
)

// planPart selects the layers of a planner, and holds the decisions of other parts. The zero value is a whole plan.
type planPart struct {
	only apply.Part               // part that the planner decides or measures; Of is 0: all layers
	made *plan.Partial            // decisions of the planner; nil: it makes a whole plan, or measures its layers
	all  map[string]*plan.Partial // decisions about every layer, by name; nil: the planner decides
	at   map[string]int           // index of each layer in its part
	head *plan.Partial            // any one of the parts
	// measured counts the layers that the planner measures for a search; nil: the planner distributes the budget of
	// loss.
	measured *int
}

// ErrBudgetInParts is the error for a part of a plan with a budget of loss. Such a budget is distributed over all
// layers together.
var ErrBudgetInParts = errors.New("PlanPart cannot distribute a budget of loss, which needs all layers together: measure every part by SearchPart, then call Plan")

// PlanPart decides one part of the layers. Parts are independent and may be made on different machines, in any order.
// [MergePlan] makes the plan from all parts. Passes that plan the whole model run in every part. A budget of loss is
// an [ErrBudgetInParts].
func PlanPart(ctx context.Context, m *weights.Model, o Options, part apply.Part) (*plan.Partial, error) {
	if ctx == nil {
		return nil, parallel.ErrNoContext
	}
	if err := part.Check(); err != nil {
		return nil, err
	}
	if o.Budget.MaxLoss != nil {
		return nil, ErrBudgetInParts
	}
	o.part = planPart{only: part, made: &plan.Partial{Version: plan.PartialVersion, Tool: o.Version, Number: part.Number, Of: part.Of}}
	p, err := Plan(ctx, m, o)
	if err != nil {
		return nil, fmt.Errorf("part %v: %w", part, err)
	}
	o.part.made.Model = p.Model
	o.part.made.Options, err = optionsDigest(&o, p)
	return o.part.made, err
}

// MergePlan makes the plan from all parts. The plan's bytes are those of [Plan] with the same options. MergePlan
// reads only samples of the weights, to identify the model. If parts are missing, or are of another model or other
// options, the error names them.
func MergePlan(ctx context.Context, m *weights.Model, o Options, parts []*plan.Partial) (*plan.Plan, error) {
	if ctx == nil {
		return nil, parallel.ErrNoContext
	}
	if err := checkPlanParts(parts); err != nil {
		return nil, err
	}
	o.part = planPart{head: parts[0], all: map[string]*plan.Partial{}, at: map[string]int{}}
	for _, part := range parts {
		for i, d := range part.Layers {
			if o.part.all[d.Prediction.Tensor] != nil {
				return nil, fmt.Errorf("%w: layer %q is in part %d/%d and in another part: make the parts again", plan.ErrInvalid, d.Prediction.Tensor, part.Number, part.Of)
			}
			o.part.all[d.Prediction.Tensor], o.part.at[d.Prediction.Tensor] = part, i
		}
	}
	p, err := Plan(ctx, m, o)
	if err != nil {
		return nil, err
	}
	if p.Model != parts[0].Model {
		return nil, fmt.Errorf("%w: the parts were made for another model than %s: give that model, or make the parts again", plan.ErrInvalid, m.Dir)
	}
	digest, err := optionsDigest(&o, p)
	if err == nil && digest != parts[0].Options {
		err = fmt.Errorf("%w: the parts were made with other options: give the options of the parts, or make the parts again", plan.ErrInvalid)
	}
	return p, err
}

// checkPlanParts compares the parts with each other.
func checkPlanParts(parts []*plan.Partial) error {
	if len(parts) == 0 {
		return fmt.Errorf("%w: there are no parts: give all parts of the plan", plan.ErrInvalid)
	}
	if i := slices.Index(parts, nil); i >= 0 {
		return fmt.Errorf("%w: parts[%d] is nil: give all %d parts", plan.ErrInvalid, i, len(parts))
	}
	head := parts[0]
	if err := (apply.Part{Number: 1, Of: head.Of}).Check(); err != nil {
		return fmt.Errorf("%w: %w", plan.ErrInvalid, err)
	}
	have := make([]bool, head.Of)
	whole, err := json.Marshal(head.Whole)
	if err != nil {
		return err
	}
	for _, p := range parts {
		other := ""
		steps, err := json.Marshal(p.Whole)
		switch {
		case err != nil:
			return err
		case p.Of != head.Of:
			return fmt.Errorf("%w: part %d/%d and part %d/%d have different numbers of parts: give only parts with the same number of parts",
				plan.ErrInvalid, p.Number, p.Of, head.Number, head.Of)
		case p.Number < 1 || p.Number > head.Of:
			return fmt.Errorf("%w: part %d/%d has a number outside 1 to %[3]d: make it again", plan.ErrInvalid, p.Number, p.Of)
		case have[p.Number-1]:
			return fmt.Errorf("%w: part %d/%d is given twice: give each part once", plan.ErrInvalid, p.Number, p.Of)
		case p.Tool != head.Tool:
			other = "by different versions of lowtoggle"
		case p.Model != head.Model:
			other = "for different models"
		case p.Options != head.Options:
			other = "with different options"
		case !bytes.Equal(steps, whole) || !slices.Equal(p.Notes, head.Notes):
			other = "with different steps for the whole model"
		}
		if other != "" {
			return fmt.Errorf("%w: part %d/%d and part %d/%d were made %s: make all parts with the same model, options and version", plan.ErrInvalid, p.Number, p.Of, head.Number, head.Of, other)
		}
		have[p.Number-1] = true
	}
	if i := slices.Index(have, false); i >= 0 {
		return fmt.Errorf("%w: part %d/%d is missing: make it, then merge again", plan.ErrInvalid, i+1, head.Of)
	}
	return nil
}

// optionsDigest returns the SHA-256 of a plan's inputs besides the model.
func optionsDigest(o *Options, p *plan.Plan) (string, error) {
	js, err := json.Marshal([]any{p.Request, o.Budget, o.Cost, o.KeepRouters, p.Model.Family})
	sum := sha256.Sum256(js)
	return hex.EncodeToString(sum[:]), err
}

// wholeSteps returns the steps of a pass that plans the whole model. known is false if there are no parts with these
// steps.
func (p *planner) wholeSteps(name string) (steps []*plan.Step, known bool) {
	if p.opt.part.head == nil {
		return nil, false
	}
	for _, s := range p.opt.part.head.Whole {
		if s.Pass == name {
			steps = append(steps, s)
		}
	}
	return steps, true
}

// keepWhole records the decisions of passes that plan the whole model, and adds the notes of parts.
func (p *planner) keepWhole(notes int) {
	if made := p.opt.part.made; made != nil {
		made.Whole, made.Notes = slices.Clone(p.plan.Steps), slices.Clone(p.plan.Notes[notes:])
	}
	if head := p.opt.part.head; head != nil {
		p.plan.Notes = append(p.plan.Notes, head.Notes...)
	}
}

// ownLayers returns the indices of the layers that the planner decides or measures.
func (p *planner) ownLayers(layers []*pass.Layer) (own []int) {
	var sizes []int64
	for i, l := range layers {
		own = append(own, i)
		sizes = append(sizes, int64(l.Rows())*int64(l.Cols()))
	}
	if p.opt.part.all != nil {
		return nil
	}
	if only := p.opt.part.only; only.Of > 0 {
		of := apply.Divide(sizes, only.Of)
		own = slices.DeleteFunc(own, func(i int) bool { return of[i] != only.Number })
	}
	return own
}

// decide returns the steps and the prediction of every layer, from the planner or from the parts.
func (p *planner) decide(ctx context.Context, layers []*pass.Layer, lossy []pass.Choice) (steps [][]*plan.Step, predictions []plan.Prediction, err error) {
	steps, predictions = make([][]*plan.Step, len(layers)), make([]plan.Prediction, len(layers))
	own := p.ownLayers(layers)
	err = p.model.Parallel(ctx, "plan", len(own), len(own), func(ctx context.Context, n int) (err error) {
		i, passes := own[n], lossy
		if p.stays(layers[i].Weight) {
			passes = nil
		}
		err = layers[i].Guard(func() (err error) {
			steps[i], predictions[i], err = search.Choose(ctx, layers[i], passes)
			return err
		})
		if passes == nil {
			predictions[i].Missed = ""
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	if made := p.opt.part.made; made != nil {
		for _, i := range own {
			made.Layers = append(made.Layers, plan.Decision{Prediction: predictions[i], Steps: steps[i]})
		}
	}
	if p.opt.part.all != nil {
		for i, l := range layers {
			part := p.opt.part.all[l.Weight.Name]
			if part == nil {
				return nil, nil, fmt.Errorf("%w: no part has layer %q: make the parts again, with the same options", plan.ErrInvalid, l.Weight.Name)
			}
			d := part.Layers[p.opt.part.at[l.Weight.Name]]
			steps[i], predictions[i] = d.Steps, d.Prediction
		}
	}
	return steps, predictions, nil
}
