package card

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cli/flag"
	"github.com/lowtoggle/lowtoggle/cli/outfile"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
)

var (
	xFlag         = &cli.StringFlag{Name: "x", Usage: "activations: a `SOURCE`", DefaultText: "normal(0,1)"}
	devicesFlag   = &cli.StringFlag{Name: "device", Value: "0", Usage: "`NUMBERS` of GPUs, such as 0,1, or simulated", DefaultText: "0"}
	deviceFlag    = &cli.StringFlag{Name: "device", Value: "0", Usage: "`NUMBER` of the GPU, or simulated", DefaultText: "0"}
	precisionFlag = &cli.StringFlag{Name: "precision", Value: "0.3%", Usage: "stop when all intervals are ± this `SHARE`", DefaultText: "0.3%"}
	benchFlag     = &cli.BoolFlag{Name: "bench", Usage: "print Go benchmark lines, one for each reading", DisableDefaultText: true}
	dutyFlag      = &cli.StringFlag{Name: "duty", Usage: "bursts for a `SHARE` of time: 0.4 or auto", DefaultText: "no gaps"}
	windowFlag    = &cli.DurationFlag{Name: "window", Usage: "`LENGTH` of one reading", DefaultText: "1s"}
)

// againstFlag may be given several times.
var againstFlag = &cli.StringSliceFlag{Name: "against", Usage: "weights to compare: a `SOURCE`", DefaultText: "zeros"}

// productFlags describe the product.
var productFlags = []cli.Flag{
	&cli.StringFlag{Name: "w", Usage: "weights: a `SOURCE`", DefaultText: "normal(0,0.02)"},
	xFlag,
	&cli.StringFlag{Name: "shape", Usage: "`MxNxK`, or M if --w is a tensor", DefaultText: "8192 each"},
	&cli.StringFlag{Name: "dtype", Usage: "`TYPE` to multiply in", DefaultText: "the tensor's, or bf16"},
	&cli.StringFlag{Name: "role", Value: "stationary", Usage: "`ROLE` of unquantised weights", DefaultText: "stationary"},
	&cli.BoolFlag{Name: "cold", Usage: "read the weights from memory, as decoding does", DisableDefaultText: true},
	kernelFlag,
}

var kernelFlag = &cli.StringFlag{Name: "kernel", Usage: "`KERNEL` of quantised layers, e.g. cutlass", DefaultText: "vLLM's"}

var Measure = &cli.Command{
	Name:  "measure",
	Usage: "compare the energy of a product with different weights, or of running servers",
	Description: `Measures y[M,N] = x[M,K]·w[N,K]ᵀ with the weights --w, with a copy of them, and with every
--against, in turns, until all intervals are as narrow as --precision or --time is spent. A block
measures each of them several times; the first block always runs to its end.

` + sourceHelp + `

   lowtoggle measure --w MODEL: --against OUT:
   lowtoggle measure --against 'const(1)' --against zeros --shape 4096x4096x4096 --dtype fp8
   lowtoggle measure --against 'normal(0,0.02) | round(4)'
   lowtoggle measure --against none                  # the copy alone: the noise of a run
   lowtoggle measure --w MODEL: --against OUT: -o report.html     # or picture.svg, picture.png
   lowtoggle measure --w MODEL: --against OUT: --csv > energy.csv

With --serve, energy per token of running OpenAI-compatible servers is compared instead: the same
prompts, a fixed number of requests in flight, in turns, in windows of 10 s. FILE has text, or
JSON lines with "prompt". docs/serving.md has the commands that start such servers.

   lowtoggle measure --serve before=http://127.0.0.1:8000 --serve after=http://127.0.0.1:8001

With --duty 0.4, the products run in bursts of about a millisecond with gaps between them. So
the card's average power stays below its cap, as on a lightly loaded server. Energy and time
are those of the bursts; the energy of the gaps is reported separately. auto is the largest
duty below the cap. --duty 1,0.4 measures both, and the effective clock during the products.

With --device 0,1 these cards run the same products at the same time, and each is measured on its
own. Totals and the differences between the cards follow.

With --collective allreduce or allgather, two or more cards of a host exchange BF16 values
through NCCL: the collective alone, the products alone with each of the weights, and both at
once. SIZE is the size of the buffer, for allgather of the gathered data; the default is the size
of the product's results. Each of the three comparisons takes --time.

   lowtoggle measure --collective allreduce,64MB --device 0,1 --against zeros

TYPE is fp32, tf32, fp16, bf16, fp16-cuda (no tensor cores), fp8 or int8. --device simulated
needs no GPU and shows what a report looks like. benchstat -col /w reads the lines of --bench.

No setting of the card is changed. Exit status 3: the measurement is invalid, or less precise
than the given --precision; 4: no GPU.`,
	Flags: flag.Join(productFlags, []cli.Flag{
		againstFlag,
		precisionFlag,
		&cli.DurationFlag{Name: "time", Value: time.Minute, Usage: "measure for at most `TIME`", DefaultText: "1m, servers 10m"},
		windowFlag, dutyFlag, collectiveFlag, devicesFlag, flag.Seed, flag.Arch, outfile.PictureFlag, flag.CSV, benchFlag, flag.JSON, flag.Quiet, flag.Log,
	}, serveFlags),
	Action: func(c *cli.Context) (err error) {
		if _, err := flag.Arguments(c); err != nil {
			return err
		}
		if err := flag.OneFormat(c); err != nil {
			return err
		}
		if err := outfile.CheckOutput(c.String("output"), nil, outfile.Pictures...); err != nil {
			return err
		}
		if err := checkServeFlags(c); err != nil {
			return err
		}
		if c.IsSet("serve") {
			return measureServers(c)
		}
		if c.IsSet("collective") {
			return measureCollective(c)
		}
		q, err := measureRequest(c)
		if err != nil {
			return err
		}
		defer exit.CloseAll(&err, q.Close)
		if err := outfile.CheckOutput(c.String("output"), q.models(), outfile.Pictures...); err != nil {
			return err
		}
		cards, err := openMachines(c.String("device"), q.seed)
		if err != nil {
			return err
		}
		defer exit.CloseAll(&err, cards.Close)
		if err := q.checkDuties(cards); err != nil {
			return err
		}
		event, end := term.Progress(c)
		event(preparing)
		baseline, variants, err := q.candidates(c.Context, cards.smallest())
		end()
		if err != nil {
			return interrupted(err, false)
		}
		bars := term.NewBars(c) // one bar for each of several cards
		r, err := measure.CompareOn(c.Context, cards, baseline, variants, measure.Options{Cold: q.cold, Duties: q.duties, Meter: q.meter}, onCards(bars))
		bars.End()
		if err = interrupted(err, r != nil); r == nil {
			return err
		}
		covered, failed := q.coverage()
		failed = errors.Join(failed, writeMeasured(c, r, q.title(baseline), covered))
		about := func(w io.Writer) {
			printKernels(w, append(variants, baseline))
			for _, name := range slices.Sorted(maps.Keys(covered)) {
				term.Remark(w, "note", name+" "+covered[name].String())
			}
		}
		if !c.Bool("json") && !c.Bool("bench") && !c.Bool("csv") {
			about(c.App.Writer)
		}
		if failed == nil && c.String("output") != "" {
			failed = measuredOutput(c, r, q.title(baseline), func(w io.Writer) {
				printMeasured(w, r, q.title(baseline))
				about(w)
			})
		}
		if err == nil {
			err = failed
		}
		if err == nil && !r.Holds(c.IsSet("precision")) {
			return exit.ErrShort
		}
		return err
	},
}

// interrupted rewords the error of an interrupt and says which figures remain. Other errors are returned unchanged.
func interrupted(err error, measured bool) error {
	switch {
	case !errors.Is(err, context.Canceled):
		return err
	case measured:
		return fmt.Errorf("%w: the report has the figures until then, and no file was written", context.Canceled)
	}
	return fmt.Errorf("%w before anything was measured", context.Canceled)
}

// preparing is the stage in which operands are made, before anything is measured.
var preparing = measure.Event{Stage: "prepare"}

// onCards draws a bar for every card.
func onCards(bars *term.Bars) func(card string, e measure.Event) {
	return func(card string, e measure.Event) { bars.On(card)(e) }
}
