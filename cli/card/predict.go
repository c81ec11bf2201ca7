package card

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/flag"
	"github.com/lowtoggle/lowtoggle/cli/outfile"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm/predict"
	"github.com/lowtoggle/lowtoggle/weights"
)

var Predict = &cli.Command{
	Name:      "predict",
	Usage:     "predict the energy of a GEMM with different weights, without a GPU",
	ArgsUsage: "[SOURCE...]",
	Description: `Predicts energy, time, power and clock of y[M,N] = x[M,K]·w[N,K]ᵀ with each SOURCE as w. The
prediction comes from a calibration, a model that was fitted to measurements of a GPU. Energy and
time are relative to random normal operands with the root mean square of SOURCE's weights, or of
--w if it names files. For all-zero weights, the standard deviation of the random weights is 1,
in FP8 16 and in INT8 32. The column "over --w" is relative to --w.

` + sourceHelp + `
Patterns take the shapes of the first source that is a file, or else --shape.

   lowtoggle predict 'normal(0,0.02) | sparse(50%, block=16x16)'
   lowtoggle predict --w 'normal(0,0.02) | round(4)' --against 'normal(0,0.02) | sparse(50%)'
   lowtoggle predict MODEL: --workload decode
   lowtoggle predict --w MODEL: --against OUT: --layers       OUT relative to MODEL
   lowtoggle predict zeros --shape 4096x4096x4096 --dtype fp8
   lowtoggle predict MODEL: OUT: -o report.html                or picture.svg, picture.png
   lowtoggle predict zeros 'normal(0,0.02) | round(4)' --csv > energy.csv

TYPE is fp32, tf32, fp16, bf16, fp16-cuda (no tensor cores), fp8 or int8. The calibration must
have this type; the built-in calibration has no tf32. ROLE is stationary (the A operand of
cuBLAS, where runtimes put weights) or streaming (B).
Decode multiplies 16 tokens and reads the weights from memory. Prefill multiplies 8192 tokens.
Only samples of a tensor are read, or the whole tensor if it must be scaled to 8 bits.`,
	Flags: flag.Join(productFlags, []cli.Flag{
		&cli.StringSliceFlag{Name: "against", Usage: "weights to predict: a `SOURCE`, like the arguments"},
		&cli.StringFlag{Name: "workload", Value: "prefill", Usage: "`PHASE`: prefill or decode", DefaultText: "prefill"},
		&cli.BoolFlag{Name: "layers", Usage: "add a row for every layer", DisableDefaultText: true},
		flag.GPU, flag.Calibration, flag.Seed, flag.Arch, outfile.PictureFlag, flag.CSV, flag.JSON, flag.Quiet, flag.Log,
	}),
	Action: func(c *cli.Context) (err error) {
		if err := flag.OneFormat(c); err != nil {
			return err
		}
		f, err := readPredict(c)
		if err != nil {
			return err
		}
		if err := outfile.CheckOutput(c.String("output"), f.models(), outfile.Pictures...); err != nil {
			return err
		}
		model, err := flag.ReadCalibration(c)
		if err != nil {
			return err
		}
		if f.compared && len(f.sources) > 1 {
			noticeOrder(c, f.sources[0], f.sources[1])
		}
		operands := f.operands()
		operands.OpenURL = func(url string) (*weights.Model, error) { return flag.OpenModel(c.Context, url) }
		event, end := term.Progress(c)
		r, err := predict.Sources(c.Context, model, f.sources, predict.Options{Operands: operands, Cold: f.cold, Compare: f.compared, Progress: event})
		end()
		if errors.Is(err, predict.ErrNotComparable) {
			return fmt.Errorf("%w; leave --w out to predict each source by itself", err)
		}
		if err != nil {
			return operandError(err)
		}
		return f.write(c, r, model.Card)
	},
}
