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
	"github.com/lowtoggle/lowtoggle/cli/outfile"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/profile"
	"github.com/lowtoggle/lowtoggle/weights"
)

var Profile = &cli.Command{
	Name:  "profile",
	Usage: "measure the power of a GEMM over time, finer than a sensor's readings",
	Description: `Runs y[M,N] = x[M,K]·w[N,K]ᵀ many times, each time from an idle card. The sensors are slow,
but every run begins at another moment between two readings. So the readings of all runs form one
fine power trace (the method of Singhania et al., "FinGraV"). profile finds the first execution
with steady execution time (SSE) and the first with steady power (SSP).

   lowtoggle profile                                     # 8192³ in BF16
   lowtoggle profile --shape 16x8192x8192 --length 1s -o decode.svg
   lowtoggle profile --w MODEL:TENSOR --shape 4096 -o report.html
   lowtoggle profile --interleave 2048x2048x2048         # two products, also in turns
   lowtoggle profile --copy 500MB                        # a copy in memory, without a product
   lowtoggle profile --collective allreduce,64MB --device 0,1
   lowtoggle profile --csv > trace.csv                   # power over time
   lowtoggle profile --json --readings > FILE            # later, without a GPU:
   lowtoggle profile --from FILE --resolution 10ms

` + sourceHelp + `

A run takes --length, plus most of a second before and after the work. Table I of the paper
asks for 200 or 400 runs; its authors found 50 enough for the trend. --device simulated needs no
GPU and shows what a report looks like. After an interrupt the report covers the runs until then.

In the table, power is a mean with its 95 % interval. The mean covers a period that ends at the
row's time; the column "over" has the length of the period. – means that the trace is too
coarse at that time. In JSON, times are in seconds.
With --resolution, the trace is equally fine everywhere. Without it, the trace is finest where
power changes.

With --collective allreduce or allgather, cards of one host exchange BF16 values through NCCL.
The product, the collective and both at once are profiled on every card, each from idle cards.
SIZE is as in measure --collective. Power is split into idle, multipliers, on-chip traffic,
memory and a rest: the power of links and awake multiprocessors, which no sensor separates.

The card's settings are never changed. Exit status 3: power was not steady to the end of a run,
or the readings do not support the --resolution; 4: no GPU.`,
	Flags: []cli.Flag{
		&cli.StringFlag{Name: "w", Usage: "weights: a `SOURCE` with one linear layer", DefaultText: "normal(0,0.02)"},
		xFlag,
		&cli.StringFlag{Name: "shape", Usage: "`MxNxK`, or M if --w is a tensor", DefaultText: "8192 each"},
		&cli.StringFlag{Name: "dtype", Usage: "`TYPE` to multiply in; see measure --help", DefaultText: "the tensor's, or bf16"},
		flag.Role,
		&cli.StringFlag{Name: "interleave", Usage: "other products that take turns with the first: `MxNxK`,..."},
		&cli.StringFlag{Name: "copy", Usage: "copy `SIZE` within the card: alone, or interleaved"},
		collectiveFlag,
		&cli.DurationFlag{Name: "length", Value: 2 * time.Second, Usage: "`LENGTH` of the work in a run, such as 500ms", DefaultText: "2s"},
		&cli.IntFlag{Name: "runs", Usage: "`NUMBER` of runs, 2 to 10000", DefaultText: "Table I"},
		&cli.DurationFlag{Name: "idle", Usage: "`TIME` without work between two runs, at least 300ms", DefaultText: "550ms"},
		&cli.IntFlag{Name: "bursts", Usage: "also `NUMBER` short runs of each length: 10, 20, 30, 50 ms", DefaultText: "none"},
		&cli.DurationFlag{Name: "time", Value: 3 * time.Minute, Usage: "use the card for this `TIME` in all, such as 90s", DefaultText: "3m0s"},
		&cli.DurationFlag{Name: "resolution", Usage: "resolve changes within `TIME`, such as 5ms, or exit with 3", DefaultText: "any"},
		outfile.PictureFlag,
		&cli.StringFlag{Name: "from", Usage: "recompute the traces from the readings in `FILE`; runs nothing"},
		&cli.BoolFlag{Name: "readings", Usage: "with --json: also every reading of the runs in the trace", DisableDefaultText: true},
		&cli.StringFlag{Name: "device", Value: "0", Usage: "`NUMBER` of the GPU, or simulated; two with --collective: 0,1", DefaultText: "0"},
		flag.Seed, componentsFlag, flag.Arch, flag.CSV, flag.JSON, flag.Quiet, flag.Log,
	},
	Action: func(c *cli.Context) (err error) {
		if _, err := flag.Arguments(c); err != nil {
			return err
		}
		if err := flag.OneFormat(c); err != nil {
			return err
		}
		if c.IsSet("from") {
			return recomputeProfile(c)
		}
		if c.IsSet("collective") {
			if c.Bool("csv") {
				return exit.Usagef("--csv and --collective exclude each other: use --json, which has the trace of every card")
			}
			return profileCollective(c)
		}
		q, err := readProfile(c)
		if err != nil {
			return err
		}
		defer exit.CloseAll(&err, q.Close)
		machine, err := openMachine(c.String("device"), q.seed)
		if err != nil {
			return err
		}
		defer exit.CloseAll(&err, machine.Close)
		if q.splitter, q.unsplit, err = splitterOf(c.String("components"), machine.Card().Info().Name); err != nil {
			return err
		}
		var report *profileReport
		defer exit.SetUnsaved(c, false)
		event, end := term.Progress(c)
		event(preparing)
		q.options.Progress = profileProgress(c, event)
		report, err = q.take(c.Context, machine)
		end()
		if errors.Is(err, context.Canceled) {
			err = interruptedProfile(report)
		}
		if report == nil {
			return err
		}
		if failed := report.write(c); err == nil {
			err = failed
		}
		if failed := report.draw(c, q.picture); err == nil {
			err = failed
		}
		if err == nil && !report.met() {
			return exit.ErrShort
		}
		return err
	},
}

// interruptedProfile returns the error of an interrupted profile.
func interruptedProfile(report *profileReport) error {
	if report == nil {
		return fmt.Errorf("%w before the first run ended: nothing is kept", context.Canceled)
	}
	return fmt.Errorf("%w: the report covers the runs until then; the same command starts from the beginning", context.Canceled)
}

// take measures the profile. The report is nil if nothing was measured.
func (q *profileRequest) take(ctx context.Context, m measure.Machine) (report *profileReport, err error) {
	products, files, err := q.products(ctx, m)
	if err != nil {
		return nil, err
	}
	err = weights.Guard(strings.Join(files, ", "), func() error {
		report, err = q.takeProducts(ctx, m, products)
		return err
	})
	return report, err
}

func (q *profileRequest) takeProducts(ctx context.Context, m measure.Machine, products []cuda.Product) (*profileReport, error) {
	r, err := profile.Measure(ctx, m, products, q.copies, q.options)
	if r == nil {
		return nil, err
	}
	for i := range r.Products {
		of := &q.request
		p := &r.Products[i]
		if p.Problem == nil { // a copy
			continue
		}
		if i > 0 {
			of = q.others[i-1]
		}
		p.W, p.X = of.w.Text, of.operands().XText(p.Problem.Type)
	}
	report := &profileReport{Result: r, asked: q.resolution}
	if err == nil {
		err = report.split(ctx, q.splitter, q.unsplit, products)
	}
	return report, err
}

// profileProgress shows stages and runs. When the stage "stitch" begins, all runs are measured, so an interrupt must
// wait until the report is written.
func profileProgress(c *cli.Context, event func(profile.Event)) func(profile.Event) {
	return func(e profile.Event) {
		exit.SetUnsaved(c, e.Stage == "stitch")
		event(e)
	}
}
