package cli

import (
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/gemm/measure"
)

var (
	xFlag         = &cli.StringFlag{Name: "x", Usage: "activations: a `SOURCE`", DefaultText: "as usual"}
	deviceFlag    = &cli.StringFlag{Name: "device", Value: "0", Usage: "`NUMBER` of the GPU, or simulated", DefaultText: "0"}
	precisionFlag = &cli.StringFlag{Name: "precision", Value: "0.3%", Usage: "stop when all intervals are ± this `SHARE`", DefaultText: "0.3%"}
	benchFlag     = &cli.BoolFlag{Name: "bench", Usage: "print Go benchmark lines, one for each reading", DisableDefaultText: true}
	windowFlag    = &cli.DurationFlag{Name: "window", Usage: "`LENGTH` of one reading", DefaultText: "1s"}
)

// productFlags say what is multiplied.
var productFlags = []cli.Flag{
	&cli.StringFlag{Name: "w", Usage: "weights to compare with: a `SOURCE`", DefaultText: "as usual"},
	xFlag,
	&cli.StringFlag{Name: "shape", Usage: "`MxNxK`, or M where --w is a tensor", DefaultText: "8192 each"},
	&cli.StringFlag{Name: "dtype", Usage: "`TYPE` to multiply in", DefaultText: "the tensor's, or bf16"},
	&cli.StringFlag{Name: "role", Value: "stationary", Usage: "the weights' `ROLE`, or streaming", DefaultText: "stationary"},
	&cli.BoolFlag{Name: "cold", Usage: "read the weights from memory, as decoding does", DisableDefaultText: true},
}

var measureCommand = &cli.Command{
	Name:  "measure",
	Usage: "run a product on the GPU with different weights and compare its energy",
	Description: `Measures y[M,N] = x[M,K]·w[N,K]ᵀ with the weights --w, with a copy of them, and with every
--against, in turns, until the intervals are as narrow as --precision or --time is spent.

` + sourceHelp + `

   lowtoggle measure --w MODEL: --against OUT:
   lowtoggle measure --against 'const(1)' --against zeros --shape 4096x4096x4096 --dtype fp8
   lowtoggle measure --against 'normal(0,0.02) | round(4)'
   lowtoggle measure --against none                  # the copy alone: how sure is a run?

TYPE is fp32, tf32, fp16, bf16, fp16-cuda (no tensor cores), fp8 or int8. --device simulated
needs no GPU and shows what a report looks like. Lines of --bench are for benchstat -col /w.

Nothing about the card is ever changed. Exit status 3: invalid, or less precise than --precision
asked; 4: no GPU.`,
	Flags: flags(productFlags, []cli.Flag{
		&cli.StringSliceFlag{Name: "against", Usage: "weights to compare: a `SOURCE`", DefaultText: "zeros"},
		precisionFlag,
		&cli.DurationFlag{Name: "time", Value: time.Minute, Usage: "begin no block that ends later", DefaultText: "1m0s"},
		windowFlag, deviceFlag, seedFlag, archFlag, benchFlag, jsonFlag, quietFlag,
	}),
	Action: func(c *cli.Context) (err error) {
		if _, err := arguments(c); err != nil {
			return err
		}
		if c.Bool("json") && c.Bool("bench") {
			return usagef("--json and --bench exclude each other")
		}
		q, err := measureRequest(c)
		if err != nil {
			return err
		}
		defer closing(&err, q.Close)
		machine, err := openMachine(c.String("device"), q.seed)
		if err != nil {
			return err
		}
		defer closing(&err, machine.Close)
		var baseline measure.Candidate
		var variants []measure.Candidate
		if err := q.guard(func() error {
			baseline, variants, err = q.candidates(c.Context, machine)
			return err
		}); err != nil {
			return err
		}
		event, end := newProgress(c)
		r, err := q.compare(c, machine, q.meter, q.cold, baseline, variants, event)
		end()
		if r == nil {
			return err
		}
		report := measureReport{r, q.title(baseline)}
		if failed := report.write(c); err == nil {
			err = failed
		}
		if err == nil && (!r.Valid || c.IsSet("precision") && r.Stopped != stoppedByPrecision) {
			return errShort
		}
		return err
	},
}

// How a comparison ends ([power.Result]).
const stoppedByPrecision, stoppedByTime = "precision", "time"
