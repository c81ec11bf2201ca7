package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/gemm/sweep"
	"github.com/lowtoggle/lowtoggle/transform"
)

// measure carries the sweep out on a card, or says what it would set, and reports while the card is still
// open: closing it may take longer than an interrupted command has.
func (q *sweepRequest) measure(c *cli.Context) (err error) {
	machine, err := openMachine(c.String("device"), q.seed)
	if measure.NoGPU(err) {
		return fmt.Errorf("%w; --simulate predicts a sweep without one", err)
	}
	if err != nil {
		return err
	}
	defer closing(&err, machine.Close)
	info := machine.Card().Info()
	plan, err := sweep.NewPlan(info, q.settings, q.seed)
	if err != nil {
		return settingsError(err)
	}
	id := watched(strings.TrimSpace(c.String("device")), info)
	if !c.Bool("change-settings") {
		if err := checkLock(id); err != nil { // its limit would pass for what is set
			return err
		}
		return q.dryRun(c, info, plan, sweep.Free(machine.Card()))
	}
	var lock *os.File
	if id != simulatedDevice { // which ends with this process
		if lock, err = lockCard(id); err != nil {
			return err
		}
		if lock != nil {
			defer closing(&err, lock.Close)
		}
	}
	governor, err := sweep.Governor(machine.Card()) // before models are read
	if err != nil {
		return explain(err, info)
	}
	limit, err := governor.PowerLimit() // before the lock, another sweep may have set it
	if err != nil {
		return err
	}
	info.PowerLimit = &limit
	if plan, err = sweep.NewPlan(info, q.settings, q.seed); err != nil {
		return settingsError(err)
	}
	o := sweep.Options{Measure: measure.Options{Cold: q.cold, Meter: q.meter}, K: q.k}
	if id != simulatedDevice {
		o.Watch = func(original sweep.Original) (sweep.Watchdog, error) { return startWatchdog(id, lock, original) }
	}
	r, err := q.run(c, machine, plan, o)
	return q.report(c, r, err)
}

// run goes through the plan.
func (q *sweepRequest) run(c *cli.Context, machine measure.Machine, plan sweep.Plan, o sweep.Options) (r *sweep.Result, err error) {
	ctx, stop := hangUp(c.Context)
	defer stop()
	event, end := term.Progress(c)
	defer end()
	visit := 0
	q.follow(&o, event, &visit)
	before, variants, err := q.candidates(ctx, machine)
	if err == nil {
		var after measure.Candidate
		if len(variants) > 0 {
			after = variants[0]
		}
		r, err = sweep.Run(ctx, machine, plan, before, after, o)
	}
	if r != nil {
		r.Before, r.After = q.names()
		r.Workload, r.Date, r.Command = q.workload, q.meter.Date.Format(time.RFC3339), q.meter.Command
		if c.IsSet("precision") {
			q.imprecise(r)
		}
	}
	return r, ended(err, machine.Card().Info(), plan, visit, r != nil)
}

// follow shows every visit as a bar, and counts them.
func (q *sweepRequest) follow(o *sweep.Options, event func(transform.Event), visit *int) {
	stage := "prepare"
	o.Visit = func(done, total int, s sweep.Setting) {
		*visit = done + 1
		stage = fmt.Sprintf("%d of %d: %v", done+1, total, s)
	}
	o.Measure.Meter.Progress = func(e power.Event) {
		if e.Stage == "measure" {
			event(transform.Event{Stage: stage, Done: e.Done, Total: e.Total})
		}
	}
}

// imprecise says at which settings time was up before intervals were as narrow as was asked.
func (q *sweepRequest) imprecise(r *sweep.Result) {
	var at []string
	for _, v := range r.Visits {
		if s := v.Setting.String(); v.Run.Stopped == power.StoppedTime && !slices.Contains(at, s) {
			at = append(at, s)
		}
	}
	if len(at) > 0 {
		q.short = true
		r.Warnings = append(r.Warnings, fmt.Sprintf("less precise than ±%.4g %% at %s, where time was up: give more with --time", 100*q.meter.Precision, strings.Join(at, ", ")))
	}
}

// settingsError words what is wrong with --caps and --clocks.
func settingsError(err error) error {
	if errors.Is(err, power.ErrAbsent) {
		return fmt.Errorf("%w; --simulate predicts a sweep", err)
	}
	return usageError{err}
}

// ended words the error of a sweep that did not come to its end, during a visit: 0, before the first. All
// settings are back, or it says that they are not.
func ended(err error, card power.Info, plan sweep.Plan, visit int, shown bool) error {
	var left *sweep.RestoreError
	if err == nil || errors.As(err, &left) || visit == 0 && !errors.Is(err, context.Canceled) {
		return explain(err, card)
	}
	if visit == 0 {
		return fmt.Errorf("%w before anything was set", context.Canceled)
	}
	back := isBack(plan.Original())
	if !errors.Is(err, context.Canceled) {
		return fmt.Errorf("%w; %s", err, back)
	}
	kept := "nothing is kept"
	if shown {
		kept = "what was done until then is in the report"
	}
	return fmt.Errorf("%w in visit %d of %d; %s; %s", context.Canceled, visit, len(plan.Order), back, kept)
}

// isBack says what a card is set to again.
func isBack(o sweep.Original) string {
	text := fmt.Sprintf("the card's power limit is %g W again", o.Cap)
	if o.Clocks {
		text += ", and its clock is unlocked"
	}
	return text
}

// explain says what to type where a card is not as it was, or may not be set.
func explain(err error, card power.Info) error {
	var left *sweep.RestoreError
	switch {
	case errors.As(err, &left):
		return fmt.Errorf("%w: put them back by %s", err, byHand(left.Original, card))
	case errors.Is(err, power.ErrNotPermitted), errors.Is(err, power.ErrAbsent):
		return fmt.Errorf("%w; --simulate predicts a sweep without it", err)
	}
	return err
}

// byHand is what restores a card's settings.
func byHand(o sweep.Original, card power.Info) string {
	text := fmt.Sprintf("nvidia-smi -i %s -pl %g", card.UUID, o.Cap)
	if o.Clocks {
		text += fmt.Sprintf(" && nvidia-smi -i %s -rgc", card.UUID)
	}
	return text
}
