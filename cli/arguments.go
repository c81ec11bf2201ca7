package cli

import (
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/term"
)

// arguments returns the command's arguments. They must be as many as names, and not empty.
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
