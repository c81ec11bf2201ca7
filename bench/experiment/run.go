package experiment

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/internal/atomicfile"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/internal/printable"
)

// Options are the options of [Run]. The zero value is ready to use.
type Options struct {
	// Rounds is the number of readings per point. All points get their first reading before any gets its
	// second. Default 1.
	Rounds int
	// Time is the time limit of the run. After the limit, the run ends at the next reading of the baseline, but not before it has
	// read a point. Default: no limit.
	Time time.Duration
	// Every, Settle and Meter are passed to [measure.SeriesOptions].
	Every  int
	Settle time.Duration
	Meter  power.Options
	// Workers is the number of goroutines that make operands. Default: all processors.
	Workers int
	// Progress is called after every reading of a point. Default: it is not called.
	Progress func(Progress)
}

// Progress is the progress of a run.
type Progress struct {
	Setup       Setup
	Result      measure.Reading // the latest
	Done, Total int             // readings of points, over all setups and rounds
	Left        time.Duration   // estimate from the pace so far; 0: not known yet
}

// ErrTime is the error of a run that ended at its time limit.
var ErrTime = errors.New("the time limit passed before all points were measured: run the command again to continue")

// Run measures the points that the folder does not hold yet, in the order given, and writes every reading into the
// folder at once. It creates the folder if needed. If a setup cannot be measured, Run continues with the others and
// returns the error at the end. It returns [ErrTime] when the time limit ends, and ctx's error when ctx ends.
func Run(ctx context.Context, m measure.Machine, folder string, jobs []Job, o Options) (err error) {
	if ctx == nil {
		return parallel.ErrNoContext
	}
	if o.Workers < 1 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	seen := map[Setup]bool{}
	for _, w := range jobs {
		if err := w.Validate(); err != nil {
			return err
		}
		if seen[w.Setup] {
			return fmt.Errorf("setup %v is given twice: put all its points into one job", w.Setup)
		}
		seen[w.Setup] = true
	}
	if m == nil {
		return errors.New("no machine: open one with measure.Open")
	}
	if err := mine(folder); err != nil {
		return err
	}
	if err := atomicfile.MakeFolder(folder); err != nil {
		return err
	}
	r := run{machine: m, folder: folder, opt: o, begin: m.Clock().Now()}
	defer func() { err = errors.Join(err, r.close()) }()
	for _, w := range jobs {
		if err := r.open(w); err != nil {
			return err
		}
	}
	return r.all(ctx)
}

// mine returns an error for a folder with files but no series, so that a run does not write into a folder of another purpose.
func mine(folder string) error {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") { // such as locks of a run that ended before its first reading
			continue
		}
		if _, err := LoadFolder(folder); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: the folder holds other files, such as %s, and no series of measurements: give a new or an empty folder", folder, printable.Quote(e.Name()))
		} else if err != nil {
			return err
		}
		break
	}
	return nil
}

// run is the state of a run.
type run struct {
	machine measure.Machine
	folder  string
	opt     Options
	begin   time.Duration
	jobs    []openJob
	done    int // readings in the files
	before  int // readings in the files before the run
	total   int // readings when the run is complete
}

// openJob is a job with its series so far, which is locked.
type openJob struct {
	Job
	series *Series
	lock   *os.File
}

func (r *run) close() (err error) {
	for _, b := range r.jobs {
		err = errors.Join(err, release(b.lock))
	}
	return err
}

func (r *run) open(w Job) error {
	l, err := acquire(r.folder, w.Setup)
	if err != nil {
		return err
	}
	card := &measure.Session{Card: r.machine.Card().Info(), Simulated: r.machine.Platform() == nil}
	s, err := open(r.folder, w, card)
	if err != nil {
		return errors.Join(err, release(l))
	}
	r.jobs = append(r.jobs, openJob{w, s, l})
	for _, p := range w.all() {
		r.done += min(s.readings(p), r.rounds())
		r.total += r.rounds()
	}
	r.before = r.done
	return nil
}

func (r *run) rounds() int { return max(1, r.opt.Rounds) }

// all measures all rounds of all setups.
func (r *run) all(ctx context.Context) error {
	failed := make([]error, len(r.jobs))
	for round := range r.rounds() {
		for i, b := range r.jobs {
			if failed[i] != nil {
				continue
			}
			missing := b.series.Missing(b.Job, round+1)
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

// errSave is the error for a series that could not be written. It ends the run.
var errSave = errors.New("the measurements cannot be written")

// progress counts a reading and reports it.
func (r *run) progress(s Setup, reading measure.Reading) {
	r.done++
	if r.opt.Progress == nil {
		return
	}
	each := (r.machine.Clock().Now() - r.begin) / time.Duration(r.done-r.before)
	r.opt.Progress(Progress{s, reading, r.done, r.total, each * time.Duration(r.total-r.done)})
}

// timeOver returns ErrTime if the time limit is over, this run has read a point, and points are missing.
func (r *run) timeOver() error {
	if o := r.opt.Time; o > 0 && r.before < r.done && r.done < r.total && r.machine.Clock().Now()-r.begin >= o {
		return ErrTime
	}
	return nil
}
