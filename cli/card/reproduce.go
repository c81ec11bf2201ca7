package card

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/bench/experiment"
	"github.com/lowtoggle/lowtoggle/bench/paper"
	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cli/flag"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/internal/progress"
	"github.com/lowtoggle/lowtoggle/weights"
)

// reproduceOut is the default folder.
const reproduceOut = "reproduce"

// reproduceFlags are the flags that --report excludes.
var reproduceFlags = []cli.Flag{
	&cli.StringFlag{Name: "type", Usage: "only series of these `TYPES`, such as bf16,fp16", DefaultText: "all"},
	&cli.IntFlag{Name: "size", Usage: "only series of this `SIZE`, 2048 or 8192", DefaultText: "both"},
	&cli.StringFlag{Name: "change", Usage: "only series that change `WHAT`: both (operands) or weights", DefaultText: "either"},
	&cli.StringFlag{Name: "role", Usage: "only series with weights in this `ROLE`, stationary or streaming", DefaultText: "either"},
	&cli.StringFlag{Name: "only", Usage: "only these experiments, `IDS` such as 3a,4b", DefaultText: "all"},
	&cli.IntFlag{Name: "seeds", Value: 1, Usage: "draw the main points from `N` seeds; the paper used 10", DefaultText: "1"},
	&cli.IntFlag{Name: "rounds", Value: 1, Usage: "measure every point `N` times", DefaultText: "1"},
	&cli.BoolFlag{Name: "quick", Usage: "measure only three points of every experiment", DisableDefaultText: true},
	&cli.DurationFlag{Name: "time", Usage: "start no measurement after this `TIME`", DefaultText: "no limit"},
	deviceFlag,
}

var Reproduce = &cli.Command{
	Name:      "reproduce",
	Usage:     "repeat a paper's measurements of bit patterns and power on this GPU",
	ArgsUsage: "[OUT]",
	Description: `Measures the experiments of "Input-Dependent Power Usage in GPUs" again: matrix products whose
operands are drawn from patterns. Each pattern is compared with a baseline. A series has one
type, size and role, and changes both operands or only the weights. The measurements are kept in
OUT (default: reproduce). After an interrupt, the same command continues.

   lowtoggle reproduce --quick --type bf16,fp16     three points of every experiment
   lowtoggle reproduce                              every point from one seed, for an hour
   lowtoggle reproduce --seeds 10                   the main points from ten seeds, for hours
   lowtoggle reproduce OUT --report                 report on OUT; needs no GPU

At the end, reproduce reports which of the paper's takeaways hold, and writes OUT/report.md with
figures. Several GPUs can fill one OUT at the same time, each with its own --type.

The card's settings are never changed. Exit status 3: --time ended before all points were
measured, or measurements are doubtful; 4: no GPU.`,
	Flags: flag.Join(reproduceFlags, []cli.Flag{
		&cli.BoolFlag{Name: "report", Usage: "report on the measurements in OUT; measure nothing", DisableDefaultText: true},
		flag.JSON, flag.Quiet, flag.Log,
	}),
	Action: func(c *cli.Context) (err error) {
		out := reproduceOut
		if c.NArg() > 0 {
			args, err := flag.Arguments(c, "OUT")
			if err != nil {
				return err
			}
			out = args[0]
		}
		if st, err := os.Stat(out); err == nil && !st.IsDir() {
			return exit.OutputError(weights.FileErrorf(out, "is not a folder: name a new folder for the measurements"))
		}
		works, err := reproduceWorks(c)
		if err != nil {
			return err
		}
		if works == nil {
			return reproduceReport(c, out, nil)
		}
		machine, err := openMachine(c.String("device"), 0)
		if err != nil {
			return err
		}
		defer exit.CloseAll(&err, machine.Close)
		err = measureWorks(c, machine, out, works, experiment.Options{Rounds: c.Int("rounds"), Time: c.Duration("time")})
		if c.Context.Err() != nil {
			return err
		}
		return reproduceReport(c, out, err) // one failed series must not hide the others
	},
}

// mostSeeds is the largest --seeds. Ten seeds take hours.
const mostSeeds = 1000

// reproduceWorks returns the series that the flags select; none with --report.
func reproduceWorks(c *cli.Context) ([]experiment.Job, error) {
	if c.Bool("report") {
		for _, f := range reproduceFlags {
			if name := f.Names()[0]; c.IsSet(name) {
				return nil, exit.Usagef("--report measures nothing: leave --%s out", name)
			}
		}
		return nil, nil
	}
	if c.Int("rounds") < 1 {
		return nil, exit.Usagef("--rounds %d: give 1 or more", c.Int("rounds"))
	}
	if c.IsSet("time") && c.Duration("time") <= 0 {
		return nil, exit.Usagef("--time %v: give a time such as 30m", c.Duration("time"))
	}
	types, err := reproduceTypes(c.String("type"))
	if err != nil {
		return nil, err
	}
	role, err := cost.ParseRole(c.String("role"))
	if c.IsSet("role") && err != nil {
		return nil, exit.Usage(fmt.Errorf("--role: %w", err))
	}
	if size := c.Int("size"); c.IsSet("size") && (size == 0 || paper.Jobs(paper.Filter{Size: size}, paper.Points{Seeds: 1}) == nil) {
		return nil, exit.Usagef("--size %d: give 2048 or 8192, or leave it out for both", size)
	}
	if change := experiment.Change(c.String("change")); c.IsSet("change") && change != experiment.Both && change != experiment.Weights {
		return nil, exit.Usagef("--change %s: give %s or %s, or leave it out for either", change, experiment.Both, experiment.Weights)
	}
	f := paper.Filter{Types: types, Size: c.Int("size"), Change: experiment.Change(c.String("change"))}
	if c.IsSet("role") {
		f.Role = &role
	}
	if c.Int("seeds") < 1 {
		return nil, exit.Usagef("--seeds %d: give 1 or more", c.Int("seeds"))
	}
	if c.Int("seeds") > mostSeeds {
		return nil, exit.Usagef("--seeds %d: give at most %d; the paper used 10", c.Int("seeds"), mostSeeds)
	}
	choice := paper.Points{Seeds: c.Int("seeds")}
	if c.IsSet("only") {
		if choice.Experiments, err = reproduceExperiments(c.String("only")); err != nil {
			return nil, err
		}
	}
	if c.Bool("quick") {
		choice.Most = paper.Quick
	}
	works := paper.Jobs(f, choice)
	if works == nil {
		return nil, exit.Usagef("no series matches the flags; the series are %s", reproduceNames())
	}
	return works, nil
}

func reproduceNames() string {
	var names []string
	for _, s := range paper.Setups() {
		names = append(names, s.String())
	}
	return strings.Join(names, ", ")
}

func reproduceExperiments(text string) (ids []string, err error) {
	for id := range strings.SplitSeq(strings.ToLower(text), ",") {
		id = strings.TrimSpace(id)
		if all := paper.Experiments(); !slices.Contains(all, id) {
			return nil, exit.Usagef("--only: unknown experiment %q: use some of %s", id, strings.Join(all, ", "))
		}
		ids = append(ids, id)
	}
	return ids, nil
}

func reproduceTypes(text string) (types []arith.Type, err error) {
	if text == "" {
		return nil, nil
	}
	for name := range strings.SplitSeq(strings.ToLower(text), ",") {
		t, err := arith.ParseType(strings.TrimSpace(name))
		if err != nil {
			return nil, exit.Usage(fmt.Errorf("--type: %w", err))
		}
		types = append(types, t)
	}
	return types, nil
}

// measureWorks measures the points that the folder lacks. It shows progress and also passes it to o.Progress.
func measureWorks(c *cli.Context, m measure.Machine, out string, works []experiment.Job, o experiment.Options) error {
	event, end := term.Progress(c)
	defer end()
	o.Meter.Date, o.Meter.Command = time.Now(), term.CommandLine(os.Args[1:]...)
	before := -1 // number of readings in the folder at the start
	told := o.Progress
	o.Progress = func(p experiment.Progress) {
		if told != nil {
			told(p)
		}
		if before < 0 {
			before = p.Done - 1
		}
		event(progress.Event{Stage: "measure", Done: int64(p.Done - before), Total: int64(p.Total - before)})
	}
	err := experiment.Run(c.Context, m, out, works, o)
	if err = cmp.Or(err, c.Context.Err()); c.Context.Err() != nil { // an interrupt may come between the last point and the report
		return fmt.Errorf("%w: the measurements until then are in %s; run the same command to continue", err, out)
	}
	return err
}
