package pass

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/internal/progress"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// Model is the input of a pass that plans a whole model: its weights, the layout, and the decisions of earlier passes.
type Model struct {
	*Context
	Dir     string // path of the model, for messages
	Weights *quant.Set
	Layout  *arch.Layout // nil for an unknown family
	// Compiler has the symmetries of the exact steps planned so far.
	Compiler *program.Compiler
	// Note reports to the user which weights did not change, and why.
	Note func(format string, args ...any)
	// Progress may be nil; it is called from several goroutines.
	Progress func(progress.Event)
}

// Parallel runs n tasks on the workers, at most limit at a time, with progress. It stops when a task fails or ctx
// ends. A task must read weights within guards, such as [Layer.Guard].
func (m *Model) Parallel(ctx context.Context, stage string, n, limit int, task func(ctx context.Context, i int) error) error {
	if ctx == nil {
		return parallel.ErrNoContext
	}
	if m.Context == nil || task == nil {
		return errors.New("parallel work needs a context and a task")
	}
	report := m.Progress
	if report == nil {
		report = func(progress.Event) {}
	}
	report(progress.Event{Stage: stage, Total: int64(n)})
	var mu sync.Mutex
	done := 0
	err := parallel.Run(ctx, n, max(1, min(m.Workers, limit)), func(ctx context.Context, i int) error {
		err := weights.GuardOf(m.Dir, nil, func() error { return task(ctx, i) })
		mu.Lock()
		defer mu.Unlock()
		done++
		report(progress.Event{Stage: stage, Done: int64(done), Total: int64(n)})
		return err
	})
	if err != nil {
		return err
	}
	return ctx.Err()
}

// Linears lists the claims of the linear layers in the model's order, without quantised layers.
func (m *Model) Linears() []*arch.Claim {
	if m.Layout == nil {
		return nil
	}
	var list []*arch.Claim
	for _, w := range m.Weights.All {
		if c := m.Layout.Claims[w.Name]; c != nil && c.Role == arch.Linear && c.Quantised == "" && !w.Adapter {
			list = append(list, c)
		}
	}
	return list
}

// eachIndex plans the free indices that want selects, at most limit at a time. Indices of quantised weights are left
// out. The steps are in the layout's order. marks is true if the pass changes signs or exponents, not only the order.
func (m *Model) eachIndex(ctx context.Context, name string, marks bool, limit int, want func(*arch.Index) bool,
	plans func(ctx context.Context, ix *arch.Index) ([]*plan.Step, error)) ([]*plan.Step, error) {
	var chosen []*arch.Index
	quantised := arch.Blocked{Why: savesNothing}
	for _, ix := range m.Layout.Indices {
		if !want(ix) || ix.Blocked != "" {
			continue
		}
		if m.Layout.QuantisedOf(ix) != "" {
			quantised.Indices = append(quantised.Indices, ix.Name)
			continue
		}
		if reason := m.unfit(ix, marks); reason != "" {
			m.Note("%s: index %s is not changed: %s", name, ix.Name, reason)
			continue
		}
		chosen = append(chosen, ix)
	}
	if len(quantised.Indices) > 0 {
		m.Note("%s: %s", name, quantised)
	}
	results := make([][]*plan.Step, len(chosen))
	err := m.Parallel(ctx, name, len(chosen), limit, func(ctx context.Context, i int) (err error) {
		results[i], err = plans(ctx, chosen[i])
		return err
	})
	var all []*plan.Step
	for _, steps := range results {
		all = append(all, steps...)
	}
	return all, err
}

// unfit returns the reason why a pass cannot change an index's weights because of their types; empty if it can.
// Orders need elements of whole bytes; signs and scales need a known type.
func (m *Model) unfit(ix *arch.Index, marks bool) string {
	for _, u := range ix.Uses {
		w, _ := m.Weights.Weight(u.Tensor)
		_, known := w.DType.Format()
		if w.DType.Bits()%8 != 0 || marks && u.Signed && (!known || len(w.Shape) > 2) {
			return fmt.Sprintf("%s is of type %s%v", u.Tensor, w.DType, w.Shape)
		}
	}
	return ""
}

// Fits reports whether a weight keeps the budget of output SNR under a step.
func (m *Model) Fits(ctx context.Context, s *plan.Step) (bool, error) {
	if m.Context == nil || m.Budget.MinSNR == nil {
		return true, nil
	}
	w, _ := m.Weights.Weight(s.Tensor)
	p, err := m.Compiler.Program(ctx, w, []*plan.Step{s})
	if err != nil {
		return false, err
	}
	l, err := p.Loss(ctx, 0, p.Rows)
	return l.Decibels() >= *m.Budget.MinSNR, err
}

// inexact returns the indices whose powers of two, in the given symmetries, cannot scale all values exactly; nil if
// there are none.
func (m *Model) inexact(ctx context.Context, syms program.Symmetries) (map[string]bool, error) {
	c := m.Compiler.With(syms)
	refused := make([]bool, len(m.Weights.All))
	err := m.Parallel(ctx, "check", len(refused), len(refused), func(ctx context.Context, i int) error {
		p, err := c.Program(ctx, m.Weights.All[i], nil)
		if err != nil {
			return err
		}
		err = guard(m.Weights.All[i], func() error { return p.CheckExact(ctx) })
		if refused[i] = errors.Is(err, plan.ErrInvalid); refused[i] {
			return nil
		}
		return err
	})
	var found map[string]bool
	for i, w := range m.Weights.All {
		if !refused[i] {
			continue
		}
		if found == nil {
			found = map[string]bool{}
		}
		for _, a := range m.Layout.Claims[w.Name].Axes {
			for _, name := range a.Indices() {
				if sym := syms[name]; sym != nil && sym.Exp != nil {
					found[name] = true
				}
			}
		}
	}
	return found, err
}
