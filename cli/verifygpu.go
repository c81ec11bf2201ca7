package cli

import (
	"errors"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/weights"
)

// verifyMeterFlags are those of verify --gpu.
var verifyMeterFlags = []cli.Flag{
	&cli.BoolFlag{Name: "gpu", Usage: "measure the energy of all linear layers, before and after", DisableDefaultText: true},
	&cli.BoolFlag{Name: "total", Usage: "measure all layers together alone, no row for each kind", DisableDefaultText: true},
	xFlag,
	&cli.StringFlag{Name: "precision", Value: "0.5%", Usage: "stop a row when its interval is ± this `SHARE`", DefaultText: "0.5%"},
	&cli.DurationFlag{Name: "time", Value: 30 * time.Second, Usage: "begin no block of a row that would end after this `TIME`"},
	windowFlag, devicesFlag, seedFlag, componentsFlag, benchFlag,
}

// modelsRequest is what verify --gpu is asked for.
type modelsRequest struct {
	request
	total    bool              // all layers together alone
	splitter *measure.Splitter // of the first card; nil: there is none
	unsplit  string            // why there is none
}

// verifyMeter opens the cards that --gpu asks for; none where it was not given.
func verifyMeter(c *cli.Context, o readings) (*modelsRequest, machines, error) {
	if !c.Bool("gpu") {
		for _, f := range verifyMeterFlags {
			if name := f.Names()[0]; name != "gpu" && c.IsSet(name) {
				return nil, nil, usagef("--%s is about measuring: add --gpu", name)
			}
		}
		return nil, nil, nil
	}
	if c.Bool("json") && c.Bool("bench") {
		return nil, nil, usagef("--json and --bench exclude each other")
	}
	q, err := meterRequest(c, o)
	if err != nil {
		return nil, nil, err
	}
	if err := readSource(c, "x", &q.x); err != nil {
		return nil, nil, err
	}
	cards, err := openMachines(c.String("device"), q.seed)
	if err != nil {
		return nil, nil, err
	}
	splitter, unsplit, err := splitterOf(c.String("components"), cards[0].Card().Info().Name)
	if err != nil {
		return nil, nil, errors.Join(err, cards.Close())
	}
	return &modelsRequest{*q, c.Bool("total"), splitter, unsplit}, cards, nil
}

// measureModels measures the linear layers of both models. The report holds, also beside an error, what was
// measured; it is nil where no layers were found.
func (q *modelsRequest) measureModels(c *cli.Context, cards machines, src, out *weights.Model) (*measure.ModelReport, error) {
	bars := term.NewBars(c)
	defer bars.End()
	r, err := measure.Models(c.Context, cards, src, out, measure.ModelOptions{
		Operands: q.operands(), Workload: q.workload, TotalOnly: q.total, Meter: q.meter, Splitter: q.splitter, Progress: onCards(bars),
	})
	return r, interrupted(operandError(err), r != nil && r.Measured())
}
