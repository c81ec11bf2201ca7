package card

import (
	"cmp"
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cli/flag"
	"github.com/lowtoggle/lowtoggle/cli/outfile"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm/operand"
	"github.com/lowtoggle/lowtoggle/gemm/sweep"
)

var Sweep = &cli.Command{
	Name:      "sweep",
	Usage:     "measure energy and time at several power limits or clocks",
	ArgsUsage: "[MODEL [OUT]]",
	Description: `Measures the linear layers of MODEL, and of its conversion OUT, at several power limits or
clocks of the GPU. The report compares the best setting alone, the conversion alone, and both
together. The metrics are energy, energy-delay product (EDP), energy-delay sum (EDS), and energy
gain minus time loss. Energy and time are relative to MODEL at the card's present power limit, or
with --simulate at the calibration's. A higher limit is only set if --caps names it.

   lowtoggle sweep MODEL OUT --simulate              predict by a calibration; needs no GPU
   lowtoggle sweep MODEL OUT                         a dry run: show what would be set
   lowtoggle sweep MODEL OUT --change-settings       measure
   lowtoggle sweep MODEL OUT --caps 300..700/50      or --caps 400,550,700
   lowtoggle sweep --against zeros --clocks 1000..1800/200
   lowtoggle sweep MODEL OUT --workload decode -o sweep.svg
   lowtoggle sweep MODEL OUT --simulate -o report.html
   lowtoggle sweep MODEL OUT --simulate --csv > sweep.csv

--w and --against replace MODEL and OUT; see measure --help.

Settings only change with --change-settings, which needs root. Before the first change a watchdog
process receives the original settings. The settings are restored and checked when the sweep
ends, fails, is interrupted or is killed. A sweep is refused on a card with other processes,
another sweep, MIG slices, or a clock that stays locked under load. A sweep with --clocks leaves
the clock unlocked, because the driver does not report the clock of an earlier lock.

Exit status 1: failed, settings could not be restored, or interrupted (the report has what was
measured); 3: the measurement is invalid, or less precise than the given --precision; 4: no GPU.`,
	Flags: []cli.Flag{
		&cli.StringFlag{Name: "caps", Usage: "`WATTS` to set: 400,500 or 300..700/50", DefaultText: "8 steps"},
		&cli.StringFlag{Name: "clocks", Usage: "`MHZ` to lock the clocks at: 1000..1800/200", DefaultText: "none"},
		&cli.BoolFlag{Name: "change-settings", Usage: "change the card's settings, and restore them", DisableDefaultText: true},
		&cli.BoolFlag{Name: "simulate", Usage: "predict instead of measuring; needs no GPU", DisableDefaultText: true},
		&cli.StringFlag{Name: "workload", Value: "prefill", Usage: "`PHASE`: prefill or decode", DefaultText: "prefill"},
		&cli.StringFlag{Name: "k", Value: "1.5,2", Usage: "`K` of EDS = ((K−1)·energy + time)/K", DefaultText: "1.5,2"},
		&cli.StringFlag{Name: "w", Usage: "original weights: a `SOURCE`", DefaultText: "normal(0,0.02)"},
		&cli.StringSliceFlag{Name: "against", Usage: "converted weights: a `SOURCE`", DefaultText: "none"},
		xFlag, productFlags[2], productFlags[3], productFlags[4],
		outfile.PictureFlag,
		&cli.DurationFlag{Name: "time", Value: 30 * time.Second, Usage: "measure each setting for at most `TIME`", DefaultText: "30s"},
		precisionFlag, windowFlag, deviceFlag, flag.GPU, flag.Calibration, flag.Seed, flag.Arch, flag.CSV, flag.JSON, flag.Quiet, flag.Log,
	},
	Action: func(c *cli.Context) (err error) {
		q, err := readSweep(c)
		if err != nil {
			return err
		}
		defer exit.CloseAll(&err, q.Close)
		if q.simulate {
			r, err := q.predict(c)
			return q.report(c, r, err)
		}
		return q.measure(c)
	},
}

// sweepRequest holds the flags of sweep.
type sweepRequest struct {
	*request
	settings []sweep.Setting // empty: the default settings
	k        []float64
	workload string
	simulate bool
	picture  string
	short    bool // the requested precision was not reached
}

func readSweep(c *cli.Context) (*sweepRequest, error) {
	if err := flag.OneFormat(c); err != nil {
		return nil, err
	}
	q := &sweepRequest{workload: c.String("workload"), simulate: c.Bool("simulate"), picture: c.String("output")}
	if err := outfile.CheckOutput(q.picture, nil, outfile.Pictures...); err != nil {
		return nil, err
	}
	if err := q.checkFlags(c); err != nil {
		return nil, err
	}
	var err error
	if q.settings, err = readSettings(c); err != nil {
		return nil, err
	}
	if q.k, err = readK(c.String("k")); err != nil {
		return nil, err
	}
	if err := sweepSources(c); err != nil {
		return nil, err
	}
	if q.request, err = measureRequest(c); err != nil {
		return nil, err
	}
	if len(q.against) > 1 {
		return nil, exit.Usagef("--against is given %d times, but a sweep compares two sources: give it once", len(q.against))
	}
	if err := outfile.CheckOutput(q.picture, q.models(), outfile.Pictures...); err != nil {
		return nil, err
	}
	q.cold, q.meter.EDSk = q.workload == "decode", q.k[len(q.k)-1]
	return q, nil
}

// checkFlags refuses flags that exclude each other.
func (q *sweepRequest) checkFlags(c *cli.Context) error {
	if q.workload != "prefill" && q.workload != "decode" {
		return exit.Usagef("--workload %s: a sweep takes one phase: give prefill or decode", q.workload)
	}
	with, without := []string{"change-settings", "device", "time", "precision", "window"}, []string{"gpu", "calibration"}
	for _, name := range with {
		if q.simulate && c.IsSet(name) {
			return exit.Usagef("--simulate measures nothing: leave --%s out", name)
		}
	}
	for _, name := range without {
		if !q.simulate && c.IsSet(name) {
			return exit.Usagef("--%s is for predictions: add --simulate", name)
		}
	}
	return nil
}

// sweepSources sets --w and --against from MODEL and OUT, and --shape to the tokens of decoding.
func sweepSources(c *cli.Context) error {
	set := func(name, value string) error {
		if c.IsSet(name) {
			return exit.Usagef("%s and --%s exclude each other: leave one of them out", strings.TrimSuffix(value, ":"), name)
		}
		return c.Set(name, value)
	}
	args := c.Args().Slice()
	if len(args) > 2 || slices.Contains(args, "") {
		return exit.Usagef("sweep takes MODEL and OUT, and %s given; see lowtoggle sweep --help", term.Plural(len(args), "argument is", "arguments are"))
	}
	if len(args) == 2 && filepath.Clean(args[0]) == filepath.Clean(args[1]) {
		return exit.Usagef("%s is given twice: give the model and its conversion, or the model alone", args[0])
	}
	for i, name := range []string{"w", "against"} {
		if i < len(args) {
			if _, err := operand.Parse(args[i] + ":"); errors.Is(err, operand.ErrNoFile) {
				return err
			} else if err != nil {
				return exit.Usage(err)
			}
			if err := set(name, args[i]+":"); err != nil {
				return err
			}
		}
	}
	if !c.IsSet("against") {
		if err := c.Set("against", "none"); err != nil {
			return err
		}
	}
	if c.String("workload") != "decode" || c.IsSet("shape") {
		return nil
	}
	w, err := operand.Parse(c.String("w"))
	return c.Set("shape", decodeShape(c.IsSet("w") && (err != nil || w.HasShape())))
}

// names returns the names of the weights; after is empty without --against.
func (q *sweepRequest) names() (before, after string) {
	before = strings.TrimSuffix(q.w.Text, ":")
	if len(q.against) > 0 {
		after = strings.TrimSuffix(q.against[0].Text, ":")
	}
	return before, after
}

// readSettings reads --caps and --clocks.
func readSettings(c *cli.Context) (all []sweep.Setting, err error) {
	for _, f := range []struct {
		name string
		of   func(float64) sweep.Setting
	}{
		{"caps", func(v float64) sweep.Setting { return sweep.Setting{Cap: v} }},
		{"clocks", func(v float64) sweep.Setting { return sweep.Setting{Clock: v} }},
	} {
		if !c.IsSet(f.name) {
			continue
		}
		text := c.String(f.name)
		values, err := sweep.ParseValues(text)
		if err != nil {
			return nil, exit.Usagef("--%s %s: %v", f.name, cmp.Or(text, "''"), err)
		}
		for _, v := range values {
			if s := f.of(v); !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
	}
	if len(all) > sweep.MaxSettings {
		return nil, exit.Usagef("--caps and --clocks name %d settings, but a sweep visits at most %d: name fewer", len(all), sweep.MaxSettings)
	}
	return all, nil
}

// readK reads -k.
func readK(text string) (list []float64, err error) {
	for part := range strings.SplitSeq(text, ",") {
		v, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil || !(v > 1 && v < 1000) {
			return nil, exit.Usagef("-k %s: give numbers above 1 and below 1000, such as 1.5,2: with k = 2, saving all energy makes up for twice the time", cmp.Or(text, "''"))
		}
		if slices.Contains(list, v) {
			return nil, exit.Usagef("-k %s: %g is given twice: give it once", text, v)
		}
		list = append(list, v)
	}
	return list, nil
}
