package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/lowtoggle/lowtoggle/cli/exit"
)

// wantsJSON reports whether a command line asks for JSON, even one that is wrong otherwise.
func wantsJSON(args []string) (wants bool) {
	for _, arg := range args {
		if arg == "--" {
			break
		}
		name, value, set := strings.Cut(arg, "=")
		if name != "--json" && name != "-json" {
			continue
		}
		wants = true
		if on, err := strconv.ParseBool(value); set && err == nil {
			wants = on
		}
	}
	return wants
}

// problem describes an error of a command for --json; nil for none. Without a command, command is empty.
func problem(err error, command string) *exit.Problem {
	if err == nil {
		return nil
	}
	p := exit.NewProblem(err, told(err))
	if p.Class == exit.ClassUsage && command != "" {
		p.Hint = fmt.Sprintf("lowtoggle %s --help lists the options", command)
	}
	for _, r := range remedies {
		if errors.Is(err, r.class) {
			p.Hint = "give " + r.flags
			break
		}
	}
	return p
}

// told is an error's text for the user.
func told(err error) string {
	return strings.ReplaceAll(message(err), context.Canceled.Error(), "interrupted")
}

// recovered is for defer: it turns a panic of a command into an error, and prints where it was.
func recovered(stderr io.Writer, err *error) {
	if value := recover(); value != nil {
		stderr.Write(debug.Stack())
		*err = exit.Panicked(value)
	}
}
