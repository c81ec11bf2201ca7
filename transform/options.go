package transform

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/internal/progress"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/transform/search"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/quantise"
	"github.com/lowtoggle/lowtoggle/weights/tokens"
)

// Event reports the progress of a stage of the work. It is the type of every package's progress. Its fields:
//
//	Stage  string // such as "plan" or "write"
//	Done   int64  // steps done; some stages count bytes or elements
//	Total  int64  // number of steps; 0 if unknown
//	Number int    // number of the stage, from 1; 0 if unknown
//	Stages int    // number of stages; 0 if unknown
type Event = progress.Event

// Options are the options of [Plan].
type Options struct {
	Passes []pass.Choice // in the table's order, as Table.Parse returns them; none: the output is a copy of the model
	Table  Table         // table that contains the Passes; default: the variable Passes
	Budget pass.Budget   // accuracy budget; default: none, so the passes' arguments decide
	// Reference is the unquantised original of a quantised model. Codes are then chosen to approximate its weights,
	// and output SNRs are relative to it. Default: the values of the model's own codes.
	Reference *weights.Model
	// Format is the quantised layout of the result. The codes approximate the source's values. The zero value keeps
	// the source's layout. Only passes that choose codes can be combined with Format.
	Format quantise.Format
	// Selection names the weights that no pass may change. The zero value names none.
	Selection plan.Selection
	// KeepRouters excludes routers (linear layers that choose experts) from lossy passes. Default: routers are
	// converted too.
	KeepRouters bool
	// TrustFamily asserts that a model with its own code (auto_map in config.json) computes its family's function. Exact
	// and compensated passes of a model with its own code require TrustFamily.
	TrustFamily bool
	// Tokens give the calibration statistics for weighting rounding errors, and are used to measure losses. A budget of loss
	// requires Tokens. Default: none; errors of all inputs have equal weight.
	Tokens *Tokens
	// Search limits the time of the search for a budget of loss. Its Evaluator and Record are for callers without
	// Tokens; Tokens set both.
	Search search.Options
	// Better is called with every plan that is better than all earlier plans. It may be nil.
	Better   func(*plan.Plan) error
	Workload cost.Workload    // default: prefill
	Role     cost.Role        // default: stationary
	Seed     uint64           // recorded for passes that draw random numbers; default 0
	Cost     pass.Cost        // required, such as a *cost.Calibration
	Hessians program.Hessians // calibration statistics; nil: those of Tokens
	Family   *arch.Family     // nil: the family of Tokens or, without Tokens, the catalogue's family for config.json
	Workers  int              // goroutines; below 1: all processors
	Version  string           // version of the program, recorded in the plan; "": not recorded
	Progress func(Event)      // nil: none; called from several goroutines

	count *counters
	part  planPart
}

// counters counts work that a run should do once. A nil *counters counts nothing.
type counters struct {
	program.Counters
	resolved, fingerprints, outChecks, heldPasses int
}

func (c *counters) heldPass(made bool) {
	if c != nil && made {
		c.heldPasses++
	}
}

// ErrNoTokens and ErrNoBudget are the classes of errors in options. ErrNoTokens is [tokens.ErrNone].
var (
	ErrNoTokens = tokens.ErrNone
	ErrNoBudget = errors.New("an accuracy budget that determines the argument")
)

// Validate returns all problems of the options as one error.
func (o *Options) Validate() error {
	if err := o.known(); err != nil {
		return err
	}
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if o.Cost == nil {
		bad("no cost model: set Options.Cost, for example from cost.FindCalibration")
	}
	if c, ok := o.Cost.(*cost.Calibration); ok {
		errs = append(errs, c.Usable())
	}
	if o.Role > cost.Streaming {
		bad("no such role: %v; use cost.Stationary or cost.Streaming", o.Role)
	}
	if o.Workload != (cost.Workload{}) {
		if err := o.Workload.Validate(); err != nil {
			bad("workload of prefill %g and decode %g: %w", o.Workload.Prefill, o.Workload.Decode, err)
		}
	}
	minSNR, maxLoss := o.Budget.MinSNR, o.Budget.MaxLoss
	if minSNR != nil && !(*minSNR >= 0 && *minSNR <= 200) {
		bad("the lowest output SNR is %g dB: give a number from 0 to 200", *minSNR)
	}
	if maxLoss != nil && !(*maxLoss > 0 && *maxLoss < 10) {
		bad("the budget of loss is %g nats per token: give a number above 0 and below 10", *maxLoss)
	}
	if maxLoss != nil && minSNR != nil {
		bad("give a budget of loss or of output SNR, not both")
	}
	if maxLoss != nil && o.Tokens == nil && (o.Search.Evaluator == nil || o.Hessians == nil) {
		bad("a budget of loss is measured on tokens: %w", ErrNoTokens)
	}
	if o.Tokens != nil && (o.Hessians != nil || o.Search.Evaluator != nil || o.Search.Record != nil) {
		bad("Tokens set Hessians, Search.Evaluator and Search.Record: give either Tokens or these three")
	}
	if maxLoss != nil && !slices.ContainsFunc(o.Passes, pass.Choice.Chosen) {
		bad("a budget of loss needs a pass that can spend it, such as %s", searched)
	}
	if o.Reference != nil && maxLoss != nil {
		bad("a budget of loss is relative to the quantised model, not to the reference: with a reference, give a budget of output SNR")
	}
	errs = append(errs, o.formats()...)
	errs = append(errs, o.combinations()...)
	for _, c := range o.Passes {
		if c.Chosen() && c.Pass.Args != nil && !c.Pass.Default && !c.Pass.SearchOnly && len(c.Args) == 0 && minSNR == nil && maxLoss == nil {
			if o.Format.Name != "" {
				bad("%s needs an argument (%s), because a new format takes no budget", c.Pass.Name, c.Pass.Usage)
			} else {
				bad("%s needs an argument (%s) or %w", c.Pass.Name, c.Pass.Usage, ErrNoBudget)
			}
		}
		if c.Pass.SearchOnly && len(c.Args) == 0 && maxLoss == nil {
			bad("%s without an argument needs a budget of loss: give the budget, or an argument, as in %s", c.Pass.Name, c.Pass.Usage)
		}
		if c.Pass.NeedsHessians && o.Hessians == nil && o.Tokens == nil {
			bad("%s needs the layers' inputs: %w", c.Pass.Name, ErrNoTokens)
		}
	}
	return errors.Join(errs...)
}

// known lists the passes that are nil or not in the table.
func (o *Options) known() error {
	var errs []error
	for i, c := range o.Passes {
		if c.Pass == nil {
			errs = append(errs, fmt.Errorf("Options.Passes[%d] has no pass: use the choices that Table.Parse returns", i))
		} else if p, ok := o.table().Lookup(c.Pass.Name); !ok || p != c.Pass {
			errs = append(errs, fmt.Errorf("pass %q is not in Options.Table: set Table to the table that parsed it", c.Pass.Name))
		}
	}
	return errors.Join(errs...)
}

// formats lists the options that cannot be combined with a format.
func (o *Options) formats() (errs []error) {
	if o.Format.Name == "" {
		return nil
	}
	if o.Budget.MinSNR != nil || o.Budget.MaxLoss != nil {
		errs = append(errs, errors.New("a new format and a budget cannot be combined: convert to the format first, then convert the result within the budget"))
	}
	if o.Reference != nil {
		errs = append(errs, errors.New("a new format takes no reference, because its codes are chosen near the model's own values: leave the reference out"))
	}
	for _, c := range o.Passes {
		if c.Pass.Codes == nil {
			errs = append(errs, fmt.Errorf("%s does not choose codes, so it cannot be combined with a new format: apply it to the unquantised model first, then convert the result to the format", c))
		}
	}
	return errs
}

// table returns the table of the passes.
func (o *Options) table() Table {
	if o.Table == nil {
		return Passes
	}
	return o.Table
}

// combinations lists passes that cannot be combined, by their declarations.
func (o *Options) combinations() []error {
	errs := append(o.besideJoint(), o.companions()...)
	if len(errs) > 0 || o.Budget.MaxLoss == nil {
		return errs
	}
	fixed := o.first(func(c pass.Choice) bool { return c.Chosen() && len(c.Args) > 0 })
	tuned := o.first(func(c pass.Choice) bool { return c.Pass.Tuned != nil && !c.Pass.Companion && len(c.Args) == 0 })
	if fixed != nil && tuned != nil {
		errs = append(errs, fmt.Errorf("the search does not try %s with every lambda of %s: give %s an argument (%s), or leave out %s",
			fixed, tuned, tuned, tuned.Pass.Usage, fixed))
	}
	return errs
}

// besideJoint lists the passes that cannot be combined with a joint pass.
func (o *Options) besideJoint() (errs []error) {
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	joint := o.first(func(c pass.Choice) bool { return c.Pass.Joint })
	if joint == nil {
		return nil
	}
	if c := o.first(func(c pass.Choice) bool { return c.Pass.Class == pass.Compensated }); c != nil {
		bad("%s and %s cannot be combined: %[2]s rounds a layer jointly, and %[1]s computes its values one by one; leave one of them out", c, joint)
	}
	var choosers []string
	fixed := false
	for _, c := range o.Passes {
		if c.Pass.NotJoint != nil && c.Pass.NotJoint(c.Args) != "" {
			bad("%s and %s cannot be combined: %s", c, joint, c.Pass.NotJoint(c.Args))
		}
		if c.Pass.Chooser {
			choosers, fixed = append(choosers, c.String()), fixed || len(c.Args) > 0
		}
	}
	if fixed && len(choosers) > 1 {
		bad("%s needs one pass that chooses all values of a layer together: give only one of %s", joint, strings.Join(choosers, ", "))
	}
	return errs
}

// companions lists the passes that need another pass and lack it.
func (o *Options) companions() (errs []error) {
	feedback := func(p *pass.Pass) bool { return p.Feedback != nil }
	tuned := func(p *pass.Pass) bool { return p.Chooser && p.Tuned != nil }
	fed := o.first(func(c pass.Choice) bool { return feedback(c.Pass) }) != nil
	free := o.first(func(c pass.Choice) bool { return tuned(c.Pass) && len(c.Args) == 0 }) != nil
	for _, c := range o.Passes {
		switch searched := o.Budget.MaxLoss != nil && len(c.Args) == 0; {
		case !c.Pass.Companion:
		case searched && !(fed && free):
			chooser, with := o.table().first(tuned), o.table().first(feedback)
			errs = append(errs, fmt.Errorf("the search uses %s only together with %s and %s: give %[1]s,%[2]s,%[3]s", c, chooser, with))
		case !fed:
			errs = append(errs, fmt.Errorf("%s needs a pass that compensates its errors: give %[1]s,%s", c, o.table().first(feedback)))
		}
	}
	return errs
}

// first returns the first requested pass that matches; nil if none does.
func (o *Options) first(match func(pass.Choice) bool) *pass.Choice {
	if i := slices.IndexFunc(o.Passes, match); i >= 0 {
		return &o.Passes[i]
	}
	return nil
}
