package card

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cli/flag"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/operand"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/gemm/predict"
	"github.com/lowtoggle/lowtoggle/gemm/sweep"
)

// predict computes the sweep with a calibration.
func (q *sweepRequest) predict(c *cli.Context) (*sweep.Result, error) {
	model, err := flag.ReadCalibration(c)
	if err != nil {
		return nil, err
	}
	event, end := term.Progress(c)
	defer end()
	var after operand.Source
	if len(q.against) > 0 {
		after = q.against[0]
	}
	r, err := sweep.Predict(c.Context, model, q.w, after, sweep.PredictOptions{Settings: q.settings, K: q.k, Decode: q.cold, Operands: q.operands(), Progress: event})
	var settings *sweep.SettingsError
	switch {
	case errors.Is(err, predict.ErrNotComparable):
		return nil, fmt.Errorf("%w; sweep each model by itself", err)
	case errors.As(err, &settings):
		return nil, exit.Usage(err)
	case err != nil:
		return nil, operandError(err)
	}
	q.sign(r)
	return r, nil
}

// sign adds the date and the command to a result.
func (q *sweepRequest) sign(r *sweep.Result) {
	r.Date, r.Command = q.meter.Date.Format(time.RFC3339), q.meter.Command
}

// measure runs the sweep on a card, or prints the planned settings. It reports before it closes the card: closing may
// take longer than an interrupted command may run.
func (q *sweepRequest) measure(c *cli.Context) (err error) {
	machine, err := openMachine(c.String("device"), q.seed)
	if measure.NoGPU(err) {
		return fmt.Errorf("%w; --simulate predicts a sweep without a GPU", err)
	}
	if err != nil {
		return err
	}
	defer exit.CloseAll(&err, machine.Close)
	info := machine.Card().Info()
	name := cardName(strings.TrimSpace(c.String("device")), info)
	if !c.Bool("change-settings") {
		return q.dryRun(c, machine.Card(), name)
	}
	if _, err := sweep.NewPlan(info, q.settings, q.seed); err != nil { // report wrong usage before a busy card
		return settingsError(err)
	}
	o := sweep.Options{Measure: measure.Options{Cold: q.cold, Meter: q.meter}, K: q.k}
	if name != simulatedDevice { // a simulated card's settings end with this process
		lock, err := sweep.LockCard(name)
		if err != nil {
			return err
		}
		if lock != nil {
			defer exit.CloseAll(&err, lock.Close)
		}
		left, err := sweep.RestoreLeft(name, machine.Card())
		if err != nil {
			return explain(err, info)
		}
		if left != nil {
			term.Notice(c, "an earlier sweep of this card was killed together with its watchdog; %v", left)
		}
		o.Watch = func(original sweep.Original) (sweep.Watchdog, error) { return startWatchdog(name, lock, original) }
	}
	plan, err := sweep.Prepare(machine, q.settings, q.seed)
	if err != nil {
		return explain(err, info)
	}
	r, err := q.run(c, machine, plan, o)
	return q.report(c, r, err)
}

// run executes the plan.
func (q *sweepRequest) run(c *cli.Context, machine measure.Machine, plan sweep.Plan, o sweep.Options) (r *sweep.Result, err error) {
	ctx, stop := hangUp(c.Context)
	defer stop()
	event, end := term.Progress(c)
	defer end()
	o.Progress = event
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
		r.Workload = q.workload
		q.sign(r)
		if c.IsSet("precision") {
			q.imprecise(r)
		}
	}
	return r, ended(err, machine.Card().Info(), plan, r != nil)
}

// imprecise adds a warning about settings at which time ran out before the intervals reached --precision.
func (q *sweepRequest) imprecise(r *sweep.Result) {
	var at []string
	for _, s := range r.OutOfTime() {
		at = append(at, s.String())
	}
	if len(at) > 0 {
		q.short = true
		r.Warnings = append(r.Warnings, fmt.Sprintf("at %[2]s the time ran out before the intervals were within ±%.4[1]g %%: give a longer --time", 100*q.meter.Precision, strings.Join(at, ", ")))
	}
}

// settingsError adds a hint to errors of --caps and --clocks.
func settingsError(err error) error {
	if errors.Is(err, power.ErrAbsent) {
		return fmt.Errorf("%w; --simulate predicts a sweep", err)
	}
	return exit.Usage(err)
}

// ended rewords the error of a sweep that ended early. All settings are restored, or the error says otherwise.
func ended(err error, card power.Info, plan sweep.Plan, shown bool) error {
	var left *sweep.RestoreError
	var during *sweep.VisitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &left):
		return explain(err, card)
	case errors.As(err, &during):
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%w before the first setting was changed", context.Canceled)
	default:
		return explain(err, card)
	}
	if !errors.Is(err, context.Canceled) {
		return fmt.Errorf("%w; %v", err, plan.Original())
	}
	kept := "nothing is kept"
	if shown {
		kept = "the report has what was measured until then"
	}
	return fmt.Errorf("%w in visit %d of %d; %v; %s", context.Canceled, during.Visit, during.Visits, plan.Original(), kept)
}

// explain adds the next step to the error of a card whose settings are not restored or must not change.
func explain(err error, card power.Info) error {
	var left *sweep.RestoreError
	var settings *sweep.SettingsError
	switch {
	case errors.As(err, &left):
		return fmt.Errorf("%w: restore them with %s", err, left.Original.Command(card.UUID))
	case errors.As(err, &settings):
		return exit.Usage(err)
	case errors.Is(err, power.ErrNotPermitted), errors.Is(err, power.ErrAbsent):
		return fmt.Errorf("%w; --simulate predicts a sweep instead", err)
	}
	return err
}

// dryRun prints the settings that a sweep would visit, in order. If the sweep would be refused, dryRun prints why.
func (q *sweepRequest) dryRun(c *cli.Context, card power.Card, name string) error {
	plan, err := sweep.NewPlan(card.Info(), q.settings, q.seed)
	if err != nil {
		return settingsError(err)
	}
	if err := sweep.CheckCard(name); err != nil { // do not take another sweep's limit for the original
		return err
	}
	d := plan.DryRun(card, q.meter.Time)
	if c.Bool("json") {
		return term.JSON(c.App.Writer, d)
	}
	var order []string
	for _, s := range d.Visits {
		order = append(order, s.String())
	}
	text := fmt.Sprintf("%s is set to %v, the reference of all results", d.GPU, plan.Reference)
	switch {
	case plan.AboveReference():
		text += "; --caps names higher limits: first find out why the limit was lowered"
	case d.Default > d.Reference:
		text += fmt.Sprintf("; its default limit is %g W, but limits above %v are set only if --caps names them", d.Default, plan.Reference)
	}
	text += fmt.Sprintf(". A sweep would set the card, in this order, to %s, and at the end to %v again. This takes about %s.",
		strings.Join(order, ", "), plan.Reference, term.Plural(int(d.Seconds+59)/60, "minute", "minutes"))
	w := c.App.Writer
	fmt.Fprint(w, term.Wrap(text, "", "", term.Width))
	fmt.Fprint(w, term.Wrap("Nothing was changed or measured: add --change-settings to measure, or --simulate to predict.", "", "", term.Width))
	if d.Refused != "" {
		term.Remark(w, "a sweep would be refused now", d.Refused)
	}
	if q.picture != "" {
		term.Remark(w, "picture", "not drawn, because nothing was measured")
	}
	return nil
}
