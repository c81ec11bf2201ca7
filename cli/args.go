package cli

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/internal/spelling"
)

// completionFlag is the last word of a command line that asks for completions.
const completionFlag = "--generate-bash-completion"

// arrange checks a command line and orders the words as the parser expects them: the command, its flags, "--", its
// arguments. Every word after "--" in args is an argument.
func arrange(a *cli.App, args []string) ([]string, error) {
	if len(args) == 0 || args[len(args)-1] == completionFlag {
		return args, nil
	}
	if args[0] == "help" {
		if len(args) > 1 && !isFlag(args[1]) && a.Command(args[1]) == nil {
			return nil, noCommand(a, args[1])
		}
		return append(slices.Clone(args[1:min(2, len(args))]), "--help"), nil
	}
	if strings.HasPrefix(args[0], "-") {
		if slices.Contains([]string{"help", "h", "version", "v"}, strings.TrimLeft(args[0], "-")) {
			return args[:1], nil
		}
		if near := nearGlobal(a, args[0]); near != "" {
			return nil, exit.Usagef("lowtoggle has no flag %s%s; see lowtoggle --help", args[0], near)
		}
		return nil, exit.Usagef("a command must stand before %[1]s, as in lowtoggle COMMAND %[1]s; see lowtoggle --help", args[0])
	}
	cmd := a.Command(args[0])
	if cmd == nil {
		return nil, noCommand(a, args[0])
	}
	flags, rest, err := splitFlags(a, cmd, args[1:])
	return slices.Concat([]string{cmd.Name}, flags, []string{"--"}, rest), err
}

// nearGlobal suggests --help or --version for a mistyped flag before any command; empty if a command has this flag.
func nearGlobal(a *cli.App, arg string) string {
	name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	if anyHas(a, name) {
		return ""
	}
	return spelling.DidYouMean("--", name, []string{"help", "version"})
}

// nearFlag suggests a command's flag for a mistyped name. A flag of another command is not mistyped, so only a name
// that begins with it or begins it is suggested, such as --seed for --seeds.
func nearFlag(a *cli.App, cmd *cli.Command, name string) string {
	near := spelling.Closest(name, longNames(cmd))
	if near == "" || anyHas(a, name) && !strings.HasPrefix(name, near) && !strings.HasPrefix(near, name) {
		return ""
	}
	return spelling.DidYouMean("--", name, []string{near})
}

// anyHas reports whether a command has a flag of this name.
func anyHas(a *cli.App, name string) bool {
	return slices.ContainsFunc(a.Commands, func(cmd *cli.Command) bool {
		return slices.ContainsFunc(cmd.Flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) })
	})
}

// commandOf returns the name of the command in a command line; empty if there is no command of this name.
func commandOf(a *cli.App, args []string) string {
	if len(args) > 0 {
		if cmd := a.Command(args[0]); cmd != nil {
			return cmd.Name
		}
	}
	return ""
}

// noCommand returns the error for an unknown command name.
func noCommand(a *cli.App, name string) error {
	var names []string
	for _, c := range a.VisibleCommands() {
		names = append(names, c.Name)
	}
	return exit.Usagef("there is no command %q%s; the commands are %s", name, spelling.DidYouMean("", name, names), strings.Join(names, ", "))
}

// splitFlags separates a command's flags, with their values, from its arguments.
func splitFlags(a *cli.App, cmd *cli.Command, args []string) (flags, rest []string, err error) {
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
			return nil, nil, exit.Usagef("%s has no flag %s%s; see lowtoggle %s --help", cmd.Name, arg,
				nearFlag(a, cmd, name), cmd.Name)
		case name == "help" || name == "h":
			return []string{"--help"}, nil, nil // help takes precedence over all other flags
		}
		flags = append(flags, arg)
		if !takesValue[name] || strings.Contains(arg, "=") {
			continue
		}
		if i++; i == len(args) || args[i] == "--" {
			return nil, nil, exit.Usagef("%s needs a value; see lowtoggle %s --help", arg, cmd.Name)
		}
		if _, ok := known(args[i]); ok {
			return nil, nil, exit.Usagef("%[1]s needs a value, but the flag %[2]s follows it; if %[2]s is the value, write %[1]s=%[2]s", arg, args[i])
		}
		flags = append(flags, args[i])
	}
	return flags, rest, nil
}

// isFlag reports whether arg is a flag; "-" alone is an argument.
func isFlag(arg string) bool { return len(arg) > 1 && arg[0] == '-' }

func longNames(cmd *cli.Command) (names []string) {
	for _, f := range cmd.Flags {
		names = append(names, f.Names()[0])
	}
	return names
}
