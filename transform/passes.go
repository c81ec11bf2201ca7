package transform

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/internal/spelling"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/transform/verify"
)

// Row is a pass in a [Table].
type Row struct {
	Pass *pass.Pass
	// Check tests a result against the pass's steps. It shares no code with the pass.
	Check *verify.Check
	// Reason is the reason for the pass's place in the table.
	Reason string
}

// Table lists passes in the order in which they act on a weight.
type Table []Row

// Passes is the table of the module's own passes. A caller may append rows to a clone.
var Passes = Table{
	{pass.Scale, verify.Scale, "scale comes first, because reorder compares the bits after scaling"},
	{pass.Reorder, verify.Reorder, "reorder comes before signs, because signs compares neighbours in the new order"},
	{pass.Signs, verify.Signs, "signs compares neighbours in the order that reorder chooses"},
	{pass.Shift, verify.Shift, "shift adds constants in real arithmetic, before any value is rounded"},
	{pass.Prune, verify.Prune, "sparsify then ranks the weights that are left"},
	{pass.Sparsify, verify.Sparsify, "zeros are chosen before the other weights get new values"},
	{pass.PositiveZero, verify.PositiveZero, "zeros replaces codes of −0 before other codes are chosen"},
	{pass.Scales, verify.Scales, "scales are chosen before the codes that they multiply"},
	{pass.Trellis, verify.Trellis, "trellis chooses values after the zeros are known"},
	{pass.Grid, verify.Grid, "grid comes before round, because round keeps multiples of a power of two"},
	{pass.Round, verify.Round, "round comes after all passes that compute values, so their low bits end up zero"},
	{pass.Compensate, verify.Compensate, "compensate corrects the errors of all passes before it"},
}

// constraint requires that the pass first stands before the pass second in a table. reason explains it.
type constraint struct{ first, second, reason string }

var constraints = []constraint{
	{"scale", "reorder", "reorder compares the exponents that scale leaves"},
	{"reorder", "signs", "signs compares neighbours in the order that reorder chooses"},
	{"scale", "shift", "column exponents would scale the constant of a row by different powers"},
	{"shift", "prune", "a shift would fill the pruned zeros again"},
	{"shift", "sparsify", "a shift would fill the zeros of sparsify again"},
	{"reorder", "prune", "prune looks for outputs that no layer reads, in the final order"},
	{"prune", "compensate", "compensate changes the weights that prune keeps"},
	{"sparsify", "trellis", "trellis keeps the zeros of sparsify"},
	{"reorder", "sparsify", "blocks and 2:4 groups are neighbours in the final order"},
	{"shift", "grid", "a shift would move values off the grid"},
	{"sparsify", "grid", "grid keeps zeros, and sparsify ranks the original magnitudes"},
	{"scales", "trellis", "trellis chooses codes for the new scales"},
	{"scales", "grid", "grid chooses codes for the new scales"},
	{"grid", "round", "after round, the grid would round a value a second time"},
}

// Validate checks a table: names, documentation, the hooks required by each class, a check for every pass, and the
// order against the constraints. It runs at the start of every plan.
func (t Table) Validate() error { return t.validate(constraints) }

func (t Table) validate(rules []constraint) error {
	var errs []error
	at := map[string]int{}
	for i, r := range t {
		if r.Pass == nil {
			errs = append(errs, fmt.Errorf("row %d of the table has no pass", i))
			continue
		}
		if _, twice := at[r.Pass.Name]; twice {
			errs = append(errs, fmt.Errorf("pass %q occurs twice in the table", r.Pass.Name))
		}
		at[r.Pass.Name] = i
		errs = append(errs, r.Pass.Validate())
		switch exact := r.Pass.Class == pass.Exact; {
		case r.Check == nil:
			errs = append(errs, fmt.Errorf("pass %q has no check: set Check in its row of the table", r.Pass.Name))
		case exact && (r.Check.Symmetry == nil || r.Check.Claim != nil):
			errs = append(errs, fmt.Errorf("pass %q is exact: its check needs a Symmetry and no Claim", r.Pass.Name))
		case !exact && (r.Check.Claim == nil || r.Check.Symmetry != nil):
			errs = append(errs, fmt.Errorf("pass %q is not exact: its check needs a Claim and no Symmetry", r.Pass.Name))
		}
	}
	for _, c := range rules {
		i, ok := at[c.first]
		j, ok2 := at[c.second]
		if ok && ok2 && i >= j {
			errs = append(errs, fmt.Errorf("%s must stand before %s: %s", c.first, c.second, c.reason))
		}
	}
	return errors.Join(errs...)
}

// Lookup finds a pass by name.
func (t Table) Lookup(name string) (*pass.Pass, bool) {
	i := t.rank(name)
	if i < 0 {
		return nil, false
	}
	return t[i].Pass, true
}

// rank returns a pass's place; −1 if there is no such pass.
func (t Table) rank(name string) int {
	return slices.IndexFunc(t, func(r Row) bool { return r.Pass != nil && r.Pass.Name == name })
}

// first names the first pass that matches.
func (t Table) first(match func(*pass.Pass) bool) string {
	for _, r := range t {
		if match(r.Pass) {
			return r.Pass.Name
		}
	}
	return "another pass"
}

// rules returns the rules by which the compiler compiles steps, by pass.
func (t Table) rules() map[string]program.Rule {
	rules := map[string]program.Rule{}
	for i, r := range t {
		rules[r.Pass.Name] = program.Rule{Rank: i, Symmetry: r.Pass.Symmetry, Compile: r.Pass.Compile, Check: r.Pass.Check}
	}
	return rules
}

// checks returns the checks of the passes, by name.
func (t Table) checks() map[string]*verify.Check {
	checks := map[string]*verify.Check{}
	for _, r := range t {
		checks[r.Pass.Name] = r.Check
	}
	return checks
}

// Describe describes a step in a few words, for tables.
func (t Table) Describe(s *plan.Step) string {
	if s == nil {
		return ""
	}
	if p, ok := t.Lookup(s.Pass); ok && p.Describe != nil {
		return p.Describe(s)
	}
	return s.Pass
}

// Moves reports whether a plan makes adapters that were trained for the source unusable with the result. Adapters do
// not fit if weights have other places, signs or scales, or if a norm is folded into them. An adapter in the source's
// folder is converted with the model, and fits.
func (t Table) Moves(p *plan.Plan) bool {
	return p != nil && slices.ContainsFunc(p.Steps, func(s *plan.Step) bool {
		p, ok := t.Lookup(s.Pass)
		return ok && p.Class != pass.Lossy
	})
}

// FeedsBack reports whether later columns absorb rounding errors in a plan (as in GPTQ).
func (t Table) FeedsBack(p *plan.Plan) bool {
	return p != nil && slices.ContainsFunc(p.Steps, func(s *plan.Step) bool {
		p, ok := t.Lookup(s.Pass)
		return ok && p.Feedback != nil
	})
}

// check returns an error for steps that no pass of the table could have written.
func (t Table) check(p *plan.Plan) error {
	for i, s := range p.Steps {
		by, ok := t.Lookup(s.Pass)
		switch {
		case !ok:
			return fmt.Errorf("%w: step %d: %w", plan.ErrInvalid, i, t.unknown(s.Pass))
		case by.Class == pass.Exact && s.Index == "":
			return fmt.Errorf("%w: step %d: %s acts on an index, and the step names none", plan.ErrInvalid, i, s.Pass)
		case by.Class != pass.Exact && s.Tensor == "":
			return fmt.Errorf("%w: step %d: %s acts on a tensor, and the step names none", plan.ErrInvalid, i, s.Pass)
		}
	}
	if p.DropIn != t.dropIn(p) && p.Request.Format == "" { // older versions called a new format drop-in
		return fmt.Errorf("%w: the plan says \"drop_in\": %v, but its steps say the opposite", plan.ErrInvalid, p.DropIn)
	}
	return nil
}

// dropIn reports whether every runtime that can use the source can use a plan's result.
func (t Table) dropIn(p *plan.Plan) bool {
	return p.Request.Format == "" && !slices.ContainsFunc(p.Steps, func(s *plan.Step) bool {
		by, ok := t.Lookup(s.Pass)
		return ok && by.NeedsRuntime != nil && by.NeedsRuntime(s)
	})
}

// Parse parses a list such as "reorder,round=4" and returns it in the table's order.
func (t Table) Parse(list string) ([]pass.Choice, error) {
	var chosen []pass.Choice
	for _, item := range strings.Split(list, ",") {
		name, arg, hasArg := strings.Cut(strings.TrimSpace(item), "=")
		p, ok := t.Lookup(name)
		if !ok {
			return nil, t.unknown(name)
		}
		if slices.ContainsFunc(chosen, func(c pass.Choice) bool { return c.Pass == p }) {
			return nil, fmt.Errorf("pass %s is named twice: leave one out", name)
		}
		c := pass.Choice{Pass: p}
		if hasArg {
			c.Args = strings.Split(arg, "/")
			if p.Args == nil {
				return nil, fmt.Errorf("%s takes no argument: leave out =%s", name, arg)
			}
			if err := p.Args(c.Args); err != nil {
				return nil, fmt.Errorf("%s: %w; usage: %s", item, err, p.Usage)
			}
		}
		chosen = append(chosen, c)
	}
	slices.SortFunc(chosen, func(a, b pass.Choice) int { return t.rank(a.Pass.Name) - t.rank(b.Pass.Name) })
	return chosen, nil
}

// ParsePasses parses a list of the module's own passes; see [Table.Parse].
func ParsePasses(list string) ([]pass.Choice, error) { return Passes.Parse(list) }

// unknown returns the error for a name that no pass has.
func (t Table) unknown(name string) error {
	var names []string
	for _, r := range t {
		names = append(names, r.Pass.Name)
	}
	if name == "" {
		return fmt.Errorf("the list of passes has an empty name; the passes are %s", strings.Join(names, ", "))
	}
	return fmt.Errorf("there is no pass %q%s; the passes are %s", name, spelling.DidYouMean("", name, names), strings.Join(names, ", "))
}

// UsesHessians reports whether the result of passes depends on the layers' calibration statistics, if they are known.
func UsesHessians(passes []pass.Choice) bool {
	return slices.ContainsFunc(passes, func(c pass.Choice) bool { return c.Pass != nil && c.Pass.UsesHessians })
}
