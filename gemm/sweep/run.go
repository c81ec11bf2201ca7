package sweep

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// Options of a sweep.
type Options struct {
	// Measure is for every visit. Its Meter's Time is that of one visit.
	Measure measure.Options
	// K are those of the energy-delay sums. Default 1.5 and 2.
	K []float64
	// Watch starts what puts the settings back should this process be killed. Default: nobody watches.
	Watch func(Original) (Watchdog, error)
	// Visit is told of every visit as it begins. Default: no one is told.
	Visit func(done, total int, s Setting)
}

func (o Options) withDefaults() Options {
	if len(o.K) == 0 {
		o.K = []float64{1.5, 2}
	}
	return o
}

// Visit is one measurement at a setting: the original, a copy of it, and the converted.
type Visit struct {
	Setting Setting         `json:"setting"`
	Run     *measure.Result `json:"run"`
}

// Run carries a plan out with the original products and, unless after has none, the converted: it changes the card's settings, measures at each, and puts back what was set
// before, however it ends. Where that fails the error is a *[RestoreError].
//
// Once something was measured the result is never nil: with an error it holds what was measured until then.
func Run(ctx context.Context, m measure.Machine, p Plan, before, after measure.Candidate, o Options) (r *Result, err error) {
	o = o.withDefaults()
	governor, err := Governor(m.Card())
	if err != nil {
		return nil, err
	}
	guard, err := NewGuard(governor, p.Original().Clocks, o.Watch)
	if err != nil {
		return nil, err
	}
	if found := guard.Original().Cap; !same(found, p.Reference.Cap) {
		return nil, errors.Join(fmt.Errorf("the card's power limit is %g W, and was %g W when the sweep was planned: somebody else sets it: run the sweep again when they are done: %w", found, p.Reference.Cap, ErrHeld), guard.Close())
	}
	machine := &kept{m, map[string]*keptBatch{}}
	s := sitting{machine, p, before, after, o, nil}
	err = guard.Run(func() error { return s.visits(ctx, guard) })
	machine.close(ctx) // after the settings are back: it waits for the card
	if len(s.done) > 0 {
		r = newResult(p, s.done, o.K)
		r.GPU, r.Simulated = m.Card().Info().Name, m.Platform() == nil
		r.Before, r.After = before.Name, after.Name
		if !listed(m.Card(), os.Getpid()) {
			r.warn("the driver does not show this process on the card, so it might not show others: see that nobody else used it")
		}
		if err != nil {
			r.Stopped = "failed"
			if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
				r.Stopped = "cancelled"
			}
		}
	}
	return r, err
}

// sitting is a sweep under way.
type sitting struct {
	machine       measure.Machine
	plan          Plan
	before, after measure.Candidate
	opt           Options
	done          []Visit
}

func (s *sitting) visits(ctx context.Context, guard *Guard) error {
	for i, setting := range s.plan.Order {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := alone(s.machine.Card(), os.Getpid()); errors.Is(err, ErrHeld) { // a query that fails ends no sweep
			return err
		}
		if err := guard.Apply(setting); err != nil {
			return err
		}
		if s.opt.Visit != nil {
			s.opt.Visit(i, len(s.plan.Order), setting)
		}
		// The meter is a new one, so it settles as from idle, and waits for the steady state.
		run, err := measure.Compare(ctx, s.machine, s.before, s.variants(), s.opt.Measure)
		if run != nil && run.Result != nil {
			s.opt.Measure.Meter.SelfTest = run.SelfTest
			allowClock(run.Result, setting)
			if complete(run) {
				s.done = append(s.done, Visit{setting, run})
			}
		}
		if err != nil {
			return err
		}
		if i == 0 && slices.ContainsFunc(run.Warnings, isClockWarning) {
			return clocksHeld()
		}
	}
	return nil
}

func (s *sitting) variants() []measure.Candidate {
	if len(s.after.Products) == 0 {
		return nil
	}
	return []measure.Candidate{s.after}
}

// complete says whether all was measured.
func complete(r *measure.Result) bool {
	missing := func(c power.Comparison) bool { return c.Blocks == 0 }
	return r.Baseline.Windows > 0 && !missing(r.Null) && !slices.ContainsFunc(r.Variants, missing)
}

// isClockWarning is about clocks that somebody has set.
func isClockWarning(text string) bool {
	return strings.Contains(text, power.ApplicationClocks.Names()[0])
}

// allowClock takes away the warning that the clock was held down where we hold it.
func allowClock(r *power.Result, s Setting) {
	if s.Clock > 0 {
		r.Warnings = slices.DeleteFunc(r.Warnings, isClockWarning)
	}
}
