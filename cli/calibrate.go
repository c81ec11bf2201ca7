package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/bench/experiment"
	"github.com/lowtoggle/lowtoggle/bench/probe"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/transform"
)

// calibrateOut is where series go if nothing is said.
const calibrateOut = "calibration"

var calibrateCommand = &cli.Command{
	Name:      "calibrate",
	Usage:     "fit the cost model to this GPU",
	ArgsUsage: "[OUT]",
	Description: `Measures products by patterns that tell apart what a card's datapath does with bits, into the
folder OUT (calibration if not given), and fits the cost model to them: OUT.json, which
predict, inspect, plan and convert take as --calibration. Broken off, the same command goes on.

   lowtoggle calibrate                          less than ten minutes
   lowtoggle calibrate --full h200              every type and pattern, for most of an hour
   lowtoggle calibrate h200 --from A --from B   fits to the series in A and B; needs no GPU
   lowtoggle calibrate --components             watts of multipliers, on-chip movement and memory

--components measures some 45 kernels in some three minutes, writes them one by one to
OUT-components.json, fits a model of power by component, and judges it by ten that the fit
never saw. Where these are off by more than 5 % there is no advice, and the exit status is 3;
by more than 15 % no split is shown. profile and verify --gpu show where power goes by the file
that their --components names, else by calibration-components.json where they run. A file of the
same card is gone on with; --anew replaces it, or a damaged one. Another card's is left alone.

Where a type has few points its coefficients stay near those of the built-in H200. The table says
how far predictions were off for families of patterns that the fit had not seen.

Nothing about the card is ever changed. Exit status 3: the time was over first, some kernels
could not be measured, or components fit badly; 4: no GPU.`,
	Flags: flags([]cli.Flag{
		&cli.BoolFlag{Name: "full", Usage: "measure every type and pattern", DisableDefaultText: true},
		&cli.BoolFlag{Name: "components", Usage: "find what each component of the card draws", DisableDefaultText: true},
		&cli.BoolFlag{Name: "anew", Usage: "with --components: measure all kernels again", DisableDefaultText: true},
		&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "draw components into `FILE`, an SVG"},
		&cli.StringSliceFlag{Name: "from", Usage: "measure nothing, take series in `FOLDER`, or a file of components"},
		&cli.DurationFlag{Name: "time", Usage: "begin no points after this `TIME`", DefaultText: "no end"},
		deviceFlag, jsonFlag, quietFlag,
	}),
	Action: func(c *cli.Context) error {
		out := calibrateOut
		if c.NArg() > 0 {
			args, err := arguments(c, "OUT")
			if err != nil {
				return err
			}
			out = args[0]
		}
		if out = filepath.Clean(out); out == "." || out == ".." || out == "/" {
			return usagef("OUT is the name of a new folder, and of the file beside it: %s is neither", out)
		}
		if c.IsSet("time") && c.Duration("time") <= 0 {
			return usagef("--time %v: give a time such as 30m", c.Duration("time"))
		}
		if c.Bool("components") {
			return calibrateComponents(c, out)
		}
		if c.IsSet("output") || c.IsSet("anew") {
			return usagef("-o and --anew are about components: add --components")
		}
		if err := checkWritable(out + ".json"); err != nil {
			return err
		}
		from := c.StringSlice("from")
		if len(from) == 0 {
			if err := calibrateMeasure(c, out); err != nil {
				return err
			}
			from = []string{out}
		} else if c.IsSet("full") || c.IsSet("time") || c.IsSet("device") {
			return usagef("--full, --time and --device are about measuring, and --from measures nothing")
		}
		r, err := calibrateFit(c, from, out+".json")
		if err != nil {
			return err
		}
		if c.Bool("json") {
			return term.JSON(c.App.Writer, r)
		}
		r.print(c.App.Writer)
		return nil
	},
}

func calibrateMeasure(c *cli.Context, out string) (err error) {
	works, err := probe.Works(c.Bool("full"))
	if err != nil {
		return err
	}
	machine, err := openMachine(c.String("device"), 0)
	if err != nil {
		return err
	}
	defer closing(&err, machine.Close)
	err = measureWorks(c, machine, out, works, experiment.Options{Time: c.Duration("time")})
	if errors.Is(err, experiment.ErrTime) {
		return fmt.Errorf("%w: %w", errShort, err)
	}
	return err
}

// calibrateFit fits to the series in folders and writes the calibration's file.
func calibrateFit(c *cli.Context, from []string, file string) (*calibrateJSON, error) {
	var all []*experiment.Series
	for _, folder := range from {
		series, err := experiment.LoadFolder(folder)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w; lowtoggle calibrate measures some", err)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, series...)
	}
	event, end := term.Progress(c)
	fitted, err := calibrateTo(c.Context, all, event)
	end()
	if err != nil {
		return nil, err
	}
	fitted.Command = all[0].Sessions[0].Command
	if err := fitted.Write(file); err != nil {
		return nil, err
	}
	return &calibrateJSON{file, fitted.Card, fitted.Models}, nil
}

func calibrateTo(ctx context.Context, all []*experiment.Series, event func(transform.Event)) (*cost.Calibration, error) {
	return probe.Calibrate(ctx, all, nil, func(done, total int) {
		event(transform.Event{Stage: "fit", Done: int64(done), Total: int64(total)})
	})
}

// calibrateJSON is what calibrate --json prints.
type calibrateJSON struct {
	File   string       `json:"file"`
	Card   string       `json:"card"`
	Models []cost.Model `json:"models"`
}

func (r *calibrateJSON) print(w io.Writer) {
	fmt.Fprintf(w, "%s: predictions for families of patterns that the fit had not seen\n\n", r.Card)
	tab := term.NewTable("type", "weights", "points", "mean error", "worst")
	for _, m := range r.Models {
		from := "on chip"
		if m.Cold {
			from = "from memory"
		}
		tab.Add(m.Type.String(), from, fmt.Sprint(m.Quality.Points), points(m.Quality.Mean), points(m.Quality.Worst))
	}
	tab.Print(w)
	fmt.Fprintf(w, "\nerrors in points of relative energy\nwritten: %s\n", r.File)
}

// points of relative energy.
func points(v float64) string { return fmt.Sprintf("%.2f", 100*v) }
