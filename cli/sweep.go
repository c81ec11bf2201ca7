package cli

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm/operand"
	"github.com/lowtoggle/lowtoggle/gemm/sweep"
)

var sweepCommand = &cli.Command{
	Name:      "sweep",
	Usage:     "energy and time at several power limits or clocks, before and after",
	ArgsUsage: "[MODEL [OUT]]",
	Description: `Sets the GPU to one power limit (or clock) after the other and measures the linear layers of
MODEL, and of OUT, at each; then says which setting is best by itself, what the conversion saves
by itself, and what both do together: by energy, energy-delay product (EDP) and sum (EDS), and by
energy gained less time lost. All is relative to MODEL at the power limit that is set now, above
which none is set unless --caps names it.

   lowtoggle sweep MODEL OUT --simulate              predicted by a calibration; needs no GPU
   lowtoggle sweep MODEL OUT                         a dry run: says what would be set
   lowtoggle sweep MODEL OUT --change-settings       measures
   lowtoggle sweep MODEL OUT --caps 300..700/50      or --caps 400,550,700
   lowtoggle sweep --against zeros --clocks 1000..1800/200
   lowtoggle sweep MODEL OUT --workload decode -o sweep.svg

In place of MODEL and OUT there may be --w and --against, as measure has them.

Settings change with --change-settings alone, which takes the permission to (root). Before the
first change a second process knows what was set: whether the sweep ends by itself, by an error,
an interrupt or a kill, the power limit is put back, read and compared. A card with other
processes or another sweep, with MIG slices, or whose clocks somebody has locked is refused. What
a clock was locked to cannot be read: after --clocks it is unlocked.

Exit status 1: also where settings could not be put back, or where it was interrupted (what was
measured is shown); 3: not valid, or less precise than --precision asked; 4: no GPU.`,
	Flags: []cli.Flag{
		&cli.StringFlag{Name: "caps", Usage: "`WATTS` to set: 400,500 or 300..700/50", DefaultText: "8 steps"},
		&cli.StringFlag{Name: "clocks", Usage: "`MHZ` to lock clocks at, likewise", DefaultText: "none"},
		&cli.BoolFlag{Name: "change-settings", Usage: "change the card's settings, and put them back", DisableDefaultText: true},
		&cli.BoolFlag{Name: "simulate", Usage: "predict, measure nothing; needs no GPU", DisableDefaultText: true},
		&cli.StringFlag{Name: "workload", Value: "prefill", Usage: "`PHASE`: prefill or decode", DefaultText: "prefill"},
		&cli.StringFlag{Name: "k", Value: "1.5,2", Usage: "`K` of the energy-delay sums", DefaultText: "1.5,2"},
		&cli.StringFlag{Name: "w", Usage: "weights to begin with: a `SOURCE`", DefaultText: "as usual"},
		&cli.StringSliceFlag{Name: "against", Usage: "weights to compare with them: a `SOURCE`", DefaultText: "none"},
		xFlag, productFlags[2], productFlags[3], productFlags[4],
		&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "draw energy and time into `FILE`, an .svg"},
		&cli.DurationFlag{Name: "time", Value: 30 * time.Second, Usage: "`TIME` for a setting, such as 90s", DefaultText: "30s"},
		precisionFlag, windowFlag, deviceFlag, gpuFlag, calibrationFlag, seedFlag, archFlag, jsonFlag, quietFlag,
	},
	Action: func(c *cli.Context) (err error) {
		q, err := readSweep(c)
		if err != nil {
			return err
		}
		defer closing(&err, q.Close)
		if q.simulate {
			r, err := q.predict(c)
			return q.report(c, r, err)
		}
		return q.measure(c)
	},
}

// sweepRequest is what sweep is asked for.
type sweepRequest struct {
	*request
	settings []sweep.Setting // none: the usual
	k        []float64
	workload string
	simulate bool
	picture  string
	short    bool // of the precision that was asked for
}

func readSweep(c *cli.Context) (*sweepRequest, error) {
	q := &sweepRequest{workload: c.String("workload"), simulate: c.Bool("simulate"), picture: c.String("output")}
	if err := checkPicture(q.picture); err != nil {
		return nil, err
	}
	if err := q.flagsFit(c); err != nil {
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
		return nil, usagef("--against is given %d times: a sweep compares two", len(q.against))
	}
	q.cold, q.meter.EDSk = q.workload == "decode", q.k[len(q.k)-1]
	return q, nil
}

// flagsFit refuses flags that exclude each other.
func (q *sweepRequest) flagsFit(c *cli.Context) error {
	if q.workload != "prefill" && q.workload != "decode" {
		return usagef("--workload %s: one phase is swept: give prefill or decode", q.workload)
	}
	with, without := []string{"change-settings", "device", "time", "precision", "window"}, []string{"gpu", "calibration"}
	for _, name := range with {
		if q.simulate && c.IsSet(name) {
			return usagef("--%s is about measuring, and --simulate measures nothing", name)
		}
	}
	for _, name := range without {
		if !q.simulate && c.IsSet(name) {
			return usagef("--%s is about predictions: add --simulate", name)
		}
	}
	return nil
}

// sweepSources puts MODEL and OUT in the place of --w and --against, and decoding's tokens in that of
// --shape.
func sweepSources(c *cli.Context) error {
	set := func(name, value string) error {
		if c.IsSet(name) {
			return usagef("%s stands where --%s is given: give one of them", strings.TrimSuffix(value, ":"), name)
		}
		return c.Set(name, value)
	}
	args := c.Args().Slice()
	if len(args) > 2 || slices.Contains(args, "") {
		return usagef("sweep takes MODEL and OUT, and %s given; see lowtoggle sweep --help", term.Plural(len(args), "argument is", "arguments are"))
	}
	if len(args) == 2 && filepath.Clean(args[0]) == filepath.Clean(args[1]) {
		return usagef("%s is given twice: give the model and its conversion, or the model alone", args[0])
	}
	for i, name := range []string{"w", "against"} {
		if i < len(args) {
			if _, err := operand.Parse(args[i] + ":"); errors.Is(err, operand.ErrNoFile) {
				return err
			} else if err != nil {
				return usageError{err}
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

// names of what is compared; none where nothing is.
func (q *sweepRequest) names() (before, after string) {
	before = strings.TrimSuffix(q.w.Text, ":")
	if len(q.against) > 0 {
		after = strings.TrimSuffix(q.against[0].Text, ":")
	}
	return before, after
}
