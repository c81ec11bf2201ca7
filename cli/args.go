package cli

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/term"
)

// completionFlag is what the shell's completion puts last on the command line.
const completionFlag = "--generate-bash-completion"

// arrange checks a command line and puts it into the order that the parser reads: the command,
// its flags, "--", its arguments. What follows "--" in args is an argument, whatever it looks
// like.
func arrange(a *cli.App, args []string) ([]string, error) {
	if len(args) == 0 || args[len(args)-1] == completionFlag {
		return args, nil
	}
	if args[0] == "help" {
		return append(slices.Clone(args[1:min(2, len(args))]), "--help"), nil
	}
	if strings.HasPrefix(args[0], "-") {
		if slices.Contains([]string{"help", "h", "version", "v"}, strings.TrimLeft(args[0], "-")) {
			return args[:1], nil
		}
		return nil, usagef("a command comes first: lowtoggle COMMAND %s; see lowtoggle --help", args[0])
	}
	cmd := a.Command(args[0])
	if cmd == nil {
		var names []string
		for _, c := range a.VisibleCommands() {
			names = append(names, c.Name)
		}
		return nil, usagef("there is no command %q%s; the commands are %s", args[0],
			didYouMean("", args[0], names), strings.Join(names, ", "))
	}
	flags, rest, err := splitFlags(cmd, args[1:])
	return slices.Concat([]string{cmd.Name}, flags, []string{"--"}, rest), err
}

// splitFlags takes a command's flags, with their values, from among its arguments.
func splitFlags(cmd *cli.Command, args []string) (flags, rest []string, err error) {
	takesValue := map[string]bool{"help": false, "h": false}
	for _, f := range cmd.Flags {
		_, boolean := f.(*cli.BoolFlag)
		for _, name := range f.Names() {
			takesValue[name] = !boolean
		}
	}
	known := func(arg string) (name string, ok bool) {
		name, _, _ = strings.Cut(strings.TrimLeft(arg, "-"), "=")
		_, ok = takesValue[name]
		return name, ok && isFlag(arg)
	}
	for i := 0; i < len(args); i++ {
		arg := args[i]
		name, ok := known(arg)
		switch {
		case arg == "--":
			return flags, append(rest, args[i+1:]...), nil
		case !isFlag(arg):
			rest = append(rest, arg)
			continue
		case !ok:
			return nil, nil, usagef("%s has no flag %s%s; see lowtoggle %s --help", cmd.Name, arg,
				didYouMean("--", name, longNames(cmd)), cmd.Name)
		case name == "help" || name == "h":
			return []string{"--help"}, nil, nil // whatever else stands there
		}
		flags = append(flags, arg)
		if !takesValue[name] || strings.Contains(arg, "=") {
			continue
		}
		if i++; i == len(args) || args[i] == "--" {
			return nil, nil, usagef("%s needs a value; see lowtoggle %s --help", arg, cmd.Name)
		}
		if _, ok := known(args[i]); ok {
			return nil, nil, usagef("%s needs a value, and the flag %s follows; if that is meant, write %s=%s", arg, args[i], arg, args[i])
		}
		flags = append(flags, args[i])
	}
	return flags, rest, nil
}

// isFlag tells flags from arguments; "-" alone is an argument.
func isFlag(arg string) bool { return len(arg) > 1 && arg[0] == '-' }

func longNames(cmd *cli.Command) (names []string) {
	for _, f := range cmd.Flags {
		names = append(names, f.Names()[0])
	}
	return names
}

// arguments checks how many arguments stand on the command line; names says what they are.
func arguments(c *cli.Context, names ...string) ([]string, error) {
	takes, given := "no arguments", term.Plural(c.NArg(), "argument was given", "arguments were given")
	if len(names) > 0 {
		takes = strings.Join(names, " and ")
	}
	if c.NArg() != len(names) {
		return nil, usagef("%s takes %s, and %s; see lowtoggle %s --help", c.Command.Name, takes, given, c.Command.Name)
	}
	for i, name := range names {
		if c.Args().Get(i) == "" {
			return nil, usagef("%s is empty", name)
		}
	}
	return c.Args().Slice(), nil
}
