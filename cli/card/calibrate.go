package card

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/bench/experiment"
	"github.com/lowtoggle/lowtoggle/bench/probe"
	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cli/flag"
	"github.com/lowtoggle/lowtoggle/cli/outfile"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/internal/bounded"
	"github.com/lowtoggle/lowtoggle/internal/progress"
	"github.com/lowtoggle/lowtoggle/weights"
)

// calibrateOut is the default folder.
const calibrateOut = "calibration"

var Calibrate = &cli.Command{
	Name:      "calibrate",
	Usage:     "fit the cost model to this GPU",
	ArgsUsage: "[OUT]",
	Description: `Measures the energy of matrix products whose operands differ in their bit patterns. The
measurements go into the folder OUT (default: calibration). Then calibrate fits the cost model
and writes OUT.json, for --calibration of other commands. After an interrupt, the same command
continues where it stopped.

   lowtoggle calibrate                          less than ten minutes
   lowtoggle calibrate --full h200              more patterns, shapes, types: most of an hour
   lowtoggle calibrate h200 --from A --from B   fits to the series in A and B; needs no GPU
   lowtoggle calibrate --list > power.csv       prints what to measure on another card
   lowtoggle calibrate a100 --from power.csv    fits to a table of another program's measurements
   lowtoggle calibrate --components             power of multipliers, on-chip traffic and memory

--components measures 89 kernels in about two minutes, and writes each measurement to
OUT-components.json. Then calibrate fits a model of power by component to 44 kernels, and tests
the model on the other 45. The test compares the model with two naive models: constant power, and
power as a linear function of the duty (the share of busy time). If the model's error below the
power cap is more than half the error of the better naive model, the exit status is 3 and no
clock is advised. If the mean error is above 15 %, power is not split by component.

If OUT-components.json is of the same card, calibrate --components adds the missing measurements.
--anew replaces this file, or a damaged file. A file of another card is never changed. profile
and verify --gpu read the file that their flag --components names, or calibration-components.json
in the current folder. Without a complete file of the card, they use the card's built-in model,
if there is one.

If a type has few measurements, its coefficients stay near those of the built-in calibration. The
table shows the prediction error for families of patterns that the fit did not use. The column
"points" counts these predictions.

--from also takes a CSV file, with the columns pattern, type, shape (MxNxK), role, and the joules
and seconds of one execution. The columns watts, clock_mhz and cold are optional. The activations
are random: normal(0,32) in int8, normal(0,1) in other types. --list prints such a table with
empty joules and seconds. The table has the products that calibrate measures. With --full, the
table has the products that calibrate --full measures.

Rows of the same type, shape, role and cold form a group. Each group needs a row of random
weights: normal(0,32) in int8, normal(0,16) in fp8, normal(0,1) in other types, as --list prints.
Each type also needs 12 other patterns with weights on chip, or 12 with weights from memory
(cold), or both. With 40 or more, the coefficients do not depend on the built-in calibration. A
group's rows of one pattern are averaged. The card is named after OUT. docs/own-card.md has an
example.

A simulated card takes as long as a real one, except with --components. --time 1m ends the
measurements after a minute; the same command continues them.

The card's settings are never changed. Exit status 3: --time ended before all points were
measured; with --components, some kernels could not be measured, or the model is inaccurate.
Exit status 4: no GPU.`,
	Flags: flag.Join([]cli.Flag{
		&cli.BoolFlag{Name: "full", Usage: "measure more patterns and shapes, and also fp32", DisableDefaultText: true},
		&cli.BoolFlag{Name: "list", Usage: "print the products to measure, as a table for --from", DisableDefaultText: true},
		&cli.BoolFlag{Name: "components", Usage: "measure the power of each component of the card", DisableDefaultText: true},
		&cli.BoolFlag{Name: "anew", Usage: "with --components: measure all kernels again", DisableDefaultText: true},
		&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "with --components: draw power by component as `FILE` (.svg, .png)"},
		&cli.StringSliceFlag{Name: "from", Usage: "fit to earlier measurements in `FOLDER`, or in a CSV file"},
		&cli.DurationFlag{Name: "time", Usage: "start no measurement after this `TIME`", DefaultText: "no limit"},
		deviceFlag, flag.JSON, flag.Quiet, flag.Log,
	}),
	Action: func(c *cli.Context) error {
		if c.Bool("list") {
			return calibrateList(c)
		}
		out := calibrateOut
		if c.NArg() > 0 {
			args, err := flag.Arguments(c, "OUT")
			if err != nil {
				return err
			}
			out = args[0]
		}
		if out = filepath.Clean(out); out == "." || out == ".." || out == "/" {
			return exit.Usagef("calibrate writes the folder OUT and the file OUT.json beside it, so %s cannot be OUT: give the name of a new folder", out)
		}
		if c.IsSet("time") && c.Duration("time") <= 0 {
			return exit.Usagef("--time %v: give a time such as 30m", c.Duration("time"))
		}
		if c.Bool("components") {
			return calibrateComponents(c, out)
		}
		if c.IsSet("output") || c.IsSet("anew") {
			return exit.Usagef("-o and --anew need --components: add --components, or leave -o and --anew out")
		}
		replaced, err := checkCalibrationFile(out + ".json")
		if err != nil {
			return err
		}
		from := c.StringSlice("from")
		if len(from) == 0 && isModelFolder(out) {
			return exit.Usagef("%s: is a model's folder, and calibrate writes measurements into OUT: give the name of a new folder", out)
		}
		for _, folder := range from {
			if isModelFolder(folder) {
				return exit.Usagef("--from %s: is a model's folder: give the folder of a series, as lowtoggle calibrate writes it, or a CSV file", folder)
			}
		}
		if len(from) == 0 {
			if err := calibrateMeasure(c, out); err != nil {
				return err
			}
			from = []string{out}
		} else if c.IsSet("full") || c.IsSet("time") || c.IsSet("device") {
			return exit.Usagef("--full, --time and --device cannot be combined with --from, which measures nothing: leave them out")
		}
		r := &calibrateJSON{File: out + ".json", Replaced: replaced}
		fit := func(progress func(done, total int)) (*cost.Calibration, error) {
			return probe.CalibrateFolders(c.Context, from, nil, progress)
		}
		if slices.ContainsFunc(from, isTable) {
			if len(from) > 1 {
				return exit.Usagef("--from: give one CSV file, and no other --from")
			}
			table, err := readTable(from[0], out)
			if err != nil {
				return err
			}
			r.Rows = len(table.Rows)
			r.Copies, r.Repeated = table.Repeats()
			fit = func(progress func(done, total int)) (*cost.Calibration, error) {
				return calibrateTable(c.Context, from[0], table, progress)
			}
		}
		if err := r.fit(c, fit); err != nil {
			return err
		}
		if c.Bool("json") {
			return term.JSON(c.App.Writer, r)
		}
		r.print(c.App.Writer)
		return nil
	},
}

// calibrateList prints the products that calibrate measures.
func calibrateList(c *cli.Context) error {
	for _, name := range []string{"components", "anew", "output", "from", "time", "device", "json"} {
		if c.IsSet(name) {
			return exit.Usagef("--list prints a table in CSV and measures nothing: leave out --%s", name)
		}
	}
	if c.NArg() > 0 {
		return exit.Usagef("--list writes no files: leave out %s, and redirect the output, as in lowtoggle calibrate --list > power.csv", c.Args().First())
	}
	return probe.WriteList(c.App.Writer, c.Bool("full"))
}

// checkCalibrationFile returns an error if the file cannot be written, or exists and is not a calibration. replaced
// is true if the file is a calibration.
func checkCalibrationFile(name string) (replaced bool, err error) {
	if err := outfile.Check(name); err != nil {
		return false, err
	}
	st, err := os.Stat(name)
	if err != nil || !st.Mode().IsRegular() || st.Size() == 0 {
		return false, nil // outfile.Check has checked that the file can be written
	}
	var head struct {
		Version *int `json:"calibration_version"`
	}
	data, err := bounded.ReadFile(name, bounded.Config)
	if err != nil || json.Unmarshal(data, &head) != nil || head.Version == nil {
		return false, exit.OutputExists(weights.FileErrorf(name, "exists and is not a calibration, so lowtoggle does not replace it: give another OUT"))
	}
	return true, nil
}

func calibrateMeasure(c *cli.Context, out string) (err error) {
	works, err := probe.Jobs(c.Bool("full"))
	if err != nil {
		return err
	}
	machine, err := openMachine(c.String("device"), 0)
	if err != nil {
		return err
	}
	defer exit.CloseAll(&err, machine.Close)
	short := calibrateShortJSON{Card: machine.Card().Info().Name, Series: out}
	err = measureWorks(c, machine, out, works, experiment.Options{Time: c.Duration("time"), Progress: func(p experiment.Progress) {
		short.Measured, short.Points = p.Done, p.Total
	}})
	if !errors.Is(err, experiment.ErrTime) {
		return err
	}
	if short.Missing = err.Error(); c.Bool("json") {
		if failed := term.JSON(c.App.Writer, short); failed != nil {
			return failed
		}
	}
	return fmt.Errorf("%w: %w", exit.ErrShort, err)
}

// isModelFolder reports whether a folder holds a model's weights or configuration.
func isModelFolder(folder string) bool {
	names, err := filepath.Glob(filepath.Join(folder, "*.safetensors"))
	_, absent := os.Stat(filepath.Join(folder, weights.ConfigName))
	return err == nil && names != nil || absent == nil
}

func isTable(name string) bool { return strings.EqualFold(filepath.Ext(name), ".csv") }

// readTable reads a table of measurements. Until the fit is done, computed features are kept in a file beside
// OUT.json.
func readTable(name, out string) (t probe.Table, err error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return t, fmt.Errorf("--from: %w", weights.Absent(name, "there is no such file: give a table of measurements; lowtoggle calibrate --list prints one to fill in"))
	}
	if err != nil {
		return t, fmt.Errorf("--from: %w", err)
	}
	defer f.Close()
	rows, err := probe.ReadTable(name, f)
	if err != nil {
		return t, err
	}
	st, err := f.Stat()
	if err != nil {
		return t, err
	}
	return probe.Table{Rows: rows, Card: filepath.Base(out), Date: st.ModTime().UTC().Format(time.DateOnly), Kept: out + ".features.json"}, nil
}

// calibrateTable fits a calibration to the table in a file.
func calibrateTable(ctx context.Context, name string, table probe.Table, progress func(done, total int)) (*cost.Calibration, error) {
	table.Progress = progress
	c, err := table.Calibrate(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	c.Command = "lowtoggle calibrate --from " + filepath.Base(name)
	return c, nil
}

// fit fits a calibration to measurements and writes its file.
func (r *calibrateJSON) fit(c *cli.Context, fit func(progress func(done, total int)) (*cost.Calibration, error)) error {
	event, end := term.Progress(c)
	fitted, err := fit(func(done, total int) {
		event(progress.Event{Stage: "fit", Done: int64(done), Total: int64(total)})
	})
	end()
	if missing, ok := errors.AsType[*fs.PathError](err); ok && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--from: %w", weights.Absent(missing.Path, "there is no such file or folder: name a folder that lowtoggle calibrate has written, or a table that ends in .csv"))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--from: %w: name a folder that lowtoggle calibrate has written, or a table that ends in .csv", err)
	}
	if errors.Is(err, context.Canceled) {
		again := "run the same command again"
		if r.Rows > 0 { // the features of a table's rows are kept
			again += " to continue"
		}
		return fmt.Errorf("%w; %s", err, again)
	}
	if err != nil {
		return err
	}
	if err := fitted.Write(r.File); err != nil {
		return err
	}
	r.Card, r.Models, r.Warnings = fitted.Card, fitted.Models, fitted.Doubts()
	return nil
}

// calibrateShortJSON is the output of calibrate --json if the time ended before enough was measured for a fit.
type calibrateShortJSON struct {
	Card     string `json:"card"`
	Series   string `json:"series"`   // the folder of the measurements
	Measured int    `json:"measured"` // of Points, in this run and earlier ones
	Points   int    `json:"points"`
	Missing  string `json:"missing"` // why there is no fit, and what to do
}
