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

// Pass is one transformation of weights. All other packages know a pass only through this type. The data of its steps
// has the pass's own type, which JSON can encode. Only the pass and its check in package verify decode the data.
type Pass struct {
	Name  string
	Class Class
	// Usage is the spelling for --passes, with slashes between arguments.
	Usage string
	// Doc describes the pass in a few sentences: its effect, when it saves energy, and its requirements.
	Doc string
	// NeedsFamily is true if the pass must know the model's family.
	NeedsFamily bool
	// NeedsHessians is true if the pass requires the layers' calibration statistics.
	NeedsHessians bool
	// UsesHessians is true if the pass's result depends on calibration statistics, when they are known.
	UsesHessians bool
	// SearchOnly is true if no budget of output SNR can choose the pass's arguments. Without arguments, the pass then
	// needs a search for a budget of loss.
	SearchOnly bool
	// Joint is true if the values of a layer are chosen together (see package program).
	Joint bool
	// Chooser is true if the pass chooses every value of a layer and its operation has a Chooser. A joint choice has
	// exactly one such pass.
	Chooser bool
	// ByRow is true if each output of the result depends only on this output and its neighbours. A sample of rows
	// then represents a large layer.
	ByRow bool
	// Companion is true if the pass works only with a pass that has Feedback. A search for a budget of loss also
	// requires a tuned Chooser.
	Companion bool

	// Default is true if a lossy pass without arguments needs no budget.
	Default bool

	// NeedsRuntime reports whether only a changed runtime can use the result of a step; nil: never.
	NeedsRuntime func(s *plan.Step) bool
	// Args returns an error for invalid arguments; nil allows no arguments.
	Args func(args []string) error
	// NotJoint returns the reason why the pass, with these arguments, cannot be combined with a Joint pass; empty if
	// it can. nil: it always can.
	NotJoint func(args []string) string
	// Codes returns the reason why the pass, with these arguments, does not change a weight that is stored as codes;
	// empty if it does. nil: it never changes codes.
	Codes func(q *quant.Quantised, args []string) string
	// CodesOnly is true if the pass changes only weights that are stored as codes.
	CodesOnly bool
	// Describe describes a step in a few words, for tables; nil: the pass's name.
	Describe func(s *plan.Step) string

	// Plan returns the steps of an exact or compensated pass for the whole model.
	Plan func(ctx context.Context, m *Model, args []string) ([]*plan.Step, error)
	// Symmetry adds an exact pass's step to the symmetry of its index, of n labels.
	Symmetry func(s *plan.Step, n int, sym *program.Symmetry) error

	// Candidates lists the data of possible steps of a lossy pass for one layer, from most to least loss. The planner
	// takes the candidate with the largest predicted saving within the budget. Without args, the pass chooses its own
	// candidates. If the list is empty, only a search for a budget of loss can choose.
	Candidates func(ctx context.Context, l *Layer, args []string) ([]any, error)
	// Tuned is for a lossy pass whose step depends on the price of error. It prepares one layer at a damping (0: no
	// error feedback), and returns a function of lambda, the relative error that is worth a relative energy of 1. The
	// function returns the step's data; nil means no step. Tuned may be nil.
	Tuned func(ctx context.Context, l *Layer, damp float64) (at func(lambda float64) any, err error)
	// Feedback is set for a lossy pass that adds error feedback to other passes and changes nothing alone; nil for
	// all other passes.
	Feedback *Feedback
	// Preview returns a quick approximation of a step's operation. Exact passes use the preview before the lossy
	// passes choose. nil: exact passes do not depend on the pass.
	Preview func(ctx context.Context, l *Layer, data any) (program.Operation, error)

	// Compile turns a step of a compensated or lossy pass into an operation.
	Compile func(s *plan.Step, c *program.Context) (program.Operation, error)
	// Check compares all steps of the pass with each other and with the layout; may be nil.
	Check func(layout *arch.Layout, steps []*plan.Step) error
	// Complete returns a plan's steps with additional steps that follow from the steps of this pass; may be nil.
	Complete func(m *Model, steps []*plan.Step) ([]*plan.Step, error)
}

// Feedback is the error feedback that a pass adds to other passes.
type Feedback struct {
	// Dampings lists the dampings to try with these arguments.
	Dampings func(args []string) []float64
	// At returns the step's data at one damping.
	At func(damp float64) any
}

// TensorStep returns a step of the pass on a tensor.
func (p *Pass) TensorStep(tensor string, data any) *plan.Step {
	return &plan.Step{Pass: p.Name, Tensor: tensor, Data: data}
}

// IndexStep returns a step of the pass on an index.
func (p *Pass) IndexStep(index string, data any) *plan.Step {
	return &plan.Step{Pass: p.Name, Index: index, Data: data}
}

// Validate reports all problems of a pass: missing documentation, and hooks that do not fit the pass's class.
func (p *Pass) Validate() error {
	var errs []error
	bad := func(what string) { errs = append(errs, fmt.Errorf("pass %q: %s", p.Name, what)) }
	if p.Name == "" || strings.ContainsAny(p.Name, "=,/ ") || p.Name == "pass" || p.Name == "index" || p.Name == "tensor" {
		bad("its name must not be empty, contain separators, or be the name of a step's field")
	}
	if p.Doc == "" || !strings.HasPrefix(p.Usage, p.Name) {
		bad("needs Doc, and a Usage that begins with the pass's name")
	}
	if p.NeedsHessians && !p.UsesHessians {
		bad("NeedsHessians is set without UsesHessians: set both")
	}
	if p.Class != Lossy && (p.Joint || p.Chooser || p.Companion) {
		bad("only a lossy pass may set Joint, Chooser or Companion")
	}
	switch p.Class {
	case Exact:
		if p.Plan == nil || p.Symmetry == nil || p.Compile != nil || p.Candidates != nil || !p.NeedsFamily {
			bad("an exact pass needs Plan, Symmetry and NeedsFamily, and neither Compile nor Candidates")
		}
	case Compensated:
		if p.Plan == nil || p.Compile == nil || p.Symmetry != nil {
			bad("a compensated pass needs Plan and Compile, and no Symmetry")
		}
	case Lossy:
		if p.Candidates == nil || p.Compile == nil || p.Symmetry != nil || p.Plan != nil {
			bad("a lossy pass needs Candidates and Compile, and neither Plan nor Symmetry")
		}
	default:
		bad(fmt.Sprintf("unknown class %q", p.Class))
	}
	return errors.Join(errs...)
}

// Choice is a pass with the arguments that a user gave.
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

// Budget is the largest loss of a plan: an output SNR, a loss, or neither if the passes' arguments decide.
type Budget struct {
	// MinSNR is the lowest output SNR of a layer in dB, from 0 to 200; nil: no limit. At 0 the noise may be as strong as the output.
	MinSNR *float64
	// OrSource accepts the source's output SNR against the reference for a quantised layer in which no choice of
	// codes reaches MinSNR.
	OrSource bool
	MaxLoss  *float64 // KL divergence of the whole model's outputs, nats per token
}
