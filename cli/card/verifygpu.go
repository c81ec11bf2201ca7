package card

import (
	"errors"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cli/flag"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/weights"
)

// VerifyFlags are the flags of verify --gpu.
var VerifyFlags = append([]cli.Flag{
	&cli.BoolFlag{Name: "gpu", Usage: "measure the energy of all linear layers, before and after", DisableDefaultText: true},
	&cli.BoolFlag{Name: "total", Usage: "measure only all layers together, not each kind of layer", DisableDefaultText: true},
	xFlag, kernelFlag,
	&cli.StringFlag{Name: "precision", Value: "0.5%", Usage: "stop a row when its 95 % interval is within ± this `SHARE`", DefaultText: "0.5%"},
	&cli.DurationFlag{Name: "time", Value: 30 * time.Second, Usage: "measure each row of the table for at most `TIME`"},
	windowFlag, dutyFlag, devicesFlag, flag.Seed, componentsFlag, benchFlag,
}, wholeFlags...)

// Verification holds the flags of verify --gpu.
type Verification struct {
	request
	total    bool                  // no row for each kind of layer
	whole    *measure.WholeOptions // nil: only linear layers are measured
	splitter *measure.Splitter     // of the first card; nil: power is not split
	Unsplit  string                // the reason if splitter is nil
}

// ReadVerify reads the flags and opens the cards. Without --gpu, the results are nil.
func ReadVerify(c *cli.Context, o flag.Options) (*Verification, machines, error) {
	if !c.Bool("gpu") {
		for _, f := range VerifyFlags {
			if name := f.Names()[0]; name != "gpu" && c.IsSet(name) {
				return nil, nil, exit.Usagef("--%[1]s needs --gpu: add --gpu, or leave --%[1]s out", name)
			}
		}
		return nil, nil, nil
	}
	if c.Bool("json") && c.Bool("bench") {
		return nil, nil, exit.Usagef("--json and --bench exclude each other: give one of them")
	}
	q, err := meterRequest(c, o)
	if err != nil {
		return nil, nil, err
	}
	if err := readSource(c, "x", &q.x); err != nil {
		return nil, nil, err
	}
	whole, err := readWhole(c, o, q)
	if err != nil {
		return nil, nil, err
	}
	cards, err := openMachines(c.String("device"), q.seed)
	if err != nil {
		return nil, nil, err
	}
	if whole != nil {
		if len(cards) > 1 {
			return nil, nil, errors.Join(exit.Usagef("--whole measures on one card: name one with --device"), cards.Close())
		}
		return &Verification{request: *q, whole: whole}, cards, nil
	}
	if err := q.checkDuties(cards); err != nil {
		return nil, nil, errors.Join(err, cards.Close())
	}
	splitter, unsplit, err := splitterOf(c.String("components"), cards[0].Card().Info().Name)
	if err != nil {
		return nil, nil, errors.Join(err, cards.Close())
	}
	return &Verification{request: *q, total: c.Bool("total"), splitter: splitter, Unsplit: unsplit}, cards, nil
}

// Measure measures the linear layers of both models. After an error, the report has the figures measured so far; it
// is nil if no layers were found.
func (q *Verification) Measure(c *cli.Context, cards machines, src, out *weights.Model) (*measure.ModelReport, error) {
	bars := term.NewBars(c)
	defer bars.End()
	r, err := measure.Models(c.Context, cards, src, out, measure.ModelOptions{
		Operands: q.operands(), Workload: q.Workload, TotalOnly: q.total, Duties: q.duties, Meter: q.meter, Splitter: q.splitter, Progress: onCards(bars),
	})
	return r, interrupted(operandError(err), r != nil && r.Measured())
}
