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
	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/internal/progress"
)

// Event reports the progress of a sweep. A stage is one visit, such as "3 of 11: 500 W". Its steps are nanoseconds.
type Event = progress.Event

// Options are the options of [Run].
type Options struct {
	// Measure holds the options of every visit. Its Meter.Time is the time of one visit.
	Measure measure.Options
	// K are the parameters k of the energy-delay sums. Default 1.5 and 2.
	K []float64
	// Watch starts the watchdog that restores the settings if this process is killed. Default: none.
	Watch func(Original) (Watchdog, error)
	// Progress is called with each event, in the goroutine of Run. Default: not called.
	Progress func(Event)
}

func (o Options) withDefaults() Options {
	if len(o.K) == 0 {
		o.K = []float64{1.5, 2}
	}
	return o
}

// Visit is one measurement at a setting: of the original, a copy of the original, and the converted weights.
type Visit struct {
	Setting Setting         `json:"setting"`
	Run     *measure.Result `json:"run"`
}

// VisitError is the error of a sweep that ended early, with the number of the visit. The settings have been restored,
// unless the error is also a *[RestoreError].
type VisitError struct {
	Visit, Visits int // number of the visit, from 1, and number of visits
	Err           error
}

func (e *VisitError) Error() string {
	return fmt.Sprintf("visit %d of %d: %v", e.Visit, e.Visits, e.Err)
}

func (e *VisitError) Unwrap() error { return e.Err }

// Run executes a plan. At every setting it measures the original products, and the converted products unless after has
// none. It restores the card's settings in every case.
//
// Errors: a *[VisitError] if the sweep ended during a visit, a *[RestoreError] if the settings could not be restored,
// and those of [Governor] and [NewGuard] before the first visit. Once something was measured, the result is never nil:
// after an error it holds the measurements so far.
func Run(ctx context.Context, m measure.Machine, p Plan, before, after measure.Candidate, o Options) (r *Result, err error) {
	if ctx == nil {
		return nil, parallel.ErrNoContext
	}
	if m == nil {
		return nil, errNoMachine
	}
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
		return nil, errors.Join(fmt.Errorf("%w: the power limit is %g W, but was %g W when the sweep was planned: end the program that changed the limit, and run the sweep again", ErrInUse, found, p.Reference.Cap), guard.Close())
	}
	machine := &batchCache{m, map[string]*cachedBatch{}}
	s := session{machine, p, before, after, o, nil}
	err = guard.Run(func() error { return s.visits(ctx, guard) })
	machine.release(ctx) // the settings are restored first, because release waits for the card
	if len(s.done) > 0 {
		r = newResult(p, s.done, o.K)
		info := m.Card().Info()
		r.GPU, r.CardID, r.Simulated = info.Name, info.ID(), m.Platform() == nil
		r.Before, r.After = before.Name, after.Name
		if !listed(m.Card(), os.Getpid()) {
			r.warn("the driver does not list this process, so it may not list other processes either: make sure that no other process used the card")
		}
		if err != nil {
			r.Stopped = power.StoppedFailed
			if parallel.Ended(err) {
				r.Stopped = power.StoppedCancelled
			}
		}
	}
	return r, err
}

// session is a sweep in progress.
type session struct {
	machine       measure.Machine
	plan          Plan
	before, after measure.Candidate
	opt           Options
	done          []Visit
}

func (s *session) visits(ctx context.Context, guard *Guard) error {
	for i, setting := range s.plan.Order {
		if err := s.visit(ctx, guard, i, setting); err != nil {
			if i == 0 && len(s.done) == 0 && !guard.changed {
				return err // before the first visit
			}
			return &VisitError{i + 1, len(s.plan.Order), err}
		}
	}
	return nil
}

func (s *session) visit(ctx context.Context, guard *Guard, i int, setting Setting) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := noOthers(s.machine.Card(), os.Getpid()); errors.Is(err, ErrInUse) { // a failed query does not end the sweep
		return err
	}
	if err := guard.Apply(setting); err != nil {
		return err
	}
	// A new meter waits for the steady state again.
	run, err := measure.Compare(ctx, s.machine, s.before, s.variants(), s.options(i, setting))
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
		return clocksSet()
	}
	return nil
}

// options returns the measurement options of a visit, with its progress.
func (s *session) options(i int, setting Setting) measure.Options {
	o := s.opt.Measure
	if s.opt.Progress == nil {
		return o
	}
	stage := fmt.Sprintf("%d of %d: %v", i+1, len(s.plan.Order), setting)
	s.opt.Progress(Event{Stage: stage, Total: int64(o.Meter.Time)})
	o.Meter.Progress = func(e power.Event) {
		if e.Stage == "measure" {
			s.opt.Progress(Event{Stage: stage, Done: e.Done, Total: e.Total})
		}
	}
	return o
}

func (s *session) variants() []measure.Candidate {
	if len(s.after.Products) == 0 {
		return nil
	}
	return []measure.Candidate{s.after}
}

// complete reports whether all loads were measured.
func complete(r *measure.Result) bool {
	missing := func(c power.Comparison) bool { return c.Blocks == 0 }
	return r.Baseline.Windows > 0 && !missing(r.Null) && !slices.ContainsFunc(r.Variants, missing)
}

// isClockWarning reports whether a warning is about a limited clock.
func isClockWarning(text string) bool {
	return strings.Contains(text, power.ApplicationClocks.Names()[0])
}

// allowClock removes the warning about a limited clock if the sweep itself has locked the clock.
func allowClock(r *power.Result, s Setting) {
	if s.Clock > 0 {
		r.Warnings = slices.DeleteFunc(r.Warnings, isClockWarning)
	}
}
