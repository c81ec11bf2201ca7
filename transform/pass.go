package transform

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Class says what a pass costs in accuracy.
type Class string

const (
	Exact       Class = "exact"       // function kept; only order, sign bits and exponents change
	Compensated Class = "compensated" // function kept in real arithmetic; stored values round
	Lossy       Class = "lossy"       // spends the budget
)

// Pass is one transform of weights.
type Pass struct {
	Name  string
	Class Class
	// Usage is how --passes spells it, arguments separated by slashes.
	Usage string
	// Doc says in a few sentences what it does, when it pays and what it needs.
	Doc string
	// NeedsFamily is true where the pass must know how tensors hang together.
	NeedsFamily bool
	// NeedsInputs is true where the pass must know what layers are fed with ([Options.Inputs]).
	NeedsInputs bool
	// UsesInputs is true where what the pass does depends on what layers are fed with, if that is known.
	UsesInputs bool

	// modifies is true of a lossy pass that changes how the others round, and does nothing alone.
	modifies bool
	// check reports arguments that make no sense; nil allows none.
	check func(args []string) error
	// plan adds steps for the whole model. Passes with candidates have none.
	plan func(ctx context.Context, p *planner, args []string) error
	// merge adds an index step to the symmetry of its index, of n labels.
	merge func(s *Step, sym *Symmetry, n int) error
	// candidates lists what the pass could do to one tensor; the planner takes the one that
	// saves most within the budget.
	candidates func(t *target, args []string) ([]*Step, error)
	// compile adds a tensor step to the program of its tensor.
	compile func(s *Step, c *compiler) error
}

// Passes is the table of all passes in the order in which they act.
var Passes []*Pass

// The table is filled here and not in its declaration because passes look each other up in it.
func init() {
	Passes = []*Pass{
		scalePass,      // exponents first: the order is chosen on what the wires will see
		reorderPass,    // then the order
		signsPass,      // then signs, chosen between the neighbours that the order made
		shiftPass,      // real arithmetic before anything is quantised
		prunePass,      // whole lines before single zeros
		sparsifyPass,   // zeros before the values of the others are chosen
		trellisPass,    // one of the three
		gridPass,       // the grid before rounding, which keeps multiples of a power of two
		roundPass,      // whatever was computed before, the low bits end up zero
		compensatePass, // how all of these hand on their errors
	}
}

// constraint: first stands before second in [Passes], for the reason given.
type constraint struct{ first, second, reason string }

var constraints = []constraint{
	{"scale", "reorder", "the order is chosen by the exponents that scale leaves"},
	{"reorder", "signs", "signs are chosen between neighbours"},
	{"scale", "shift", "a constant added to a row would be scaled apart by column exponents"},
	{"shift", "prune", "a shift would fill the zeros again"},
	{"shift", "sparsify", "a shift would fill the zeros again"},
	{"reorder", "prune", "outputs that nobody reads are found in the final order"},
	{"prune", "compensate", "it makes the others stand in for what is pruned"},
	{"sparsify", "trellis", "zeros are kept"},
	{"reorder", "sparsify", "blocks and 2:4 groups count places of the final order"},
	{"shift", "grid", "a shift would leave the grid"},
	{"sparsify", "grid", "the grid keeps zeros; sparsify ranks the original magnitudes"},
	{"grid", "round", "rounding first would make the grid's nearest multiple a second rounding"},
}

// Validate checks the table of passes: names, documentation, exactly the hooks that a class
// needs, and the order against the constraints. It runs at the start of every plan.
func Validate() error { return validate(Passes, constraints) }

func validate(passes []*Pass, rules []constraint) error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	at := map[string]int{}
	for i, p := range passes {
		if _, twice := at[p.Name]; twice || p.Name == "" {
			bad("pass %d: the name %q is empty or taken", i, p.Name)
		}
		at[p.Name] = i
		if p.Doc == "" || !strings.HasPrefix(p.Usage, p.Name) {
			bad("pass %s: lacks its documentation", p.Name)
		}
		if p.NeedsInputs && !p.UsesInputs {
			bad("pass %s: needs inputs and does not use them", p.Name)
		}
		switch p.Class {
		case Exact:
			if p.plan == nil || p.merge == nil || p.compile != nil || p.candidates != nil || !p.NeedsFamily {
				bad("pass %s: an exact pass plans and merges symmetries and needs a family", p.Name)
			}
		case Compensated:
			if p.plan == nil || p.compile == nil || p.merge != nil {
				bad("pass %s: a compensated pass plans and compiles tensor steps", p.Name)
			}
		case Lossy:
			if p.candidates == nil || p.compile == nil || p.merge != nil || p.plan != nil {
				bad("pass %s: a lossy pass offers candidates and compiles them", p.Name)
			}
		default:
			bad("pass %s: unknown class %q", p.Name, p.Class)
		}
	}
	for _, c := range rules {
		i, ok := at[c.first]
		j, ok2 := at[c.second]
		if !ok || !ok2 || i >= j {
			bad("%s must stand before %s: %s", c.first, c.second, c.reason)
		}
	}
	return errors.Join(errs...)
}

// Lookup finds a pass by name.
func Lookup(name string) (*Pass, bool) {
	i := slices.IndexFunc(Passes, func(p *Pass) bool { return p.Name == name })
	if i < 0 {
		return nil, false
	}
	return Passes[i], true
}

// Choice is a pass with its arguments, as a user asks for it.
type Choice struct {
	Pass *Pass
	Args []string
}

func (c Choice) String() string {
	if len(c.Args) == 0 {
		return c.Pass.Name
	}
	return c.Pass.Name + "=" + strings.Join(c.Args, "/")
}

// UsesInputs reports whether what passes do depends on what layers are fed with, if that is known.
func UsesInputs(passes []Choice) bool {
	return slices.ContainsFunc(passes, func(c Choice) bool { return c.Pass.UsesInputs })
}

// ParsePasses reads a list such as "reorder,round=4" and returns it in the table's order.
func ParsePasses(list string) ([]Choice, error) {
	var chosen []Choice
	for _, item := range strings.Split(list, ",") {
		name, arg, hasArg := strings.Cut(strings.TrimSpace(item), "=")
		pass, ok := Lookup(name)
		if !ok {
			return nil, fmt.Errorf("there is no pass %q; the passes are %s", name, passNames())
		}
		if slices.ContainsFunc(chosen, func(c Choice) bool { return c.Pass == pass }) {
			return nil, fmt.Errorf("pass %s is named twice", name)
		}
		c := Choice{Pass: pass}
		if hasArg {
			c.Args = strings.Split(arg, "/")
			if pass.check == nil {
				return nil, fmt.Errorf("%s takes no argument", name)
			}
			if err := pass.check(c.Args); err != nil {
				return nil, fmt.Errorf("%s: %w; usage: %s", item, err, pass.Usage)
			}
		}
		chosen = append(chosen, c)
	}
	slices.SortFunc(chosen, func(a, b Choice) int {
		return slices.Index(Passes, a.Pass) - slices.Index(Passes, b.Pass)
	})
	return chosen, nil
}

func passNames() string {
	var names []string
	for _, p := range Passes {
		names = append(names, p.Name)
	}
	return strings.Join(names, ", ")
}
