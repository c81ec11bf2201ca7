package pass

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// Class is a pass's effect on accuracy.
type Class string

const (
	Exact       Class = "exact"       // function kept; only order, sign bits and exponents change
	Compensated Class = "compensated" // function kept in real arithmetic; stored values round
	Lossy       Class = "lossy"       // spends the budget
)

// Pass is one transformation of weights. The rest of the module knows nothing else of a pass. The data of its steps is the pass's
// own type, which JSON can encode. Only the pass and its check in package verify decode it.
type Pass struct {
	Name  string
	Class Class
	// Usage is how --passes spells it, arguments separated by slashes.
	Usage string
	// Doc says in a few sentences what it does, when it saves energy and what it needs.
	Doc string
	// NeedsFamily is true where the pass must know how tensors belong together.
	NeedsFamily bool
	// NeedsHessians is true where the pass must know the layers' calibration statistics.
	NeedsHessians bool
	// UsesHessians is true where what the pass does depends on calibration statistics, if they are known.
	UsesHessians bool
	// SearchOnly is true where a budget of output SNR cannot choose for the pass: without arguments it needs a
	// search for a budget of loss.
	SearchOnly bool
	// Joint is true if the values of a layer are chosen together (see package program).
	Joint bool
	// Chooser is true if the pass chooses every value of a layer, and its operation has a Chooser. A joint choice has one such pass.
	Chooser bool
	// ByRow is true if the result of an output depends on this output and its neighbours only. A sample of rows then represents a
	// large layer.
	ByRow bool
	// Companion is true where the pass works only beside a pass with Feedback. A search for a budget of loss uses it
	// only beside a Chooser that is Tuned, too.
	Companion bool

	// Default is true where a lossy pass without arguments needs no budget.
	Default bool

	// NeedsRuntime reports whether a runtime must be changed to use the result of a step; nil: never.
	NeedsRuntime func(s *plan.Step) bool
	// Args reports arguments that make no sense; nil allows none.
	Args func(args []string) error
	// NotJoint returns the reason why the pass cannot be combined with a Joint one with these arguments; empty: it can. nil: it
	// always can.
	NotJoint func(args []string) string
	// Codes says why the pass does nothing to a weight that is stored as codes, with these arguments; empty if it does
	// something. nil: it never changes codes.
	Codes func(q *quant.Quantised, args []string) string
	// CodesOnly is true where the pass does nothing to a weight that is not stored as codes.
	CodesOnly bool
	// Describe says in a few words what a step does, for tables; nil: the pass's name.
	Describe func(s *plan.Step) string

	// Plan returns the steps of an exact or compensated pass for the whole model.
	Plan func(ctx context.Context, m *Model, args []string) ([]*plan.Step, error)
	// Symmetry adds an exact pass's step to the symmetry of its index, of n labels.
	Symmetry func(s *plan.Step, n int, sym *program.Symmetry) error

	// Candidates lists the data of the steps that a lossy pass could give one layer, from most to least
	// loss. The planner takes the one that is predicted to save most within the budget. Without args the
	// pass chooses itself what to offer; an empty list means that only a search for a budget of loss can choose.
	Candidates func(ctx context.Context, l *Layer, args []string) ([]any, error)
	// Tuned is for a lossy pass whose step depends on the price of error: it prepares one layer at a damping (0: no error feedback)
	// and returns the step's data at a lambda, the relative error that is worth a relative energy of 1. nil data means no step.
	// Tuned may be nil.
	Tuned func(ctx context.Context, l *Layer, damp float64) (at func(lambda float64) any, err error)
	// Feedback is set for a lossy pass that adds error feedback to other passes and does nothing alone; nil for all other passes.
	Feedback *Feedback
	// Preview returns a quick approximation of a step's operation. Exact passes use it before the lossy passes choose. nil: exact
	// passes do not depend on the pass.
	Preview func(ctx context.Context, l *Layer, data any) (program.Operation, error)

	// Compile turns a step of a compensated or lossy pass into an operation.
	Compile func(s *plan.Step, c *program.Context) (program.Operation, error)
	// Check compares all steps of the pass with each other and with the layout; may be nil.
	Check func(layout *arch.Layout, steps []*plan.Step) error
	// Complete returns a plan's steps with what follows from the steps of this pass; may be nil.
	Complete func(m *Model, steps []*plan.Step) ([]*plan.Step, error)
}

// Feedback is the error feedback that a pass adds to others.
type Feedback struct {
	// Dampings lists those worth trying with these arguments.
	Dampings func(args []string) []float64
	// At is the step's data at one damping.
	At func(damp float64) any
}

// TensorStep is a step of the pass on a tensor.
func (p *Pass) TensorStep(tensor string, data any) *plan.Step {
	return &plan.Step{Pass: p.Name, Tensor: tensor, Data: data}
}

// IndexStep is a step of the pass on an index.
func (p *Pass) IndexStep(index string, data any) *plan.Step {
	return &plan.Step{Pass: p.Name, Index: index, Data: data}
}

// Validate reports everything that is wrong with a pass: missing documentation, and hooks that do not fit its class.
func (p *Pass) Validate() error {
	var errs []error
	bad := func(what string) { errs = append(errs, fmt.Errorf("pass %q: %s", p.Name, what)) }
	if p.Name == "" || strings.ContainsAny(p.Name, "=,/ ") || p.Name == "pass" || p.Name == "index" || p.Name == "tensor" {
		bad("its name is empty, has separators, or is the name of a field of a step")
	}
	if p.Doc == "" || !strings.HasPrefix(p.Usage, p.Name) {
		bad("lacks its documentation")
	}
	if p.NeedsHessians && !p.UsesHessians {
		bad("needs Hessians but does not use them")
	}
	if p.Class != Lossy && (p.Joint || p.Chooser || p.Companion) {
		bad("only a lossy pass chooses values")
	}
	switch p.Class {
	case Exact:
		if p.Plan == nil || p.Symmetry == nil || p.Compile != nil || p.Candidates != nil || !p.NeedsFamily {
			bad("an exact pass plans and merges symmetries and needs a family")
		}
	case Compensated:
		if p.Plan == nil || p.Compile == nil || p.Symmetry != nil {
			bad("a compensated pass plans and compiles tensor steps")
		}
	case Lossy:
		if p.Candidates == nil || p.Compile == nil || p.Symmetry != nil || p.Plan != nil {
			bad("a lossy pass offers candidates and compiles them")
		}
	default:
		bad(fmt.Sprintf("unknown class %q", p.Class))
	}
	return errors.Join(errs...)
}

// Choice is a pass with its arguments, as a user asks for it.
type Choice struct {
	Pass *Pass
	Args []string
}

func (c Choice) String() string {
	if c.Pass == nil {
		return "no pass"
	}
	if len(c.Args) == 0 {
		return c.Pass.Name
	}
	return c.Pass.Name + "=" + strings.Join(c.Args, "/")
}

// Chosen reports whether the choice is a lossy pass that changes values by itself.
func (c Choice) Chosen() bool {
	return c.Pass != nil && c.Pass.Class == Lossy && c.Pass.Feedback == nil
}

// Budget is what a plan may lose: by output SNR or by loss, or by neither if the passes' arguments decide.
type Budget struct {
	MinSNR *float64 // lowest output SNR of a layer in decibels
	// OrSource lets a quantised layer have the source's output SNR against the reference where no choice of codes reaches MinSNR.
	OrSource bool
	MaxLoss  *float64 // nats per token that the whole model's outputs may diverge by
}
