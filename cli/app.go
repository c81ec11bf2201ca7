// Package cli is the program's command line. Each command parses its flags, calls a library and prints a report.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/card"
	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cli/model"
	"github.com/lowtoggle/lowtoggle/cli/page"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/internal/printable"
)

// Interrupts returns a context that SIGINT and SIGTERM cancel. A second signal ends the process at once. Signals are
// caught until the process exits, so a first signal after the end of the work does not change the exit status.
func Interrupts() context.Context {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() {
		time.Sleep(echo)
		stop()
	})
	return ctx
}

// Main runs the program with the given arguments (the first is the program's name) and returns the exit status. The
// end of ctx ends the work within a second. Finished measurements are still written.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	ignoreFileSizeSignal()

	out := exit.NewOutput(stdout)
	if wantsJSON(args[1:]) {
		out.Hold()
	}
	stderr = printable.NewWriter(stderr)
	a := newApp(out, stderr)
	a.Metadata = map[string]any{page.CommandKey: term.CommandLine(args[1:]...), page.VersionKey: version()}
	arranged, err := arrange(a, args[1:])
	if err == nil {
		err = withinASecond(ctx, out, func() (err error) {
			defer recovered(stderr, &err)
			return a.RunContext(ctx, append(args[:1:1], arranged...))
		})
	}
	lost := out.Release(problem(err, commandOf(a, args[1:])))
	if closed := out.Close(); lost == nil {
		lost = closed
	}
	if lost != nil && (err == nil || errors.Is(err, exit.ErrShort)) {
		err = fmt.Errorf("the report could not be written: %w; all other work is done", lost)
	}
	if err != nil && err != exit.ErrShort { // the report has explained a bare ErrShort
		complain(stderr, err)
	}
	return exit.Status(err)
}

// complain prints an error and wraps its long lines. The middle of a very long line is left out, because an argument
// may be a whole file by mistake. Short lines do not change, because a caret in a short line may point at the line
// above. Lines with a command are not wrapped, so that users can copy the command.
func complain(w io.Writer, err error) {
	first := "lowtoggle: "
	for line := range strings.SplitSeq(told(err), "\n") { // joined errors have a line each
		if line = first + printable.Cut(line); utf8.RuneCountInString(line) > term.Width && !strings.HasPrefix(line, term.CommandIndent) {
			indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
			line = strings.TrimSuffix(term.Wrap(line, indent, "  ", term.Width), "\n")
		}
		fmt.Fprintln(w, line)
		first = ""
	}
}

// withinASecond returns the result of run. After an interrupt, withinASecond returns the context's error within a
// second, even if run has not ended: a copy of gigabytes to a GPU takes longer. If run has unsaved results,
// withinASecond waits for run.
func withinASecond(ctx context.Context, out *exit.Output, run func() error) error {
	done := make(chan error, 1)
	go func() { done <- run() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	for {
		select {
		case err := <-done:
			return err
		case <-time.After(patience):
			if !out.Unsaved() {
				return ctx.Err()
			}
		}
	}
}

const (
	// patience is the time that an interrupted command has to end by itself.
	patience = 800 * time.Millisecond
	// echo is the time after the first signal in which a second one is ignored, because timeout(1) sends two.
	echo = 100 * time.Millisecond
)

func newApp(stdout, stderr io.Writer) *cli.App {
	a := cli.NewApp()
	a.Name = "lowtoggle"
	a.Version = Version
	a.Usage = "convert model weights so that fewer of a GPU's wires toggle, which saves energy"
	a.UsageText = "lowtoggle COMMAND [options] [arguments]"
	a.Description = `Begin with
   lowtoggle demo                  convert and verify a small embedded model
   lowtoggle inspect MODEL         MODEL is a folder of safetensors files, or a single file
   lowtoggle convert MODEL OUT
   lowtoggle verify MODEL OUT
   lowtoggle verify MODEL OUT --gpu    also measure the energy, on an NVIDIA GPU
   lowtoggle eval MODEL OUT --tokens FILE    loss and perplexity, before and after

Options may stand before or after the arguments. lowtoggle COMMAND --help explains a command.
Exit status: 0 done, 1 failed, 2 wrong usage, 3 done but short of what was asked, 4 no GPU,
75 run the same command again (--part, --finish, or a model in a bucket).`
	a.Writer, a.ErrWriter = stdout, stderr
	a.Commands = []*cli.Command{model.Demo, model.Inspect, model.Plan, model.Convert, model.Verify, model.Eval,
		card.Predict, card.Measure, card.Profile, card.Sweep, card.SweepGuard, card.Calibrate, card.Reproduce,
		card.Pattern, model.Synth, model.Passes, model.Families, completionCommand, manCommand}
	cli.VersionPrinter = func(c *cli.Context) {
		fmt.Fprintf(c.App.Writer, "%s version %s\n", c.App.Name, version())
	}
	a.HideHelpCommand = true
	a.EnableBashCompletion = true
	a.DisableSliceFlagSeparator = true // values such as normal(0,1) hold commas
	a.ExitErrHandler = func(*cli.Context, error) {}
	a.OnUsageError = badFlag
	for _, cmd := range a.Commands {
		cmd.OnUsageError = badFlag
		cmd.HideHelpCommand = true
		cmd.Before, cmd.After = term.StartLog, term.EndLog
	}
	return a
}

// wantedBy describes the values of the numeric flag called name. For other flags, the result is empty.
func wantedBy(flags []cli.Flag, name string) string {
	for _, f := range flags {
		if !slices.Contains(f.Names(), name) {
			continue
		}
		switch f.(type) {
		case *cli.IntFlag:
			return "a whole number"
		case *cli.Uint64Flag:
			return "a whole number of at least 0"
		case *cli.Float64Flag:
			return "a number"
		case *cli.DurationFlag:
			return "a time such as 30s or 5m"
		}
	}
	return ""
}

// badFlag rewords the parser's error about a flag's value.
func badFlag(c *cli.Context, err error, _ bool) error {
	var value, name string
	if n, _ := fmt.Sscanf(err.Error(), "invalid value %q for flag -%s", &value, &name); n == 2 {
		name = strings.TrimSuffix(name, ":")
		isTime := slices.ContainsFunc(c.Command.Flags, func(f cli.Flag) bool {
			_, ok := f.(*cli.DurationFlag)
			return ok && slices.Contains(f.Names(), name)
		})
		if _, failed := strconv.ParseFloat(value, 64); isTime && failed == nil {
			return exit.Usagef("--%s %s: give a unit, as in %[2]ss or %[2]sms", name, value)
		}
		if wanted := wantedBy(c.Command.Flags, name); wanted != "" && value == "" {
			return exit.Usagef("--%s is empty: give %s", name, wanted)
		} else if wanted != "" {
			return exit.Usagef("--%s %s: give %s", name, value, wanted)
		}
	}
	message := strings.Replace(strings.Replace(err.Error(), "for flag -", "for --", 1), " for -", " for --", 1)
	message = strings.Replace(message, " for ---", " for --", 1)
	return exit.Usagef("%s; see lowtoggle %s --help", strings.TrimSuffix(message, ": parse error"), c.Command.Name)
}
