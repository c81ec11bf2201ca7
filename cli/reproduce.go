package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/bench/experiment"
	"github.com/lowtoggle/lowtoggle/bench/paper"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/transform"
)

// reproduceOut is the folder where none is named.
const reproduceOut = "reproduce"

// reproduceFlags are those about measuring.
var reproduceFlags = []cli.Flag{
	&cli.StringFlag{Name: "type", Usage: "only series of these `TYPES`, such as bf16,fp16", DefaultText: "all"},
	&cli.IntFlag{Name: "size", Usage: "only series of this `SIZE`, 2048 or 8192", DefaultText: "both"},
	&cli.StringFlag{Name: "change", Usage: "only series in which `WHAT` changes, both or weights", DefaultText: "either"},
	&cli.StringFlag{Name: "role", Usage: "only series with weights in this `ROLE`, stationary or streaming", DefaultText: "either"},
	&cli.IntFlag{Name: "rounds", Value: 1, Usage: "read every point `N` times", DefaultText: "1"},
	&cli.BoolFlag{Name: "quick", Usage: "three points of every experiment", DisableDefaultText: true},
	&cli.DurationFlag{Name: "time", Usage: "begin no points after this `TIME`", DefaultText: "no end"},
	deviceFlag,
}

var reproduceCommand = &cli.Command{
	Name:      "reproduce",
	Usage:     "measure what a paper found about bits and power again, on this GPU",
	ArgsUsage: "[OUT]",
	Description: `Measures the experiments of "Input-Dependent Power Usage in GPUs": products whose operands are
drawn from patterns, each against a baseline, in series of one type, size and role. What is
measured is kept in OUT (default: reproduce), and the same command goes on where this one was
broken off.

   lowtoggle reproduce --quick --type bf16,fp16     three points of every experiment
   lowtoggle reproduce                              everything, for hours
   lowtoggle reproduce OUT --report                 from what is in OUT; needs no GPU

At the end it says which of the paper's takeaways hold, and writes OUT/report.md with figures.
Several GPUs may fill one OUT at the same time, each with a --type of its own.

Nothing about the card is ever changed. Exit status 3: points are missing, or measurements are in
doubt; 4: no GPU.`,
	Flags: flags(reproduceFlags, []cli.Flag{
		&cli.BoolFlag{Name: "report", Usage: "measure nothing, report what is in OUT", DisableDefaultText: true},
		jsonFlag, quietFlag,
	}),
	Action: func(c *cli.Context) (err error) {
		out := reproduceOut
		if c.NArg() > 0 {
			args, err := arguments(c, "OUT")
			if err != nil {
				return err
			}
			out = args[0]
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
		defer closing(&err, machine.Close)
		err = measureWorks(c, machine, out, works, experiment.Options{Rounds: c.Int("rounds"), Time: c.Duration("time")})
		if c.Context.Err() != nil {
			return err
		}
		return reproduceReport(c, out, err) // a series that fails is no reason to say nothing of the others
	},
}

// reproduceWorks are the series that the flags ask for; none with --report.
func reproduceWorks(c *cli.Context) ([]experiment.Work, error) {
	if c.Bool("report") {
		for _, f := range reproduceFlags {
			if name := f.Names()[0]; c.IsSet(name) {
				return nil, usagef("--%s is about measuring, and --report measures nothing", name)
			}
		}
		return nil, nil
	}
	if c.Int("rounds") < 1 {
		return nil, usagef("--rounds %d: give 1 or more", c.Int("rounds"))
	}
	if c.IsSet("time") && c.Duration("time") <= 0 {
		return nil, usagef("--time %v: give a time such as 30m", c.Duration("time"))
	}
	types, err := reproduceTypes(c.String("type"))
	if err != nil {
		return nil, err
	}
	role, err := cost.ParseRole(c.String("role"))
	if c.IsSet("role") && err != nil {
		return nil, usageError{fmt.Errorf("--role: %w", err)}
	}
	most := 0
	if c.Bool("quick") {
		most = paper.Quick
	}
	var works []experiment.Work
	for _, s := range paper.Setups() {
		switch {
		case len(types) > 0 && !slices.Contains(types, s.Type):
		case c.IsSet("size") && s.M != c.Int("size"):
		case c.IsSet("change") && string(s.Change) != c.String("change"):
		case c.IsSet("role") && s.Role != role:
		default:
			works = append(works, paper.Work(s, most))
		}
	}
	if works == nil {
		return nil, usagef("no series is what the flags ask for; there are %s", reproduceNames())
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

func reproduceTypes(text string) (types []arith.Type, err error) {
	if text == "" {
		return nil, nil
	}
	for name := range strings.SplitSeq(strings.ToLower(text), ",") {
		t, err := arith.ParseType(strings.TrimSpace(name))
		if err != nil {
			return nil, usageError{fmt.Errorf("--type: %w", err)}
		}
		types = append(types, t)
	}
	return types, nil
}

// measureWorks measures what is not in the folder yet, with progress.
func measureWorks(c *cli.Context, m measure.Machine, out string, works []experiment.Work, o experiment.Options) error {
	event, end := term.Progress(c)
	defer end()
	o.Meter.Date, o.Meter.Command = time.Now(), term.CommandLine(os.Args[1:]...)
	before := -1 // readings that were there
	o.Progress = func(p experiment.Progress) {
		if before < 0 {
			before = p.Done - 1
		}
		event(transform.Event{Stage: "measure", Done: int64(p.Done - before), Total: int64(p.Total - before)})
	}
	err := experiment.Run(c.Context, m, out, works, o)
	if err != nil && c.Context.Err() != nil {
		return fmt.Errorf("%w: what was measured is kept in %s; the same command goes on", err, out)
	}
	return err
}
