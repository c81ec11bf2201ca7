package experiment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// Options of a run. The zero value is ready to use.
type Options struct {
	// Rounds is how many readings every point is to have; the second of any comes after the first of
	// all. Default 1.
	Rounds int
	// Time ends the run, at the next reading of the baseline after it, if any point was read. Default:
	// no end.
	Time time.Duration
	// Every, Settle and Meter are those of [measure.SeriesOptions].
	Every  int
	Settle time.Duration
	Meter  power.Options
	// Workers make operands. Default: all processors.
	Workers int
	// Progress is told of every point that was read. Default: no one is told.
	Progress func(Progress)
}

// Progress of a run.
type Progress struct {
	Setup       Setup
	Result      measure.Reading // the latest
	Done, Total int             // readings of points, over all setups and rounds
	Left        time.Duration   // at the pace so far; 0 while it is not known
}

// ErrTime ends a run whose time was over.
var ErrTime = errors.New("the time was over before all points were measured; the same command goes on")

// Run measures what the folder does not hold yet, setup by setup and point by point in the order
// given. A setup that cannot be measured does not keep the others from it; its error comes at the
// end. When ctx ends Run returns at once; all that was read is in the folder.
func Run(ctx context.Context, m measure.Machine, folder string, works []Work, o Options) (err error) {
	if o.Workers < 1 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	seen := map[Setup]bool{}
	for _, w := range works {
		if err := w.Validate(); err != nil {
			return err
		}
		if seen[w.Setup] {
			return fmt.Errorf("setup %v is given twice: put its points into one work", w.Setup)
		}
		seen[w.Setup] = true
	}
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	r := run{machine: m, folder: folder, opt: o, begin: m.Clock().Now()}
	defer func() { err = errors.Join(err, r.close()) }()
	for _, w := range works {
		if err := r.open(w); err != nil {
			return err
		}
	}
	return r.all(ctx)
}

// run is one under way.
type run struct {
	machine measure.Machine
	folder  string
	opt     Options
	begin   time.Duration
	work    []begun
	done    int // readings that are there
	before  int // of them when the run began
	total   int
}

// begun is a work and what is there of it.
type begun struct {
	Work
	series *Series
	lock   *os.File
}

func (r *run) close() (err error) {
	for _, b := range r.work {
		err = errors.Join(err, release(b.lock))
	}
	return err
}

func (r *run) open(w Work) error {
	l, err := acquire(r.folder, w.Setup)
	if err != nil {
		return err
	}
	card := &measure.Session{Card: r.machine.Card().Info(), Simulated: r.machine.Platform() == nil}
	s, err := open(r.folder, w, card)
	if err != nil {
		return errors.Join(err, release(l))
	}
	r.work = append(r.work, begun{w, s, l})
	for _, p := range w.all() {
		r.done += min(s.readings(p), r.rounds())
		r.total += r.rounds()
	}
	r.before = r.done
	return nil
}

func (r *run) rounds() int { return max(1, r.opt.Rounds) }

// all rounds over all setups.
func (r *run) all(ctx context.Context) error {
	failed := make([]error, len(r.work))
	for round := range r.rounds() {
		for i, b := range r.work {
			if failed[i] != nil {
				continue
			}
			var missing []Point
			for _, p := range b.all() {
				if b.series.readings(p) <= round {
					missing = append(missing, p)
				}
			}
			if len(missing) == 0 {
				continue
			}
			err := r.measure(ctx, b, missing)
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case errors.Is(err, ErrTime) || errors.Is(err, errSave):
				return errors.Join(append(failed, err)...)
			case err != nil:
				failed[i] = fmt.Errorf("%v: %w", b.Setup, err)
			}
		}
	}
	return errors.Join(failed...)
}

// errSave marks a series that could not be written: there is no use in going on.
var errSave = errors.New("the measurements cannot be kept")

// progress counts a reading and tells of it.
func (r *run) progress(s Setup, reading measure.Reading) {
	r.done++
	if r.opt.Progress == nil {
		return
	}
	each := (r.machine.Clock().Now() - r.begin) / time.Duration(r.done-r.before)
	r.opt.Progress(Progress{s, reading, r.done, r.total, each * time.Duration(r.total-r.done)})
}

// timeOver is an ErrTime where the time is over, something was read in it and something is missing.
func (r *run) timeOver() error {
	if o := r.opt.Time; o > 0 && r.before < r.done && r.done < r.total && r.machine.Clock().Now()-r.begin >= o {
		return ErrTime
	}
	return nil
}
