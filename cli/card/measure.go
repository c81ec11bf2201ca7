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
	precisionFlag = &cli.StringFlag{Name: "precision", Value: "0.3%", Usage: "stop at 95 % intervals within ± `SHARE`", DefaultText: "0.3%"}
	benchFlag     = &cli.BoolFlag{Name: "bench", Usage: "print Go benchmark lines, one for each reading", DisableDefaultText: true}
	dutyFlag      = &cli.StringFlag{Name: "duty", Usage: "run for `SHARE` of the time: 0.4 or auto", DefaultText: "no gaps"}
	windowFlag    = &cli.DurationFlag{Name: "window", Usage: "`LENGTH` of one reading", DefaultText: "1s"}
)

// againstFlag may be given several times.
var againstFlag = &cli.StringSliceFlag{Name: "against", Usage: "weights to compare: a `SOURCE`", DefaultText: "zeros"}

// productFlags describe the matrix product.
var productFlags = []cli.Flag{
	&cli.StringFlag{Name: "w", Usage: "weights: a `SOURCE`", DefaultText: "normal(0,0.02)"},
	xFlag,
	&cli.StringFlag{Name: "shape", Usage: "`MxNxK`, or M if --w is a tensor", DefaultText: "8192 each"},
	&cli.StringFlag{Name: "dtype", Usage: "`TYPE` to multiply in", DefaultText: "the tensor's, or bf16"},
	&cli.StringFlag{Name: "role", Value: "stationary", Usage: "weights' `ROLE`: stationary, streaming", DefaultText: "stationary"},
	&cli.BoolFlag{Name: "cold", Usage: "read the weights from memory, as decoding does", DisableDefaultText: true},
	kernelFlag,
}

var kernelFlag = &cli.StringFlag{Name: "kernel", Usage: "`KERNEL` of quantised layers, e.g. cutlass", DefaultText: "vLLM's"}

var Measure = &cli.Command{
	Name:  "measure",
	Usage: "compare the energy of a GEMM with different weights, or of running servers",
	Description: `Measures the energy of y[M,N] = x[M,K]·w[N,K]ᵀ with the weights --w, with a copy of --w, and
with every --against. A block measures each of these several times, in turns. Blocks follow until
all 95 % intervals are within ± --precision, or --time is spent. The first block is always
completed.

` + sourceHelp + `

   lowtoggle measure --w MODEL: --against OUT:
   lowtoggle measure --against 'const(1)' --against zeros --shape 4096x4096x4096 --dtype fp8
   lowtoggle measure --against 'normal(0,0.02) | round(4)'
   lowtoggle measure --against none                  # only the copy: shows the noise of a run
   lowtoggle measure --w MODEL: --against OUT: -o report.html     # or picture.svg, picture.png
   lowtoggle measure --w MODEL: --against OUT: --csv > energy.csv

With --serve, compares the energy per token of running OpenAI-compatible servers. The servers
take turns in windows of 10 s. They get the same prompts, with a fixed number of requests in
flight. Every line of the FILE of --prompts is a prompt: text, or JSON with a field "prompt".
docs/serving.md shows how to start the servers.

   lowtoggle measure --serve before=http://127.0.0.1:8000 --serve after=http://127.0.0.1:8001

With --duty 0.4, the products run in bursts of about a millisecond with gaps between them. So
the card's average power stays below its cap, as on a lightly loaded server. Energy and time
are of the bursts; the energy of the gaps is reported separately. auto is the largest duty with a
power below the cap. --duty 1,0.4 measures at both duties. With --duty, the report also has the
effective clock during the products.

With --device 0,1 both cards run the same products at the same time. The report has each card's
energy, the cards' totals and their differences.

With --collective allreduce or allgather, two or more cards of a host exchange BF16 values
through NCCL. Three workloads are measured, each for at most --time: the collective alone,
the products alone, and the products during the collective. The products are measured with --w
and with every --against. SIZE is the size of the buffer, or of the gathered data for allgather.
The default is the size of the product's result.

   lowtoggle measure --collective allreduce,64MB --device 0,1 --against zeros

TYPE is fp32, tf32, fp16, bf16, fp16-cuda (no tensor cores), fp8 or int8. ROLE is stationary (the
A operand of cuBLAS, where runtimes put weights) or streaming (B). --device simulated needs no
GPU and shows what a report looks like. benchstat -col /w reads the lines of --bench.

No setting of the card is changed. Exit status 3: the measurement is invalid, or less precise
than the given --precision; 4: no GPU.`,
	Flags: flag.Join(productFlags, []cli.Flag{
		againstFlag,
		precisionFlag,
		&cli.DurationFlag{Name: "time", Value: time.Minute, Usage: "measure for at most `TIME`", DefaultText: "1m, servers 10m"},
		&cli.DurationFlag{Name: "window", Usage: windowFlag.Usage, DefaultText: "1s, servers 10s"},
		dutyFlag, collectiveFlag, devicesFlag, flag.Seed, flag.Arch, outfile.PictureFlag, flag.CSV, benchFlag, flag.JSON, flag.Quiet, flag.Log,
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
		return fmt.Errorf("%w: the report has the figures until then", context.Canceled)
	}
	return fmt.Errorf("%w before anything was measured", context.Canceled)
}

// preparing is the stage in which operands are made, before anything is measured.
var preparing = measure.Event{Stage: "prepare"}

// onCards draws a bar for every card.
func onCards(bars *term.Bars) func(card string, e measure.Event) {
	return func(card string, e measure.Event) { bars.On(card)(e) }
}
