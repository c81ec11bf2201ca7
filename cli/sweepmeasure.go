package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/gemm/sweep"
	"github.com/lowtoggle/lowtoggle/transform"
)

// measure carries the sweep out on a card.
func (q *sweepRequest) measure(c *cli.Context) (r *sweep.Result, err error) {
	machine, err := openMachine(c.String("device"), q.seed)
	if err != nil {
		return nil, err
	}
	defer closing(&err, machine.Close)
	plan, err := sweep.NewPlan(machine.Card().Info(), q.settings, q.seed)
	if err != nil {
		return nil, settingsError(err)
	}
	if !c.Bool("change-settings") {
		q.wouldSet(c.App.ErrWriter, machine.Card().Info().Name, plan)
		return nil, usagef("nothing was changed and nothing measured: add --change-settings to do this, or --simulate to predict it")
	}
	if _, err := sweep.Governor(machine.Card()); err != nil { // before models are read
		return nil, explain(err, machine.Card().Info())
	}
	ctx, stop := hangUp(c.Context)
	defer stop()
	event, end := newProgress(c)
	defer end()
	o := sweep.Options{Measure: measure.Options{Cold: q.cold, Meter: q.meter}, K: q.k}
	if device := strings.TrimSpace(c.String("device")); device != simulatedDevice { // which ends with this process
		o.Watch = func(original sweep.Original) (sweep.Watchdog, error) {
			return startWatchdog(watched(device, machine.Card().Info()), original)
		}
	}
	q.follow(&o, event)
	err = q.guard(func() error {
		before, variants, err := q.candidates(ctx, machine)
		if err != nil {
			return err
		}
		var after measure.Candidate
		if len(variants) > 0 {
			after = variants[0]
		}
		r, err = sweep.Run(ctx, machine, plan, before, after, o)
		return err
	})
	if r != nil {
		r.Before, r.After = q.names()
		r.Workload, r.Date, r.Command = q.workload, q.meter.Date.Format(time.RFC3339), q.meter.Command
	}
	return r, explain(err, machine.Card().Info())
}

// follow shows every visit as a bar.
func (q *sweepRequest) follow(o *sweep.Options, event func(transform.Event)) {
	stage := "prepare"
	var from *float64 // when the visit's first window began, in the meter's seconds
	o.Visit = func(done, total int, s sweep.Setting) {
		stage, from = fmt.Sprintf("%d of %d: %v", done+1, total, s), nil
	}
	o.Measure.Meter.Events = power.Events{Window: func(w power.Window) {
		if from == nil {
			from = &w.Begin
		}
		spent := time.Duration((w.Begin + w.Length - *from) * float64(time.Second))
		event(transform.Event{Stage: stage, Done: int64(min(spent, q.meter.Time)), Total: int64(q.meter.Time)})
	}}
}

// wouldSet prints what a sweep would do to a card.
func (q *sweepRequest) wouldSet(w io.Writer, name string, p sweep.Plan) {
	var order []string
	for _, s := range p.Order {
		order = append(order, s.String())
	}
	fmt.Fprint(w, wrap(fmt.Sprintf("%s has a power limit of %g W, and by default %v. It would be set to, in this order: %s; and then back to %g W. That takes about %v.",
		name, p.Limit, p.Reference, strings.Join(order, ", "), p.Limit, (time.Duration(len(p.Order))*(q.meter.Time+15*time.Second)).Round(time.Minute)), "", "", lineWidth))
}

// settingsError words what is wrong with --caps and --clocks.
func settingsError(err error) error {
	if errors.Is(err, power.ErrAbsent) {
		return fmt.Errorf("%w; --simulate predicts a sweep", err)
	}
	return usageError{err}
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
