package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/profile"
	"github.com/lowtoggle/lowtoggle/transform"
)

var profileCommand = &cli.Command{
	Name:  "profile",
	Usage: "show how a product's power goes over time, finer than any sensor does",
	Description: `Runs y[M,N] = x[M,K]·w[N,K]ᵀ from idleness, again and again, and stitches what the card's slow
sensors said at random moments of many runs into one curve of power over time, after Singhania et
al., "FinGraV". It tells when execution time is steady (SSE) and when power is (SSP).

   lowtoggle profile                                     # 8192³ in BF16
   lowtoggle profile --shape 16x8192x8192 --length 1s -o decode.svg
   lowtoggle profile --w MODEL:TENSOR --shape 4096
   lowtoggle profile --interleave 2048x2048x2048         # each right after the other, too
   lowtoggle profile --json --readings > FILE            # and later, without a GPU:
   lowtoggle profile --from FILE --resolution 10ms

` + sourceHelp + `

A run takes --length and most of a second for rest and watching. Table I of the paper advises 200
runs of most kernels; its authors found 50 enough. --device simulated needs no GPU and shows what
a report looks like. Interrupted, it shows what the runs until then tell.

In the table power is the mean over so much time before a moment, with its 95 % interval; –: that
cannot be told from what follows. In JSON times are seconds. With --resolution the curve is
equally fine everywhere; without, it is finest where power changes.

Nothing about the card is ever changed. Exit status 3: power was not steady within --length, or
the readings do not carry the --resolution; 4: no GPU.`,
	Flags: []cli.Flag{
		&cli.StringFlag{Name: "w", Usage: "weights: a `SOURCE` with one linear layer", DefaultText: "as usual"},
		xFlag,
		&cli.StringFlag{Name: "shape", Usage: "`MxNxK`, or M where --w is a tensor", DefaultText: "8192 each"},
		&cli.StringFlag{Name: "dtype", Usage: "`TYPE` to multiply in; see measure --help", DefaultText: "the tensor's, or bf16"},
		roleFlag,
		&cli.StringFlag{Name: "interleave", Usage: "shape `MxNxK` of another product, to run before and after"},
		&cli.DurationFlag{Name: "length", Value: 2 * time.Second, Usage: "`LENGTH` of a run's work, such as 500ms", DefaultText: "2s"},
		&cli.IntFlag{Name: "runs", Usage: "`NUMBER` of runs, 2 to 10000", DefaultText: "table I's"},
		&cli.DurationFlag{Name: "time", Value: 3 * time.Minute, Usage: "let the card go after this `TIME`, such as 90s, all in all", DefaultText: "3m0s"},
		&cli.DurationFlag{Name: "resolution", Usage: "tell times of `LENGTH`, such as 5ms, apart, or end with 3", DefaultText: "any"},
		&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "draw the curve into `FILE`, an .svg"},
		&cli.StringFlag{Name: "from", Usage: "run nothing: make the curves anew from the readings in `FILE`"},
		&cli.BoolFlag{Name: "readings", Usage: "with --json: every reading of the golden runs, too", DisableDefaultText: true},
		deviceFlag, seedFlag, componentsFlag, archFlag, jsonFlag, quietFlag,
	},
	Action: func(c *cli.Context) (err error) {
		if _, err := arguments(c); err != nil {
			return err
		}
		if c.IsSet("from") {
			return profileAgain(c)
		}
		q, err := readProfile(c)
		if err != nil {
			return err
		}
		defer closing(&err, q.Close)
		machine, err := openMachine(c.String("device"), q.seed)
		if err != nil {
			return err
		}
		defer closing(&err, machine.Close)
		if q.components, err = componentsOf(c.String("components"), machine.Card().Info().Name); err != nil {
			return err
		}
		var report *profileReport
		defer setUnsaved(c, false)
		event, end := term.Progress(c)
		q.options.Events = profileEvents(c, event)
		err = q.guard(func() (err error) {
			report, err = q.take(c.Context, machine)
			return err
		})
		end()
		if errors.Is(err, context.Canceled) {
			err = brokenOff(report)
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
			return errShort
		}
		return err
	},
}

// brokenOff is the error of an interrupted profile.
func brokenOff(report *profileReport) error {
	if report == nil {
		return fmt.Errorf("%w: no runs were taken yet, and nothing is kept", context.Canceled)
	}
	return fmt.Errorf("%w: this is of the runs until then; the same command begins anew", context.Canceled)
}

// take profiles; the report is nil where nothing was measured.
func (q *profileRequest) take(ctx context.Context, m measure.Machine) (*profileReport, error) {
	products, err := q.products(ctx, m)
	if err != nil {
		return nil, err
	}
	r, err := profile.Take(ctx, m, products, q.options)
	if r == nil {
		return nil, err
	}
	for i := range r.Products {
		of := &q.request
		if i > 0 {
			of = q.other
		}
		p := &r.Products[i]
		p.W, p.X = of.w.text, of.xText(p.Problem.Type)
	}
	report := &profileReport{Result: r, asked: q.resolution}
	if err == nil {
		err = report.sign(ctx, q.components, products)
	}
	return report, err
}

// profileEvents shows stages and runs, and holds them from when all were taken.
func profileEvents(c *cli.Context, event func(transform.Event)) profile.Events {
	return profile.Events{
		Stage: func(name string) {
			setUnsaved(c, name == "stitch")
			event(transform.Event{Stage: name})
		},
		Run: func(done, of int) {
			event(transform.Event{Stage: "runs", Done: int64(done), Total: int64(of)})
		},
	}
}
