package transform

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/search"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// Plan decides which steps the passes take for a model, and returns the plan. It reads the model and writes nothing.
// The plan is the same for any number of workers. A request that does not fit a layer's budget is not an error: the
// layer's prediction names it in Missed.
func Plan(ctx context.Context, m *weights.Model, o Options) (*plan.Plan, error) {
	if ctx == nil {
		return nil, parallel.ErrNoContext
	}
	s, err := openSource(m, o.Family, o.Tokens, o.count, o.Format, o.Selection)
	if err != nil {
		return nil, err
	}
	if err := s.useReference(o.Reference); err != nil {
		return nil, err
	}
	p, err := makePlan(ctx, s, o)
	return p, errors.Join(err, o.Tokens.releaseRounder())
}

// FormatBaseline names the baseline of predicted energies if a plan stores the weights in another format.
const FormatBaseline = "the nearest codes, with scales from the largest magnitudes (absmax)"

func familyDigest(f *arch.Family) string {
	if f == nil {
		return ""
	}
	return f.Digest
}

// planner is the state of a plan in progress.
type planner struct {
	*source
	opt   Options
	plan  *plan.Plan
	model *pass.Model
}

func makePlan(ctx context.Context, s *source, o Options) (made *plan.Plan, err error) {
	if o.Table == nil {
		o.Table = Passes
	}
	o.Workers = parallel.Workers(o.Workers)
	if err := errors.Join(o.Table.Validate(), o.Validate()); err != nil {
		return nil, err
	}
	if o.Tokens != nil {
		defer func() { err = errors.Join(err, o.Tokens.release()) }()
	}
	doubt, err := useTokens(ctx, s, &o)
	if err != nil {
		return nil, err
	}
	if o.Workload == (cost.Workload{}) {
		o.Workload.Prefill = 1
	}
	p := &planner{source: s, opt: o}
	p.plan = &plan.Plan{Version: plan.Version, Tool: o.Version, DropIn: true, Model: s.fingerprint,
		Request: plan.Request{MinSNR: o.Budget.MinSNR, MaxLoss: o.Budget.MaxLoss, Workload: o.Workload, Role: o.Role, Seed: o.Seed,
			SearchSeconds: o.Search.Time.Seconds(), Arch: familyDigest(o.Family), Selection: o.Selection, TrustFamily: o.TrustFamily && arch.CustomCode(s.Config) != ""}}
	if o.Hessians != nil && UsesHessians(o.Passes) {
		p.plan.Request.Hessians, s.hessians = o.Hessians.Key(), o.Hessians
	}
	if t := o.Tokens; t != nil && t.Device != nil && o.Hessians != nil {
		p.plan.Request.Device = t.device()
		if h, ok := s.hessians.(hessians); ok {
			p.plan.Request.Statistics = h.fit.Digest()
		}
	}
	p.plan.Request.Reference = s.referenceKey
	if s.target != nil {
		if err := s.target.Check(ctx, s.Model, o.Workers); err != nil {
			return nil, err
		}
		p.plan.Request.Format = s.target.Format.String()
		p.note("the result has %s, which a runtime must support; energies are relative to %s", s.quantised.Formats(), FormatBaseline)
		p.noteFit()
	}
	for _, c := range o.Passes {
		p.plan.Request.Passes = append(p.plan.Request.Passes, c.String())
	}
	p.model = &pass.Model{Dir: s.Dir, Weights: s.weights, Note: p.note, Progress: o.Progress,
		Context: &pass.Context{Workload: o.Workload, Role: o.Role, Budget: o.Budget, Cost: o.Cost, Hessians: o.Hessians, Choices: o.Passes, Workers: o.Workers}}
	if o.Tokens != nil && o.Tokens.Device != nil {
		p.model.SampleFrom = sampleFrom
		s.results.Widen(resultRoom())
	}
	if err := errors.Join(p.useFamily(), p.leaveAlone(), p.compile()); err != nil {
		return nil, err
	}
	if _, err := s.FileSize(plan.ManifestName); err == nil && !s.Single {
		p.note("the source is itself a converted model: losses are relative to this source, and do not include the loss of the earlier conversion")
	}
	if doubt != "" {
		p.note("%s", doubt)
	}
	if err := p.planModel(ctx); err != nil {
		return nil, err
	}
	if err := p.planLayers(ctx); err != nil {
		return nil, err
	}
	if p.opt.part.made != nil || p.opt.part.measured != nil {
		return p.plan, ctx.Err()
	}
	if err := p.complete(p.plan); err != nil {
		return nil, err
	}
	p.noteAdapter()
	p.compiled = p.plan
	return p.plan, ctx.Err()
}

// useTokens sets the calibration statistics and the evaluator from the tokens, as far as the passes need them. doubt
// describes a suspicious property of the tokens; empty if there is none.
func useTokens(ctx context.Context, s *source, o *Options) (doubt string, err error) {
	spend := o.Budget.MaxLoss != nil
	if o.Tokens == nil || !spend && !UsesHessians(o.Passes) {
		return "", nil
	}
	t := o.Tokens
	t.count = s.count
	if o.Hessians, err = t.hessians(ctx, spend, o.Workers, o.Progress); err != nil || !spend {
		return "", err
	}
	if o.Search, err = t.search(o); err != nil {
		return "", err
	}
	if o.Better == nil {
		o.Better = t.keepBest
	}
	return t.doubt(), nil
}

// planModel runs the exact and compensated passes, which plan the whole model.
func (p *planner) planModel(ctx context.Context) error {
	notes := len(p.plan.Notes)
	defer func() { p.keepWhole(notes) }()
	for _, c := range p.opt.Passes {
		if c.Pass.Plan == nil {
			continue
		}
		steps, known := p.wholeSteps(c.Pass.Name)
		if !known {
			err := weights.GuardOf(p.Dir, nil, func() (err error) {
				steps, err = c.Pass.Plan(ctx, p.model, c.Args)
				return err
			})
			if err != nil {
				return fmt.Errorf("%s: %w", c.Pass.Name, err)
			}
		}
		for _, s := range steps {
			s.Pass = c.Pass.Name
		}
		p.plan.Steps = append(p.plan.Steps, steps...)
		if err := p.compile(); err != nil {
			return err
		}
	}
	return nil
}

// planLayers runs the choice of lossy steps for every linear layer.
func (p *planner) planLayers(ctx context.Context) error {
	var lossy []pass.Choice
	for _, c := range p.opt.Passes {
		if c.Pass.Class == pass.Lossy {
			lossy = append(lossy, c)
		}
	}
	layers, err := p.layers(ctx)
	if err != nil {
		return err
	}
	if err := p.checkOrigin(ctx, layers); err != nil {
		return err
	}
	changed := p.changed(layers)
	p.noteCodes(changed, lossy)
	if err := fitsSome(changed, lossy); err != nil {
		return err
	}
	p.plan.Kernels = kernelsOf(layers, p.opt.Role, p.opt.Workload)
	if p.opt.Budget.MaxLoss != nil {
		return p.spend(ctx, layers, changed, lossy)
	}
	steps, predictions, err := p.decide(ctx, layers, lossy)
	if err != nil || p.opt.part.made != nil {
		return err
	}
	for i := range layers {
		p.plan.Steps = append(p.plan.Steps, steps[i]...)
		p.plan.Predictions = append(p.plan.Predictions, predictions[i])
	}
	p.noteKept(layers, lossy, steps, predictions)
	return nil
}

// kernelsOf describes the kernels that the layers' predictions assume.
func kernelsOf(layers []*pass.Layer, role cost.Role, load cost.Workload) []string {
	var list []cost.Multiplied
	for _, l := range layers {
		m := cost.Multiplied{Operand: l.Format.DType}
		if q := l.Codes(); q != nil {
			m.Format = &q.Format
		}
		list = append(list, m)
	}
	return cost.AssumedKernels(list, role, load)
}

// noteKept adds notes about requests that changed no codes and scales of quantised layers.
func (p *planner) noteKept(layers []*pass.Layer, lossy []pass.Choice, steps [][]*plan.Step, predictions []plan.Prediction) {
	for _, c := range lossy {
		count := map[string]int{}
		var formats []string // in the order of the layers
		for i, l := range layers {
			q := l.Codes()
			if q == nil || c.Fits(q) != "" || p.stays(l.Weight) || predictions[i].Missed != "" || len(missing([]pass.Choice{c}, steps[i])) == 0 {
				continue
			}
			f := q.Format.String()
			if count[f]++; count[f] == 1 {
				formats = append(formats, f)
			}
		}
		for _, f := range formats {
			p.note("%s changes no codes and no scales of %s in %s: give a coarser setting", c, amount(count[f], "weight", "weights"), f)
		}
	}
}

// noteFit adds notes about the group size of a new format and about layers that the format cannot store.
func (p *planner) noteFit() {
	made := p.target.Format
	if asked := p.opt.Format; made.Block != asked.Block {
		p.note("groups have %d inputs, because groups of %d would leave more layers unquantised; %s=GROUP sets another size", made.Block[1], asked.Block[1], asked.Name)
	}
	count, kinds := map[string]int{}, []string{}
	for _, name := range p.target.Left {
		kind := p.layout.Kind(name)
		if count[kind]++; count[kind] == 1 {
			kinds = append(kinds, kind)
		}
	}
	for i, kind := range kinds {
		kinds[i] = fmt.Sprintf("%d × %s", count[kind], kind)
	}
	if len(kinds) > 0 {
		p.note("%s unquantised, because the number of inputs is not a multiple of the group size %d: %s", amount(len(p.target.Left), "linear layer stays", "linear layers stay"), made.Block[1], strings.Join(kinds, ", "))
	}
}

// ErrArgument marks an argument of a pass that fits none of the model's weights.
var ErrArgument = errors.New("this argument of a pass fits no weight of the model")

// argumentError is an [ErrArgument] with its own text.
type argumentError struct{ error }

func (argumentError) Is(target error) bool { return target == ErrArgument }

// fitsSome returns an [ErrArgument] if a pass can change the codes of quantised layers, but its arguments fit none of
// them.
func fitsSome(layers []*pass.Layer, lossy []pass.Choice) error {
	for _, c := range lossy {
		var wrong error
		for _, l := range layers {
			q := l.Codes()
			if q == nil {
				continue
			}
			reason := c.Fits(q)
			if reason == "" {
				wrong = nil
				break
			}
			if (pass.Choice{Pass: c.Pass}).Fits(q) == "" {
				wrong = argumentError{fmt.Errorf("%s: weights in %s: %s; give an argument that fits, or no argument", c, q.Format, reason)}
			}
		}
		if wrong != nil {
			return wrong
		}
	}
	return nil
}

// noteCodes adds notes about passes that do not change quantised layers, with the reasons.
func (p *planner) noteCodes(layers []*pass.Layer, lossy []pass.Choice) {
	for _, c := range lossy {
		var texts []string // formats and reasons, in the order of the layers
		count := map[string]int{}
		for _, l := range layers {
			q := l.Codes()
			if q == nil {
				continue
			}
			if reason := c.Fits(q); reason != "" {
				text := fmt.Sprintf("in %s: %s", q.Format, reason)
				if count[text]++; count[text] == 1 {
					texts = append(texts, text)
				}
			}
		}
		for _, text := range texts {
			p.note("%s does nothing to %s %s", c.Pass.Name, amount(count[text], "weight", "weights"), text)
		}
		if c.Pass.CodesOnly && !slices.ContainsFunc(layers, func(l *pass.Layer) bool { return l.Codes() != nil }) {
			p.note("%s does nothing: it changes quantised weights only, and the model has none that can be read", c.Pass.Name)
		}
	}
}

// layers returns the layers for which the lossy passes choose.
func (p *planner) layers(ctx context.Context) ([]*pass.Layer, error) {
	fixed := plan.ByTensor(p.plan.Steps)
	var chosen []int
	for i, w := range p.weights.All {
		_, known := w.DType.Format()
		if w.Adapter || !known || w.Quantised == nil && p.quantised.Holds(w.Name) || !p.isLayer(w) || w.Rows*w.Cols == 0 {
			continue
		}
		h := p.opt.Hessians
		if h != nil && (p.opt.Budget.MaxLoss != nil || UsesHessians(p.opt.Passes)) && !h.Has(w.Name) {
			p.note("%s: no calibration token reaches this layer, so lossy passes do not change it", w.Name)
			continue
		}
		chosen = append(chosen, i)
	}
	layers := make([]*pass.Layer, len(chosen))
	return layers, parallel.Run(ctx, len(chosen), p.opt.Workers, func(ctx context.Context, i int) error {
		w := p.weights.All[chosen[i]]
		return weights.Guard(w.Parts[0].File, func() (err error) {
			layers[i], err = pass.NewLayer(ctx, p.model.Context, p.model.Compiler, w, fixed[w.Name])
			return err
		})
	})
}

// isLayer reports whether a weight belongs to a linear layer.
func (p *planner) isLayer(w *quant.Weight) bool {
	if l := p.model.Layout; l != nil && w.Quantised != nil {
		c := l.Claims[w.Name]
		return c != nil && c.Role == arch.Linear
	}
	return p.model.Layout.IsLinear(w.Info())
}

// spend runs the search that distributes the budget of loss over the changed layers. It then predicts every layer.
func (p *planner) spend(ctx context.Context, layers, changed []*pass.Layer, lossy []pass.Choice) error {
	fixed := p.plan.Steps
	o := p.opt.Search
	if p.opt.Better != nil {
		o.Better = func(steps [][]*plan.Step, found plan.Search) error {
			better := *p.plan
			better.Steps, better.Search = append(slices.Clone(fixed), flatten(steps)...), &found
			if err := p.complete(&better); err != nil {
				return err
			}
			return p.opt.Better(&better)
		}
	}
	if count := p.opt.part.measured; count != nil {
		own := p.ownLayers(changed)
		*count = len(own)
		return search.Measure(ctx, p.model, changed, lossy, o, own)
	}
	steps, found, err := search.Spend(ctx, p.model, changed, lossy, o)
	if err != nil {
		return err
	}
	p.plan.Search = found
	p.plan.Steps = append(p.plan.Steps, flatten(steps)...)
	if err := p.complete(p.plan); err != nil {
		return err
	}
	planned := plan.ByTensor(p.plan.Steps)
	predictions := make([]plan.Prediction, len(layers))
	err = p.model.Parallel(ctx, "predict", len(layers), len(layers), func(ctx context.Context, i int) (err error) {
		l := layers[i]
		steps := slices.DeleteFunc(slices.Clone(planned[l.Weight.Name]), func(s *plan.Step) bool { return slices.Contains(fixed, s) })
		err = l.Guard(func() (err error) {
			predictions[i], err = search.Predict(ctx, l, steps)
			return err
		})
		fitting := slices.DeleteFunc(slices.Clone(lossy), func(c pass.Choice) bool { return !changes(c, l) || p.stays(l.Weight) })
		if missed := missing(fitting, steps); len(missed) > 0 {
			predictions[i].Missed = strings.Join(missed, ", ") + " would use more than the layer's share of the loss budget"
		}
		return err
	})
	p.plan.Predictions = append(p.plan.Predictions, predictions...)
	return err
}

// changes reports whether a pass can change a layer, given how the layer's weight is stored.
func changes(c pass.Choice, l *pass.Layer) bool {
	if q := l.Codes(); q != nil {
		return c.Fits(q) == ""
	}
	return !c.Pass.CodesOnly
}

// missing returns the passes with arguments that none of a layer's steps carries out. A modifier without anything to
// modify is not missing.
func missing(lossy []pass.Choice, steps []*plan.Step) (missed []string) {
	for _, c := range lossy {
		if c.Chosen() && len(c.Args) > 0 && !slices.ContainsFunc(steps, func(s *plan.Step) bool { return s.Pass == c.Pass.Name }) {
			missed = append(missed, c.String())
		}
	}
	return missed
}

func flatten(lists [][]*plan.Step) (all []*plan.Step) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// complete adds steps that follow from a plan's steps, and sorts all steps into the table's order.
func (p *planner) complete(to *plan.Plan) (err error) {
	for _, r := range p.opt.Table {
		if r.Pass.Complete == nil {
			continue
		}
		if to.Steps, err = r.Pass.Complete(p.model, to.Steps); err != nil {
			return fmt.Errorf("%s: %w", r.Pass.Name, err)
		}
	}
	slices.SortStableFunc(to.Steps, func(a, b *plan.Step) int { return p.opt.Table.rank(a.Pass) - p.opt.Table.rank(b.Pass) })
	to.DropIn = p.opt.Table.dropIn(to)
	changed := map[string]bool{}
	for name := range plan.ByTensor(to.Steps) {
		changed[name] = true
	}
	if p.target == nil {
		moved := p.addMoved(changed)
		to.Quantised = p.quantised.CopiedBut(changed, moved)
	}
	return nil
}

// addMoved adds the quantised weights that exact steps move to the changed weights, and returns them.
func (p *planner) addMoved(changed map[string]bool) (moved map[string]bool) {
	moved = map[string]bool{}
	for _, w := range p.weights.All {
		if p.layout == nil || w.Quantised == nil || p.layout.Claims[w.Name] == nil {
			continue
		}
		if row, col := p.compiler.Symmetries().Matrix(p.layout.Claims[w.Name]); !row.IsIdentity() || !col.IsIdentity() {
			moved[w.Name], changed[w.Name] = true, true
		}
	}
	return moved
}

// compile updates the compiler with the plan's steps.
func (p *planner) compile() (err error) {
	p.compiler, err = p.source.compile(p.model.Layout, p.opt.Hessians, p.opt.Table, p.plan.Steps)
	p.model.Compiler = p.compiler
	return err
}

// amount formats n with a noun. The noun is one if n is 1, and many otherwise.
func amount(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func (p *planner) note(format string, args ...any) {
	p.plan.Notes = append(p.plan.Notes, fmt.Sprintf(format, args...))
}

// useFamily sets the model's layout. A config.json that cannot be read is an error, and so is a given family that
// does not fit. Otherwise a missing layout is an error for passes that need one, and a note for other passes.
func (p *planner) useFamily() error {
	needed := slices.IndexFunc(p.opt.Passes, func(c pass.Choice) bool { return c.Pass.NeedsFamily })
	const allCount = "every matrix counts as a linear layer, unless its name is that of an embedding"
	switch err := p.unresolved; {
	case p.unknown() && needed >= 0:
		return fmt.Errorf("%s needs to know the model's family: %w", p.opt.Passes[needed].Pass.Name, err)
	case p.unknown():
		p.note("the family is not known (%v): %s", err, allCount)
		return nil
	case err != nil && (p.opt.Family != nil || errors.Is(err, arch.ErrConfig)):
		return err
	case err != nil && needed >= 0:
		return fmt.Errorf("%s needs a model that fits its family: %w", p.opt.Passes[needed].Pass.Name, err)
	case err != nil:
		first, _, more := strings.Cut(err.Error(), "\n")
		if more {
			first += ", and more problems"
		}
		p.note("%s: %s", first, allCount)
		return nil
	}
	p.model.Layout = p.layout
	p.plan.Model.Family = p.layout.Family
	for _, s := range p.layout.UnclaimedGroups() {
		p.note("%s: not part of the family %s: left unchanged", s, p.layout.Family)
	}
	if needed < 0 {
		return nil
	}
	if !slices.ContainsFunc(p.opt.Passes, func(c pass.Choice) bool { return c.Pass.Class != pass.Lossy }) {
		return nil
	}
	for _, b := range p.layout.BlockedIndices() {
		p.note("%s", b)
	}
	return checkAdapters(p.Model, p.layout)
}

// noteAdapter adds a note about the adapter beside the model.
func (p *planner) noteAdapter() {
	if p.Adapter == nil {
		return
	}
	n := len(p.Adapter.Tensors)
	switch reason := leftBehind(p.Model, p.model.Layout); {
	case p.opt.Table.Moves(p.plan):
		p.note("the adapter %s (%d tensors) is converted along with its base", weights.AdapterName, n)
	case reason != "":
		p.note("%s; the plan moves and scales no weights, so adapters still fit", reason)
	default:
		p.note("the adapter %s (%d tensors) is copied unchanged", weights.AdapterName, n)
	}
}
