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
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"
)

// Version is the program's version, recorded in plans and manifests.
const Version = "0.1.0"

// Exit statuses that scripts may rely on.
const (
	exitDone   = 0
	exitFailed = 1 // input, I/O
	exitUsage  = 2
	exitShort  = 3 // done, but a check failed or a budget could not be met
)

// usageError is an error about the command line itself.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// errShort ends a command that did its work and has to report that it falls short.
var errShort = errors.New("short of what was asked")

// Main runs the program with the given arguments (the first is its name) and returns the exit
// status. Interrupt and terminate end the work within a second, and it can be taken up again; a
// second one ends the process at once.
func Main(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	ignoreFileSizeSignal()

	app := newApp(stdout, stderr)
	err := app.RunContext(ctx, args[:1:1], args[1:])
	var usage usageError
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errShort):
		if err != errShort {
			fmt.Fprintf(stderr, "lowtoggle: %v\n", err)
		}
		return exitShort
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "lowtoggle: %v\n", err)
		return exitUsage
	}
	fmt.Fprintf(stderr, "lowtoggle: %v\n", err)
	return exitFailed
}

// app is the program; its command line lets flags stand before and after the arguments.
type app struct{ *cli.App }

func (a app) RunContext(ctx context.Context, name, args []string) error {
	args, err := a.flagsFirst(args)
	if err != nil {
		return err
	}
	return a.App.RunContext(ctx, append(name, args...))
}

func newApp(stdout, stderr io.Writer) app {
	a := cli.NewApp()
	a.Name = "lowtoggle"
	a.Version = Version
	a.Usage = "convert model weights so that a GPU's wires toggle less"
	a.Description = "Exit status: 0 done, 1 failed, 2 wrong usage, 3 done but short of what was asked."
	a.Writer, a.ErrWriter = stdout, stderr
	a.Commands = []*cli.Command{demoCommand, inspectCommand, planCommand, convertCommand, verifyCommand, synthCommand, passesCommand}
	a.Suggest = true
	a.HideHelpCommand = true
	a.ExitErrHandler = func(*cli.Context, error) {}
	a.Action = func(c *cli.Context) error {
		if c.NArg() > 0 {
			return usagef("there is no command %q; the commands are %s", c.Args().First(), commandNames(a))
		}
		return cli.ShowAppHelp(c)
	}
	usage := func(_ *cli.Context, err error, _ bool) error { return usageError{err} }
	a.OnUsageError = usage
	for _, cmd := range a.Commands {
		cmd.OnUsageError = usage
		cmd.HideHelpCommand = true
	}
	return app{a}
}

func commandNames(a *cli.App) string {
	var names []string
	for _, c := range a.Commands {
		names = append(names, c.Name)
	}
	return strings.Join(names, ", ")
}

// flagsFirst moves a command's flags before its arguments, since the parser stops at the first
// argument. Everything after "--" stays as it is.
func (a app) flagsFirst(args []string) ([]string, error) {
	if len(args) == 0 {
		return args, nil
	}
	cmd := a.Command(args[0])
	if cmd == nil {
		return args, nil
	}
	takesValue := map[string]bool{}
	for _, f := range cmd.Flags {
		_, boolean := f.(*cli.BoolFlag)
		for _, name := range f.Names() {
			takesValue[name] = !boolean
		}
	}
	var flags, rest []string
	for i := 1; i < len(args); i++ {
		arg := args[i]
		name := strings.TrimLeft(arg, "-")
		switch {
		case arg == "--":
			rest = append(rest, args[i+1:]...)
			i = len(args)
		case len(arg) < 2 || arg[0] != '-':
			rest = append(rest, arg)
		case takesValue[name] && i+1 < len(args):
			flags = append(flags, arg, args[i+1])
			i++
		default:
			flags = append(flags, arg)
		}
	}
	return append(append(append([]string{cmd.Name}, flags...), "--"), rest...), nil
}

// arguments checks how many arguments stand on the command line; names says what they are.
func arguments(c *cli.Context, names ...string) ([]string, error) {
	if c.NArg() != len(names) {
		return nil, usagef("%s takes %s, and %d arguments were given; see lowtoggle %s --help",
			c.Command.Name, strings.Join(names, " and "), c.NArg(), c.Command.Name)
	}
	return c.Args().Slice(), nil
}
