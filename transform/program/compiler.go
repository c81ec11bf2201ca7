package program

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// Rule describes how a pass's steps are compiled. A rule has either Symmetry or Compile.
type Rule struct {
	// Rank is the pass's place in the table. A tensor's steps act in this order.
	Rank int
	// Symmetry adds an exact step to the symmetry of its index of n labels.
	Symmetry func(s *plan.Step, n int, sym *Symmetry) error
	// Compile turns a tensor step into an operation.
	Compile func(s *plan.Step, c *Context) (Operation, error)
	// Check checks all steps of the pass together, against the layout; may be nil.
	Check func(layout *arch.Layout, steps []*plan.Step) error
}

// Context holds the inputs for compiling a step.
type Context struct {
	context.Context // of the compilation; folds read whole tensors
	Weights         *quant.Set
	Layout          *arch.Layout // nil for an unknown family
	Symmetries      Symmetries
	Program         *Program // of the tensor, with the steps compiled so far
}

// Compiler turns steps into programs. It reads a tensor only if an operation needs another tensor's values.
type Compiler struct {
	weights  *quant.Set
	layout   *arch.Layout // nil for an unknown family
	hessians Hessians     // nil without tokens
	rules    map[string]Rule
	syms     Symmetries
	results  *Results
	count    *Counters
	known    *known
	original *quant.Set // weights of the unquantised model; nil if there is none
}

// known caches data that a compiler needs more than once.
type known struct {
	mu   sync.Mutex
	axes map[*quant.Weight][2]AxisMap
	kept map[*quant.Weight]*Program

	signals signals
}

func newKnown() *known {
	return &known{axes: map[*quant.Weight][2]AxisMap{}, kept: map[*quant.Weight]*Program{}, signals: signals{all: map[*quant.Weight]float64{}}}
}

// CompilerOptions are options of [NewCompiler].
type CompilerOptions struct {
	Weights  *quant.Set
	Layout   *arch.Layout // nil for an unknown family
	Hessians Hessians     // nil without tokens
	Rules    map[string]Rule
	Results  *Results  // may be nil
	Count    *Counters // may be nil
	// Reference has the weights that new codes approximate, under the names of the quantised weights; nil: codes
	// approximate the values of the source's codes.
	Reference *quant.Set
}

// NewCompiler returns a compiler with the symmetries of all exact steps. The error for a step that does not fit the
// model is a [plan.ErrInvalid].
func NewCompiler(o CompilerOptions, steps []*plan.Step) (*Compiler, error) {
	c := &Compiler{weights: o.Weights, layout: o.Layout, hessians: o.Hessians, rules: o.Rules, syms: Symmetries{}, results: o.Results, count: o.Count, known: newKnown(), original: o.Reference}
	byPass := map[string][]*plan.Step{}
	for _, s := range steps {
		rule, ok := c.rules[s.Pass]
		if !ok {
			return nil, fmt.Errorf("%w: there is no pass %q", plan.ErrInvalid, s.Pass)
		}
		if err := c.take(s, rule); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", plan.ErrInvalid, s.Pass, err)
		}
		byPass[s.Pass] = append(byPass[s.Pass], s)
	}
	if o.Layout == nil {
		return c, nil
	}
	for name, list := range byPass {
		if check := c.rules[name].Check; check != nil {
			if err := check(o.Layout, list); err != nil {
				return nil, fmt.Errorf("%w: %s: %w", plan.ErrInvalid, name, err)
			}
		}
	}
	return c, nil
}

// take checks that a step's tensor or index exists, and adds an exact step to the symmetries.
func (c *Compiler) take(s *plan.Step, rule Rule) error {
	if rule.Symmetry == nil {
		if w, ok := c.weights.Weight(s.Tensor); !ok || w.Adapter {
			return fmt.Errorf("the model has no tensor %q", s.Tensor)
		}
		return nil
	}
	var ix *arch.Index
	if c.layout != nil {
		ix = c.layout.Index(s.Index)
	}
	if ix == nil {
		return fmt.Errorf("the model has no index %q", s.Index)
	}
	sym := c.syms[s.Index]
	if sym == nil {
		sym = &Symmetry{}
		c.syms[s.Index] = sym
	}
	if err := rule.Symmetry(s, ix.Len, sym); err != nil {
		return fmt.Errorf("index %s: %w", s.Index, err)
	}
	return sym.Check(ix)
}

// Symmetries returns the symmetries of the exact steps, by index.
func (c *Compiler) Symmetries() Symmetries { return c.syms }

// With returns a compiler with other symmetries.
func (c *Compiler) With(syms Symmetries) *Compiler {
	d := *c
	d.syms, d.known = syms, newKnown()
	return &d
}

// Keep stores p for the next call of Program with the same weight and the same *plan.Step values. That call returns p
// and removes it from the store. Keep replaces an earlier kept program of the weight. The caller must not use p
// afterwards.
func (c *Compiler) Keep(p *Program) {
	p.Use(nil)
	c.known.mu.Lock()
	defer c.known.mu.Unlock()
	c.known.kept[p.Source] = p
}

// again returns a kept program and removes it from the store; nil if there is none for these steps.
func (c *Compiler) again(w *quant.Weight, steps []*plan.Step) *Program {
	c.known.mu.Lock()
	defer c.known.mu.Unlock()
	p := c.known.kept[w]
	if p == nil || !slices.Equal(p.steps, steps) {
		return nil
	}
	delete(c.known.kept, w)
	return p
}

// matrix returns the maps of the symmetries along the axes of a weight. All programs of the weight share the maps.
func (c *Compiler) matrix(w *quant.Weight, claim *arch.Claim) (row, col AxisMap) {
	c.known.mu.Lock()
	axes, ok := c.known.axes[w]
	c.known.mu.Unlock()
	if !ok {
		axes[0], axes[1] = c.syms.Matrix(claim)
		c.known.mu.Lock()
		c.known.axes[w] = axes
		c.known.mu.Unlock()
	}
	return axes[0], axes[1]
}

// reference returns the unquantised weight that a quantised weight should approximate; nil if there is none.
func (c *Compiler) reference(w *quant.Weight) *quant.Weight {
	if c.original == nil {
		return nil
	}
	r, _ := c.original.Weight(w.Name)
	return r
}

// Program compiles the steps of the weight w. The steps may have any order. If a step does not fit, the error is a
// [plan.ErrInvalid].
func (c *Compiler) Program(ctx context.Context, w *quant.Weight, steps []*plan.Step) (*Program, error) {
	steps = slices.Clone(steps)
	slices.SortStableFunc(steps, func(a, b *plan.Step) int { return c.rules[a.Pass].Rank - c.rules[b.Pass].Rank })
	if p := c.again(w, steps); p != nil {
		return p, nil
	}
	c.count.program()
	format, known := w.DType.Format()
	p := &Program{Source: w, Format: format, Rows: w.Rows, Cols: w.Cols, Unit: 1, steps: steps, count: c.count, signals: &c.known.signals}
	if c.layout != nil {
		if claim := c.layout.Claims[w.Name]; claim != nil {
			p.OutAxis = claim.OutAxis
			p.Row, p.Col = c.matrix(w, claim)
			if p.Coded() {
				p.OutAxis = 0 // the matrix is outputs × inputs, whatever shape the family stores
				var err error
				if p.moved, err = movedOf(w.Quantised, claim, p.Row, p.Col); err != nil {
					return nil, fmt.Errorf("%w: tensor %q: %w", plan.ErrInvalid, w.Name, err)
				}
				p.Row, p.Col = AxisMap{}, AxisMap{}
			}
		}
	}
	if p.Coded() {
		p.reference = c.reference(w)
	}
	if w.DType.Bits()%8 != 0 && !p.IsIdentity() && !p.Coded() {
		return nil, fmt.Errorf("%w: tensor %q: elements of type %s cannot be moved", plan.ErrInvalid, w.Name, w.DType)
	}
	if !known && (p.marked() || len(steps) > 0) {
		return nil, fmt.Errorf("%w: tensor %q: values of type %s cannot be changed", plan.ErrInvalid, w.Name, w.DType)
	}
	ops := make([]Operation, len(steps))
	for i, s := range steps {
		err := errors.New("has two steps of this pass")
		if i == 0 || s.Pass != steps[i-1].Pass {
			ops[i], err = c.rules[s.Pass].Compile(s, &Context{ctx, c.weights, c.layout, c.syms, p})
		}
		if interrupted(err) {
			return nil, fmt.Errorf("%s: tensor %q: %w", s.Pass, w.Name, err)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %s: tensor %q: %w", plan.ErrInvalid, s.Pass, w.Name, err)
		}
		ops[i].pass = s.Pass
		p.add(ops[i])
	}
	var err error
	if p.Coded() {
		if p.coded, err = newCoded(p, ops, c.hessians); err != nil {
			return nil, fmt.Errorf("%w: tensor %q: %w", plan.ErrInvalid, w.Name, err)
		}
		p.ops = nil
		return p, nil
	}
	if p.joint, err = newJoint(p, ops, c.hessians); err != nil {
		return nil, fmt.Errorf("%w: tensor %q: %w", plan.ErrInvalid, w.Name, err)
	}
	if p.joint != nil && c.results != nil {
		p.joint.results = c.results
		p.joint.key, err = keyOf(p, steps)
	}
	return p, err
}

// interrupted reports whether an error is the end of a context or a failed read, so that it says nothing about the step.
func interrupted(err error) bool {
	return parallel.Ended(err) || errors.Is(err, weights.ErrFault) || errors.Is(err, weights.ErrUnreachable)
}
