package term

import (
	"fmt"

	"github.com/urfave/cli/v2"
)

// Notice prints a line about what a command does on standard error: neither with --quiet, nor where --log asks for lines of
// another kind or none.
func Notice(c *cli.Context, format string, args ...any) {
	if kind := c.String("log"); !c.Bool("quiet") && (kind == "" || kind == "text") {
		fmt.Fprint(c.App.ErrWriter, Wrap(fmt.Sprintf(format, args...), "lowtoggle: ", "  ", Width))
	}
}
