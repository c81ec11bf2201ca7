package flag

import (
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cli/term"
)

// Arguments returns the command's arguments, with file:// arguments as paths. names are the names of the expected
// arguments. It returns a usage error if the count differs or an argument is empty.
func Arguments(c *cli.Context, names ...string) ([]string, error) {
	takes, given := "no arguments", term.Plural(c.NArg(), "argument was given", "arguments were given")
	if len(names) > 0 {
		takes = strings.Join(names, " and ")
	}
	if c.NArg() != len(names) {
		return nil, exit.Usagef("%s takes %s, and %s; see lowtoggle %s --help", c.Command.Name, takes, given, c.Command.Name)
	}
	args := c.Args().Slice()
	for i, name := range names {
		if args[i] == "" {
			next := ""
			if name == "OUT" && (c.Command.Name == "convert" || c.Command.Name == "synth") {
				next = ": name a new folder"
			}
			return nil, exit.Usagef("the argument %s is empty%s", name, next)
		}
		args[i] = Path(args[i])
	}
	return args, nil
}
