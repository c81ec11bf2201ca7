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
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// Event tells how far a stage of the work is; a Total of 0 is not known.
type Event = progress.Event

// Options are what a plan is made with.
type Options struct {
	Passes []pass.Choice // in the table's order, as Table.Parse returns them
	Table  Table         // that Passes are of; default: Passes of this package
	Budget pass.Budget   // default: none, the passes' arguments say all
	// Tokens weigh errors and tell what models lose; needed with a budget of loss; nil: not known, errors of
	// all inputs count alike.
	Tokens *Tokens
	// Search sets how long a budget of loss is searched for. Evaluator and Record are for callers without Tokens,
	// which have their own.
	Search search.Options
	// Better is called with every plan that is better than those before; may be nil.
	Better   func(*plan.Plan) error
	Workload cost.Workload    // default: prefill
	Role     cost.Role        // default: stationary
	Seed     uint64           // recorded for passes that draw; default 0
	Cost     pass.Cost        // required; a *cost.Calibration, say
	Hessians program.Hessians // calibration statistics; nil: those of Tokens
	Family   *arch.Family     // nil: the catalogue's, by config.json; Tokens of the same model bring theirs
	Workers  int              // goroutines; default: all processors
	Version  string           // of the program, for the record
	Progress func(Event)      // nil: none; called from several goroutines

	count *counters
}

// counters count work that a run should do once; nil counts nothing.
type counters struct {
	program.Counters
	resolved, fingerprints, outChecks, heldPasses int
}

func (c *counters) heldPass(made bool) {
	if c != nil && made {
		c.heldPasses++
	}
}

// Validate lists everything that is wrong with the options.
func (o *Options) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if o.Cost == nil {
		bad("no cost model")
	}
	minSNR, maxLoss := o.Budget.MinSNR, o.Budget.MaxLoss
	if minSNR != nil && !(*minSNR >= 0 && *minSNR <= 200) {
		bad("a lowest output SNR of %g dB is not within 0 and 200", *minSNR)
	}
	if maxLoss != nil && !(*maxLoss > 0 && *maxLoss < 10) {
		bad("a loss of %g nats is not above 0 and below 10", *maxLoss)
	}
	if maxLoss != nil && minSNR != nil {
		bad("a budget is of loss or of output SNR, not both")
	}
	if maxLoss != nil && o.Tokens == nil && (o.Search.Evaluator == nil || o.Hessians == nil) {
		bad("a budget of loss needs tokens (--tokens FILE)")
	}
	if o.Tokens != nil && (o.Hessians != nil || o.Search.Evaluator != nil || o.Search.Record != nil) {
		bad("calibration statistics, evaluator and record are those of the tokens: give tokens alone, or these")
	}
	if maxLoss != nil && !slices.ContainsFunc(o.Passes, pass.Choice.Chosen) {
		bad("a budget of loss needs a pass that can spend it, such as %s", searched)
	}
	errs = append(errs, o.combinations()...)
	for _, c := range o.Passes {
		if c.Chosen() && c.Pass.Args != nil && len(c.Args) == 0 && minSNR == nil && maxLoss == nil {
			bad("%s needs an argument (%s) or a budget to choose by (--min-snr, or --max-loss with --tokens)", c.Pass.Name, c.Pass.Usage)
		}
		if c.Pass.SearchOnly && len(c.Args) == 0 && minSNR != nil {
			bad("%s without an argument is chosen for a budget of loss alone (--max-loss): name one, as in %s", c.Pass.Name, c.Pass.Usage)
		}
		if c.Pass.NeedsHessians && o.Hessians == nil && o.Tokens == nil {
			bad("%s weighs errors by the layers' inputs: give tokens (--tokens FILE)", c.Pass.Name)
		}
	}
	return errors.Join(errs...)
}

// table that the passes are of.
func (o *Options) table() Table {
	if o.Table == nil {
		return Passes
	}
	return o.Table
}

// combinations lists passes that do not go together.
func (o *Options) combinations() (errs []error) {
	free := map[string]bool{} // without an argument
	var compensated, joint, fixed string
	for _, c := range o.Passes {
		free[c.Pass.Name] = len(c.Args) == 0
		if c.Pass.Class == pass.Compensated {
			compensated = c.Pass.Name
		}
		if c.Pass.Joint {
			joint = c.Pass.Name
		}
		if c.Chosen() && len(c.Args) > 0 {
			fixed = c.String()
		}
	}
	if compensated != "" && joint != "" {
		errs = append(errs, fmt.Errorf("%w: %s and %s do not go together: a shifted layer cannot be rounded jointly; leave one of them out",
			plan.ErrInvalid, compensated, joint))
	}
	if o.Budget.MaxLoss == nil {
		return errs
	}
	for _, c := range o.Passes {
		if !free[c.Pass.Name] {
			continue
		}
		with := companions[c.Pass.Name]
		for _, name := range with {
			_, asked := free[name]
			other, _ := o.table().Lookup(name)
			if !asked || other == nil || other.Feedback == nil && !free[name] {
				errs = append(errs, fmt.Errorf("the search uses %s only beside %s: ask for %s,%s",
					c.Pass.Name, strings.Join(with, " and "), c.Pass.Name, strings.Join(with, ",")))
				break
			}
		}
		if c.Pass.Tuned != nil && with == nil && fixed != "" {
			errs = append(errs, fmt.Errorf("the search does not try %s with every lambda of %s: name the lambda (%s=0.01), or leave out %s",
				fixed, c.Pass.Name, c.Pass.Name, fixed))
		}
	}
	return errs
}
