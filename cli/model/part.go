package model

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/sync/errgroup"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cli/flag"
	"github.com/lowtoggle/lowtoggle/cli/outfile"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/internal/printable"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/apply"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
)

var (
	partFlag   = &cli.StringFlag{Name: "part", Usage: "with --plan: write the part `K/N` of the shards, or auto"}
	finishFlag = &cli.BoolFlag{Name: "finish", Usage: "with --plan: make OUT from all parts", DisableDefaultText: true}
)

// patience is the number of times --finish looks for a file that is not visible yet, over 6 seconds in all.
const patience = 6

// inParts reports whether --part or --finish is given.
func inParts(c *cli.Context) bool { return c.IsSet("part") || c.Bool("finish") }

// convertInParts is convert with --part or --finish.
func convertInParts(c *cli.Context, args []string) error {
	part, err := partFlags(c)
	if err != nil {
		return err
	}
	o, err := planOptions(c)
	if err != nil {
		return err
	}
	var p *plan.Plan
	var reading errgroup.Group // parse the plan and the model's headers at the same time: each may take long
	reading.Go(func() (err error) { p, err = givenPlan(c, c.String("plan")); return err })
	m, err := flag.OpenModel(c.Context, args[0])
	if err == nil {
		defer m.Close()
	}
	if err := reading.Wait(); err != nil {
		return err
	}
	if err != nil {
		return sourceFailed(c, args, part, err)
	}
	po := transform.PartOptions{Patience: patience,
		ApplyOptions: transform.ApplyOptions{Family: o.Family, Workers: o.Workers, Store: storeOf(args[1]), Version: c.App.Version}}
	if c.Bool("finish") {
		if po.Folder, err = folderOptions(c, m); err != nil {
			return err
		}
		return finishParts(c, m, p, args, po)
	}
	return writePart(c, m, p, args, part, o, po)
}

// writePart is convert --part.
func writePart(c *cli.Context, m *weights.Model, p *plan.Plan, args []string, part apply.Part, o transform.Options, po transform.PartOptions) (err error) {
	start := time.Now()
	closeReference, err := openReference(c, &o)
	defer exit.CloseAll(&err, closeReference)
	if err != nil {
		return err
	}
	var closeDevice func() error
	po.Reference = o.Reference
	po.Tokens, closeDevice, err = givenTokens(c, m, args[0], fmt.Sprintf("%s.part-%d", args[1], part.Number), o)
	defer exit.CloseAll(&err, closeDevice)
	if err != nil {
		return err
	}
	event, end := term.Progress(c)
	po.Progress = event
	done, err := transform.ApplyPart(c.Context, m, p, args[1], part, po)
	end()
	if err != nil {
		return partFailed(c, args, part, planError(c, err))
	}
	if err := finish(po.Tokens); err != nil {
		return err
	}
	took := time.Since(start)
	if c.Bool("json") {
		return term.JSON(c.App.Writer, partJSON{args[1], part.Number, part.Of, done.Whole, done.Bytes, took.Seconds(), append([]plan.Shard{}, done.Shards...)})
	}
	w := c.App.Writer
	switch {
	case done.Whole:
		_, err = fmt.Fprintf(w, "%s %s: nothing was written\n", printable.Quote(args[1]), alreadyThere)
		return err
	case len(done.Shards) == 0:
		fmt.Fprintf(w, "part %v has no shards: nothing was written\n", part)
	case done.Before == len(done.Shards):
		fmt.Fprintf(w, "part %v: was already written: %s, %s\n", part, term.Plural(len(done.Shards), "shard", "shards"), term.Size(done.Bytes))
	default:
		fmt.Fprintf(w, "part %v: written: %s, %s in %s\n", part, term.Plural(len(done.Shards), "shard", "shards"), term.Size(done.Bytes), term.Duration(took))
	}
	_, err = fmt.Fprintf(w, "when all parts are written: %s\n", partCommand(c, args, "--finish"))
	return err
}

// partJSON is the output of convert --part --json.
type partJSON struct {
	Output   string       `json:"output"`
	Part     int          `json:"part"`
	Parts    int          `json:"parts"`
	Finished bool         `json:"finished,omitempty"` // the output was finished before, and nothing was done
	Bytes    int64        `json:"bytes"`
	Seconds  float64      `json:"seconds"`
	Shards   []plan.Shard `json:"shards"`
}

// finishParts is convert --finish.
func finishParts(c *cli.Context, m *weights.Model, p *plan.Plan, args []string, po transform.PartOptions) error {
	start := time.Now()
	event, end := term.Progress(c)
	po.Progress = event
	man, before, err := transform.FinishParts(c.Context, m, p, args[1], po)
	end()
	if err != nil {
		return notFinished(c, args, planError(c, err))
	}
	took, did := time.Since(start), "finished"
	if before {
		did = alreadyThere
	}
	if c.Bool("json") {
		report := convertReport(m, layoutOf(c, m), man, args[1], took)
		report.Finished = before
		if err := term.JSON(c.App.Writer, report); err != nil {
			return err
		}
	} else {
		printPlan(c.App.Writer, m, p, layoutOf(c, m))
		fmt.Fprintf(c.App.Writer, "\n%s %s\ncheck the result: %s\n", printable.Quote(args[1]), done(did, sizeOf(m, args[1], man), took),
			term.CommandLine(withReference(c, checkWith(c, p.Request, "verify", args[0], args[1])...)...))
	}
	return errors.Join(missed(p), nothingLeft(m, p), unfit(c, m))
}

// planError adds the plan's file to the error of a plan that does not fit.
func planError(c *cli.Context, err error) error {
	if errors.Is(err, plan.ErrInvalid) {
		return fmt.Errorf("%s: %w", c.String("plan"), err)
	}
	return err
}

// partFailed adds to a part's error the command that runs the part again.
func partFailed(c *cli.Context, args []string, part apply.Part, err error) error {
	if missing := outfile.CheckParent(args[1]); errors.Is(err, fs.ErrNotExist) && missing != nil {
		err = fmt.Errorf("part %v: %w", part, missing)
	}
	if errors.Is(err, apply.ErrOther) { // the same command would fail again
		return err
	}
	return fmt.Errorf("%w\nrun part %v again: %s", err, part, partCommand(c, args, "--part", part.String()))
}

// sourceFailed is partFailed for a source that cannot be opened, such as a source on a disk that vanished.
func sourceFailed(c *cli.Context, args []string, part apply.Part, err error) error {
	err = apply.Temporary(err, args[1]+".partial")
	if c.Bool("finish") {
		return err
	}
	err = fmt.Errorf("part %v: %w", part, err)
	if _, absent := os.Stat(args[0]); !weights.IsURL(args[0]) && errors.Is(absent, fs.ErrNotExist) { // the same command would fail again
		return err
	}
	return fmt.Errorf("%w\nrun part %v again: %s", err, part, partCommand(c, args, "--part", part.String()))
}

// notFinished adds to the error of --finish the commands of the missing parts.
func notFinished(c *cli.Context, args []string, err error) error {
	var missing *apply.PartsError
	if !errors.As(err, &missing) {
		return err
	}
	var lines strings.Builder
	for i, n := range missing.Parts {
		if i == mostCommands {
			fmt.Fprintf(&lines, "\n  and the other missing parts")
			break
		}
		fmt.Fprintf(&lines, "\n  %s", partCommand(c, args, "--part", apply.Part{Number: n, Of: missing.Of}.String()))
	}
	return fmt.Errorf("%w\nrun the missing parts again, then finish:%s\n  %s", err, lines.String(), partCommand(c, args, "--finish"))
}

// mostCommands is the largest number of parts whose commands an error lists.
const mostCommands = 4

// partCommand returns the command line of another part, or of --finish, of the same conversion.
func partCommand(c *cli.Context, args []string, words ...string) string {
	line := append(slices.Clone([]string{"convert", args[0], args[1], "--plan", c.String("plan")}), words...)
	line = withArch(c, line...)
	if words[0] == "--finish" {
		for _, name := range []string{"keep", "base-model"} {
			if c.IsSet(name) {
				line = append(line, "--"+name, c.String(name))
			}
		}
	}
	if words[0] == "--part" {
		line = withTokens(c, withReference(c, line...)...)
		if c.IsSet("device") {
			line = append(line, "--device", c.String("device"))
		}
	}
	return term.CommandLine(line...)
}

// partFlags reads --part. It returns an error for flags that exclude --part or --finish.
func partFlags(c *cli.Context) (part apply.Part, err error) {
	name := "--part"
	if c.Bool("finish") {
		if name = "--finish"; c.IsSet("part") {
			return part, exit.Usagef("--part and --finish exclude each other: run every part, then --finish")
		}
	}
	if c.String("plan") == "" {
		return part, exit.Usagef("%s needs a plan: write one with lowtoggle plan, and give --plan FILE", name)
	}
	if c.Bool("resume") {
		return part, exit.Usagef("--resume and %s exclude each other: leave --resume out; the command continues without it", name)
	}
	if c.IsSet("output") {
		return part, exit.Usagef("--output and %s exclude each other: leave --output out; lowtoggle verify MODEL OUT -o FILE writes a report of OUT", name)
	}
	if c.Bool("finish") {
		for _, f := range []string{"tokens", "device", "search-dir"} {
			if c.IsSet(f) {
				return part, exit.Usagef("--finish takes no --%s: leave it out; lowtoggle verify --tokens measures the loss of OUT", f)
			}
		}
		return part, nil
	}
	if part, err = parsePart(c.String("part"), os.Getenv); err != nil {
		err = exit.Usage(fmt.Errorf("--part %s: %w", c.String("part"), err))
	}
	return part, err
}

// parsePart reads K/N, auto or auto/N.
func parsePart(text string, getenv func(string) string) (part apply.Part, err error) {
	number, of, slash := strings.Cut(text, "/")
	if slash {
		if part.Of, err = strconv.Atoi(of); err != nil || part.Of < 1 {
			return part, errors.New("give two whole numbers, as in 3/16, or auto/16")
		}
	}
	switch {
	case number == "auto":
		part, err = autoPart(part.Of, getenv)
	case !slash:
		err = errors.New("give two whole numbers, as in 3/16, or auto")
	default:
		if part.Number, err = strconv.Atoi(number); err != nil {
			err = errors.New("give two whole numbers, as in 3/16, or auto")
		}
	}
	if err != nil {
		return part, err
	}
	return part, part.Check()
}

// Environment variables of --part auto.
const (
	slurmTask = "SLURM_ARRAY_TASK_ID"
	kubeIndex = "JOB_COMPLETION_INDEX"
	partsVar  = "LOWTOGGLE_PARTS"
)

// autoPart reads the part from the environment variables of an array job. of is the number of parts, 0 if unknown.
func autoPart(of int, getenv func(string) string) (apply.Part, error) {
	read := func(name string) (n int, err error) {
		if n, err = strconv.Atoi(getenv(name)); err != nil {
			err = fmt.Errorf("the environment variable %s is %q, not a whole number: name the part, as in 3/16", name, getenv(name))
		}
		return n, err
	}
	var err error
	if of == 0 && getenv(partsVar) != "" {
		if of, err = read(partsVar); err != nil {
			return apply.Part{}, err
		}
	}
	switch {
	case getenv(slurmTask) != "":
		id, err := read(slurmTask)
		if err != nil || of != 0 {
			return apply.Part{Number: id, Of: of}, err
		}
		return slurmPart(id, read)
	case getenv(kubeIndex) != "":
		index, err := read(kubeIndex)
		if err == nil && of == 0 {
			err = fmt.Errorf("%s is set, but the number of parts is unknown: give auto/N, or set %s to the job's completions", kubeIndex, partsVar)
		}
		return apply.Part{Number: index + 1, Of: of}, err
	}
	return apply.Part{}, fmt.Errorf("neither %s (Slurm) nor %s (Kubernetes) is set: name the part, as in 3/16", slurmTask, kubeIndex)
}

// slurmPart returns the part of a Slurm task. The array's task numbers must be consecutive.
func slurmPart(id int, read func(string) (int, error)) (apply.Part, error) {
	first, err := read("SLURM_ARRAY_TASK_MIN")
	if err != nil {
		return apply.Part{}, err
	}
	last, err := read("SLURM_ARRAY_TASK_MAX")
	if err != nil {
		return apply.Part{}, err
	}
	count, err := read("SLURM_ARRAY_TASK_COUNT")
	if err == nil && last-first+1 != count {
		err = fmt.Errorf("the array's %d tasks are not numbered consecutively from %d to %d: give auto/N, which takes %s as the part", count, first, last, slurmTask)
	}
	return apply.Part{Number: id - first + 1, Of: count}, err
}
