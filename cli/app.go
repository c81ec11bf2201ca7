// Package cli is the command line: commands, progress, tables, reports. What a command does is in
// the libraries; here it is asked for and shown.
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
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
)

// Version is the program's version, recorded in plans and manifests.
const Version = "0.1.0"

// Exit statuses that scripts may rely on.
const (
	exitDone   = 0
	exitFailed = 1 // input, I/O
	exitUsage  = 2
	exitShort  = 3 // done, but a check failed or a budget could not be met
	exitNoGPU  = 4 // no GPU where one was asked for
)

// usageError is an error about the command line itself.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// errShort ends a command that did its work and has to report that it falls short.
var errShort = errors.New("short of what was asked")

// Main runs the program with the given arguments (the first is its name) and returns the exit
// status. Interrupt and terminate end the work within a second, but for the writing of what was
// measured, and it can be taken up again; a second one ends the process at once.
func Main(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, func() {
		time.Sleep(echo)
		stop()
	})
	ignoreFileSizeSignal()

	out := &output{Writer: stdout}
	a := newApp(out, stderr)
	arranged, err := arrange(a, args[1:])
	if err == nil {
		err = withinASecond(ctx, out, func() error { return a.RunContext(ctx, append(args[:1:1], arranged...)) })
	}
	out.mu.Lock()
	defer out.mu.Unlock()
	if out.err != nil && (err == nil || errors.Is(err, errShort)) {
		err = fmt.Errorf("the report could not be written: %w", out.err)
	}
	if err != nil && err != errShort { // a bare errShort has said it all in its report
		complain(stderr, err)
	}
	return status(err)
}

// complain prints an error, wrapped as a report's remarks are. Lines that are short stay as they are: they may
// point at a place in what stands above them.
func complain(w io.Writer, err error) {
	message := strings.ReplaceAll(err.Error(), context.Canceled.Error(), "interrupted")
	first := "lowtoggle: "
	for line := range strings.SplitSeq(message, "\n") { // of joined errors
		if line = first + line; utf8.RuneCountInString(line) > term.Width {
			line = strings.TrimSuffix(term.Wrap(line, "", "  ", term.Width), "\n")
		}
		fmt.Fprintln(w, line)
		first = ""
	}
}

// withinASecond returns what run does, or the context's error soon after its end: what run still
// has in hand (a copy of gigabytes to a card, say) ends with the process, which loses nothing by it. For
// what is unsaved it waits.
func withinASecond(ctx context.Context, out *output, run func() error) error {
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
			if !out.unsaved.Load() {
				return ctx.Err()
			}
		}
	}
}

const (
	// patience is how long an interrupted command has for its own end.
	patience = 800 * time.Millisecond
	// echo is how soon a second signal still counts as the first: timeout(1) sends two.
	echo = 100 * time.Millisecond
)

// hold marks that a command has what an interrupt must not lose, or that it is written.
func hold(c *cli.Context, unsaved bool) {
	if o, ok := c.App.Writer.(*output); ok {
		o.unsaved.Store(unsaved)
	}
}

// closing closes what a command used, at its end; an error counts where there is no other.
func closing(err *error, closers ...func() error) {
	for _, end := range closers {
		if failed := end(); *err == nil {
			*err = failed
		}
	}
}

func status(err error) int {
	var usage usageError
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errShort):
		return exitShort
	case errors.As(err, &usage):
		return exitUsage
	case measure.NoGPU(err):
		return exitNoGPU
	}
	return exitFailed
}

// output remembers the first error of writing, which printing commands do not look at: a report
// that went nowhere is no success.
type output struct {
	io.Writer
	mu      sync.Mutex
	err     error
	unsaved atomic.Bool // see hold
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := o.Writer.Write(p)
	if o.err == nil {
		o.err = err
	}
	return n, err
}

func newApp(stdout, stderr io.Writer) *cli.App {
	a := cli.NewApp()
	a.Name = "lowtoggle"
	a.Version = Version
	a.Usage = "convert model weights so that a GPU's wires toggle less"
	a.UsageText = "lowtoggle COMMAND [options] [arguments]"
	a.Description = `Begin with
   lowtoggle demo                  the whole story on a small embedded model
   lowtoggle inspect MODEL         a folder of safetensors, or one such file
   lowtoggle convert MODEL OUT
   lowtoggle verify MODEL OUT
   lowtoggle verify MODEL OUT --gpu    and measure the energy, on an NVIDIA GPU
   lowtoggle eval MODEL OUT        loss and perplexity, before and after

Options may stand before and after the arguments. lowtoggle COMMAND --help says more.
Exit status: 0 done, 1 failed, 2 wrong usage, 3 done but short of what was asked, 4 no GPU.`
	a.Writer, a.ErrWriter = stdout, stderr
	a.Commands = []*cli.Command{demoCommand, inspectCommand, planCommand, convertCommand, verifyCommand, evalCommand,
		predictCommand, measureCommand, profileCommand, sweepCommand, sweepGuardCommand, calibrateCommand, reproduceCommand,
		synthCommand, passesCommand, familiesCommand, completionCommand}
	a.HideHelpCommand = true
	a.EnableBashCompletion = true
	a.DisableSliceFlagSeparator = true // values such as normal(0,1) hold commas
	a.ExitErrHandler = func(*cli.Context, error) {}
	a.OnUsageError = badFlag
	for _, cmd := range a.Commands {
		cmd.OnUsageError = badFlag
		cmd.HideHelpCommand = true
	}
	return a
}

// badFlag words the parser's complaint about a flag's value.
func badFlag(c *cli.Context, err error, _ bool) error {
	var value, name string
	if n, _ := fmt.Sscanf(err.Error(), "invalid value %q for flag -%s", &value, &name); n == 2 {
		name = strings.TrimSuffix(name, ":")
		isTime := slices.ContainsFunc(c.Command.Flags, func(f cli.Flag) bool {
			_, ok := f.(*cli.DurationFlag)
			return ok && slices.Contains(f.Names(), name)
		})
		if _, failed := strconv.ParseFloat(value, 64); isTime && failed == nil {
			return usagef("--%s %s: give a unit, as in %[2]ss or %[2]sms", name, value)
		}
	}
	message := strings.Replace(err.Error(), "for flag -", "for --", 1)
	return usagef("%s; see lowtoggle %s --help", strings.TrimSuffix(message, ": parse error"), c.Command.Name)
}
