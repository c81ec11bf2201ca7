package transform

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/internal/progress"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// Cost predicts the energy of a product from a sample of its weights, relative to random data of
// the same scale. It is called from several goroutines and keeps nothing of the sample.
type Cost interface {
	Energy(ctx context.Context, w cost.Weights, role cost.Role, l cost.Workload) (cost.Estimate, error)
}

// Options are what a plan is made with.
type Options struct {
	Passes []Choice // in the table's order, as ParsePasses returns them
	MinSNR *float64 // lowest output signal-to-noise ratio of a layer, dB; nil: no budget
	// MaxLoss is by how many nats per token the whole model's outputs may diverge: ln(1+s) where
	// perplexity may rise by a share s. The search spends it where it saves most; nil: MinSNR is all.
	MaxLoss  *float64
	Search   *Search       // needed with MaxLoss
	Workload cost.Workload // default: prefill
	Role     cost.Role     // default: stationary
	Seed     uint64        // recorded for passes that draw; default 0
	Cost     Cost          // required
	Inputs   Inputs        // what layers are fed with; nil: not known, errors of all inputs count alike
	Family   *arch.Family  // nil: the catalogue's, by config.json
	Workers  int           // goroutines; default: all processors
	Version  string        // of the program, for the record
	Progress func(Event)   // nil: none; called from several goroutines
}

// Event is progress: Done of Total bytes or items of the named stage; a Total of 0 is not known.
type Event = progress.Event

// Validate lists everything that is wrong with the options.
func (o *Options) Validate() error {
	var errs []error
	if o.Cost == nil {
		errs = append(errs, errors.New("no cost model"))
	}
	if o.MinSNR != nil && !(*o.MinSNR >= 0 && *o.MinSNR <= 200) {
		errs = append(errs, fmt.Errorf("a lowest signal-to-noise ratio of %g dB is not within 0 and 200", *o.MinSNR))
	}
	if o.MaxLoss != nil && !(*o.MaxLoss > 0 && *o.MaxLoss < 10) {
		errs = append(errs, fmt.Errorf("a loss of %g nats is not above 0 and below 10", *o.MaxLoss))
	}
	if o.MaxLoss != nil && o.MinSNR != nil {
		errs = append(errs, errors.New("a budget is of loss or of signal-to-noise, not both"))
	}
	if o.MaxLoss != nil && (o.Search == nil || o.Search.Judge == nil || o.Inputs == nil) {
		errs = append(errs, errors.New("a budget of loss needs tokens to judge by (--tokens FILE)"))
	}
	if o.MaxLoss != nil && !slices.ContainsFunc(o.Passes, func(c Choice) bool { return c.Pass.Class == Lossy && !c.Pass.modifies }) {
		errs = append(errs, errors.New("a budget of loss needs a pass that can spend it, such as "+searched))
	}
	errs = append(errs, o.combinations()...)
	for _, c := range o.Passes {
		if c.Pass.Class == Lossy && !c.Pass.modifies && len(c.Args) == 0 && o.MinSNR == nil && o.MaxLoss == nil {
			errs = append(errs, fmt.Errorf("%s needs an argument (%s) or a budget to choose by (--min-snr, or --max-loss with --tokens)", c.Pass.Name, c.Pass.Usage))
		}
		if c.Pass == prunePass && len(c.Args) == 0 && o.MinSNR != nil {
			errs = append(errs, errors.New("prune chooses its share for a budget of loss alone (--max-loss): name one, such as prune=0.1"))
		}
		if c.Pass.NeedsInputs && o.Inputs == nil {
			errs = append(errs, fmt.Errorf("%s weighs errors by what layers are fed with: give tokens (--tokens FILE)", c.Pass.Name))
		}
	}
	return errors.Join(errs...)
}

// combinations lists passes that do not go together.
func (o *Options) combinations() (errs []error) {
	asked := map[*Pass]bool{} // and whether without an argument
	var fixed string
	for _, c := range o.Passes {
		asked[c.Pass] = len(c.Args) == 0
		if c.Pass.Class == Lossy && !c.Pass.modifies && len(c.Args) > 0 {
			fixed = c.String()
		}
	}
	has := func(p *Pass) bool { _, ok := asked[p]; return ok }
	if has(shiftPass) && (has(prunePass) || has(trellisPass) || has(compensatePass)) {
		errs = append(errs, fmt.Errorf("%w: a shifted layer is not chosen as a whole: leave out shift, or prune, trellis and compensate", ErrPlan))
	}
	if o.MaxLoss == nil {
		return errs
	}
	if asked[prunePass] && !(asked[trellisPass] && has(compensatePass)) {
		errs = append(errs, errors.New("the search prunes only beside a trellis whose lambda it chooses, with compensate: ask for prune,trellis,compensate"))
	}
	if asked[trellisPass] && fixed != "" {
		errs = append(errs, fmt.Errorf("the search does not try %s with every lambda of the trellis: name the lambda (trellis=0.01), or leave out %s", fixed, fixed))
	}
	return errs
}

// planner is the state of one Make.
type planner struct {
	ctx    context.Context
	model  *weights.Model
	layout *arch.Layout // nil where the family is not known
	opt    Options
	plan   *Plan
	pass   *Pass // the one being planned
	// compiler holds the symmetries of the exact steps planned so far.
	compiler *compiler
	streamed *sync.Map // streamed → whether such outputs stream
}

func newPlanner(ctx context.Context, m *weights.Model, o Options) *planner {
	return &planner{ctx: ctx, model: m, opt: o, streamed: new(sync.Map)}
}

// Make decides what the passes do to a model and returns the plan. It reads the model and writes
// nothing. The plan is the same for any number of workers. Where the request did not fit the
// budget somewhere, the plan's outlook says so (Missed); that is no error.
func Make(ctx context.Context, m *weights.Model, o Options) (*Plan, error) {
	if err := errors.Join(Validate(), o.Validate()); err != nil {
		return nil, err
	}
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if o.Workload == (cost.Workload{}) {
		o.Workload.Prefill = 1
	}
	if err := isAdapter(m); err != nil {
		return nil, err
	}
	fp, err := Fingerprint(m)
	if err != nil {
		return nil, err
	}
	p := newPlanner(ctx, m, o)
	p.plan = &Plan{Version: PlanVersion, Tool: o.Version, DropIn: true, Model: fp,
		Request: Request{MinSNR: o.MinSNR, MaxLoss: o.MaxLoss, Workload: o.Workload, Role: o.Role, Seed: o.Seed}}
	if o.Inputs != nil && UsesInputs(o.Passes) {
		p.plan.Request.Inputs = o.Inputs.Key()
	}
	for _, c := range o.Passes {
		p.plan.Request.Passes = append(p.plan.Request.Passes, c.String())
	}
	if err := errors.Join(p.resolve(), p.compile()); err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(m.Dir, ManifestName)); err == nil && m.Others != nil {
		p.note("the source has been converted before: what was lost then is not counted here")
	}
	for _, c := range o.Passes {
		if c.Pass.plan == nil {
			continue
		}
		p.pass = c.Pass
		if err := weights.Guard(m.Dir, func() error { return c.Pass.plan(ctx, p, c.Args) }); err != nil {
			return nil, fmt.Errorf("%s: %w", c.Pass.Name, err)
		}
		if err := p.mergeExact(); err != nil {
			return nil, err
		}
	}
	if err := p.planTensors(); err != nil {
		return nil, err
	}
	if err := p.complete(); err != nil {
		return nil, err
	}
	p.noteAdapter()
	return p.plan, ctx.Err()
}

// complete adds what follows from a plan's steps, and brings them into order.
func (p *planner) complete() error {
	if err := p.pruneUnread(); err != nil {
		return err
	}
	slices.SortStableFunc(p.plan.Steps, func(a, b *Step) int { return passRank(a.Pass) - passRank(b.Pass) })
	for _, s := range p.plan.Steps {
		p.plan.DropIn = p.plan.DropIn && (s.Shift == nil || !s.Shift.Epilogue)
	}
	return nil
}

func (p *planner) note(format string, args ...any) {
	p.plan.Notes = append(p.plan.Notes, fmt.Sprintf(format, args...))
}

// add appends steps of the pass being planned.
func (p *planner) add(steps ...*Step) {
	for _, s := range steps {
		s.Pass = p.pass.Name
		p.plan.Steps = append(p.plan.Steps, s)
	}
}

func (p *planner) event(stage string, done, total int) {
	if p.opt.Progress != nil {
		p.opt.Progress(Event{Stage: stage, Done: int64(done), Total: int64(total)})
	}
}

// eachIndex plans the free indices that want chooses, several at a time, and adds their steps in
// the layout's order.
func (p *planner) eachIndex(ctx context.Context, want func(*arch.Index) bool,
	plan func(*planner, *arch.Index) ([]*Step, error)) error {
	var chosen []*arch.Index
	for _, ix := range p.layout.Indices {
		if !want(ix) || ix.Blocked != "" {
			continue
		}
		if reason := p.unfit(ix); reason != "" {
			p.note("%s: index %s is left as it is: %s", p.pass.Name, ix.Name, reason)
			continue
		}
		chosen = append(chosen, ix)
	}
	results := make([][]*Step, len(chosen))
	err := p.parallel(ctx, p.pass.Name, len(chosen), sketches, func(i int) (err error) {
		results[i], err = plan(p, chosen[i])
		return err
	})
	for _, steps := range results {
		p.add(steps...)
	}
	return err
}

// unfit says why the types of an index's tensors do not allow what the pass does; empty where they
// do. Orders need elements of whole bytes, signs and scales a type that is known.
func (p *planner) unfit(ix *arch.Index) string {
	for _, u := range ix.Uses {
		t, _ := p.model.Tensor(u.Tensor)
		_, known := t.DType.Format()
		marks := u.Signed && p.pass.Name != "reorder" && (!known || len(t.Shape) > 2)
		if t.DType.Bits()%8 != 0 || marks {
			return fmt.Sprintf("%s is of type %s%v", u.Tensor, t.DType, t.Shape)
		}
	}
	return ""
}

// parallel runs n tasks on the workers, at most limit at a time, with progress, until one fails or
// ctx ends.
func (p *planner) parallel(ctx context.Context, stage string, n, limit int, task func(i int) error) error {
	g, running := errgroup.WithContext(ctx)
	g.SetLimit(max(1, min(p.opt.Workers, limit)))
	done := make(chan int, n)
	p.event(stage, 0, n)
	for i := range n {
		if running.Err() != nil {
			break
		}
		g.Go(func() error {
			if err := running.Err(); err != nil {
				return err
			}
			err := weights.Guard(p.model.Dir, func() error { return task(i) })
			done <- i
			p.event(stage, len(done), n)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}

// compile brings the compiler up to date with the plan's steps.
func (p *planner) compile() (err error) {
	p.compiler, err = newCompiler(p.ctx, p.model, p.layout, p.plan.Steps)
	if err == nil {
		p.compiler.inputs = p.opt.Inputs
	}
	return err
}

// mergeExact takes in the steps of an exact pass, and drops scalings that turn out not to be exact
// where two indices meet in one tensor.
func (p *planner) mergeExact() error {
	if p.pass.Class != Exact {
		return nil
	}
	if err := p.compile(); err != nil || p.pass != scalePass {
		return err
	}
	for {
		inexact, err := p.inexact()
		if err != nil || inexact == nil {
			return err
		}
		p.plan.Steps = slices.DeleteFunc(p.plan.Steps, func(s *Step) bool {
			drop := s.Pass == scalePass.Name && inexact[s.Index]
			if drop {
				p.note("scale: %s is left as it is: two scalings meet in one value that cannot take both", s.Index)
			}
			return drop
		})
		if err := p.compile(); err != nil {
			return err
		}
	}
}

// inexact names the scaled indices of the tensors whose scalings together are not exact; nil where
// all are.
func (p *planner) inexact() (map[string]bool, error) {
	infos := p.model.Infos()
	if p.model.Adapter != nil {
		infos = append(infos, p.model.Adapter.Tensors...)
	}
	refused := make([]bool, len(infos))
	err := p.parallel(p.ctx, "check", len(infos), len(infos), func(i int) error {
		t, _ := p.model.Tensor(infos[i].Name)
		prog, err := p.compiler.program(t, nil)
		if err != nil {
			return err
		}
		err = prog.checkExact(p.ctx)
		refused[i] = errors.Is(err, ErrPlan)
		if refused[i] {
			return nil
		}
		return err
	})
	var found map[string]bool
	for i, info := range infos {
		if refused[i] {
			found = p.addScaled(found, p.layout.Claims[info.Name])
		}
	}
	return found, err
}

// addScaled adds the scaled indices of a tensor to a set.
func (p *planner) addScaled(set map[string]bool, claim *arch.Claim) map[string]bool {
	if set == nil {
		set = map[string]bool{}
	}
	for _, a := range claim.Axes {
		for _, name := range a.Indices() {
			if sym := p.compiler.syms[name]; sym != nil && sym.Exp != nil {
				set[name] = true
			}
		}
	}
	return set
}

// order is the order planned for an index so far.
func (p *planner) order(ix *arch.Index) []int {
	if s := p.compiler.syms[ix.Name]; s != nil && s.Perm != nil {
		return s.Perm
	}
	return identity(ix.Len)
}

// uses lists where an index runs through matrices and vectors. Thousands of experts read one residual
// stream: what they have in common is there once.
func (p *planner) uses(ix *arch.Index) []*use {
	var list []*use
	places := map[string]use{} // by axis
	for _, au := range ix.Uses {
		claim := p.layout.Claims[au.Tensor]
		t, ok := p.model.Tensor(au.Tensor)
		f, known := t.DType.Format()
		if !ok || !known || len(claim.Axes) > 2 {
			continue
		}
		axis := claim.Axes[au.Axis]
		alike, seen := places[axis.String()]
		if !seen {
			alike.positions = axis.Positions(ix.Name)
			alike.dir = axis.Exps(func(name string) []int {
				if name != ix.Name {
					return nil
				}
				return ones(ix.Len)
			})
			places[axis.String()] = alike
		}
		u := &use{tensor: t, format: f, axis: au.Axis, positions: alike.positions, dir: alike.dir}
		u.rows, u.cols = t.Matrix()
		u.row, u.col = p.compiler.syms.matrix(claim)
		if u.layer, u.outAxis = claim.Role == arch.Linear && len(claim.Axes) == 2, claim.OutAxis; u.layer {
			u.weight = p.opt.Workload.Decode
			if au.Axis == claim.OutAxis {
				u.weight = p.opt.Workload.Prefill
			}
		}
		list = append(list, u)
	}
	return list
}

func ones(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = 1
	}
	return list
}

// following lists the uses along which neighbours toggle in the plan's workload and role, with the wires
// on which they follow one another.
func (p *planner) following(ix *arch.Index) (list []*use, err error) {
	for _, u := range p.uses(ix) {
		if !u.layer {
			continue
		}
		streams, err := p.streams(u.tensor, u.format, u.outAxis)
		if err != nil {
			return nil, err
		}
		if u.follow = u.wires(u.outAxis, p.opt.Workload, streams); len(u.follow) > 0 {
			list = append(list, u)
		}
	}
	return list, nil
}

// sketches is how many indices are ordered at a time, on any machine, so that what a sketch holds
// does not depend on the number of workers.
const sketches = 8

// sketchSize is what a sketch may take.
type sketchSize struct {
	bytes int
	large bool // only one at a time may
}

// sketchBytes bounds sketches: a large one takes no more than the largest tensor (or 64 MiB), and all
// others that are in work at a time no more together.
func (p *planner) sketchBytes(uses []*use) sketchSize {
	limit, all := 64<<20, 0
	for _, info := range p.model.Infos() {
		limit = max(limit, int(info.Size()))
	}
	for _, u := range uses {
		all += len(u.positions) * len(u.positions[0]) * u.across() * u.format.Bits / 8
	}
	if all > limit/sketches {
		return sketchSize{limit, true}
	}
	return sketchSize{limit / sketches, false}
}

// linears lists the claims of the layers in the model's order.
func (p *planner) linears() []*arch.Claim {
	if p.layout == nil {
		return nil
	}
	var list []*arch.Claim
	for _, info := range p.model.Infos() {
		if c := p.layout.Claims[info.Name]; c != nil && c.Role == arch.Linear {
			list = append(list, c)
		}
	}
	return list
}
