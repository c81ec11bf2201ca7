package term

import (
	"fmt"

	"github.com/urfave/cli/v2"
)

// Notice prints a line about a command's work on standard error. It prints nothing with --quiet, --log json or --log
// none.
func Notice(c *cli.Context, format string, args ...any) {
	if kind := c.String("log"); !c.Bool("quiet") && (kind == "" || kind == "text") {
		fmt.Fprint(c.App.ErrWriter, Wrap(fmt.Sprintf(format, args...), "lowtoggle: ", "  ", Width))
	}
}
