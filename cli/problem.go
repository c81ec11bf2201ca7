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

// wantsJSON reports whether a command line, even a wrong one, asks for JSON.
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

// problem describes a command's error for --json; nil for a nil error. command is the command's name, or empty if the
// command line names none.
func problem(err error, command string) *exit.Problem {
	if err == nil {
		return nil
	}
	p := exit.NewProblem(err, told(err))
	if p.Class == exit.ClassUsage && command != "" {
		p.Hint = fmt.Sprintf("correct what the message names; lowtoggle %s --help lists the options", command)
	}
	for _, r := range remedies {
		if errors.Is(err, r.class) {
			if p.Hint = r.flags; strings.HasPrefix(r.flags, "--") {
				p.Hint = "give " + r.flags
			}
			break
		}
	}
	return p
}

// told returns an error's text for the user.
func told(err error) string {
	return strings.ReplaceAll(message(err), context.Canceled.Error(), "interrupted")
}

// recovered is for defer. It stores a command's panic in err as an error, and prints the stack.
func recovered(stderr io.Writer, err *error) {
	if value := recover(); value != nil {
		stderr.Write(debug.Stack())
		*err = exit.Panicked(value)
	}
}
