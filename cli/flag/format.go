package flag

import (
	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/exit"
)

// CSV is --csv for commands whose report is a table of numbers.
var CSV = &cli.BoolFlag{Name: "csv", Usage: "print comma-separated values and nothing else", DisableDefaultText: true}

// OneFormat returns a usage error if more than one of --json, --bench and --csv is set.
func OneFormat(c *cli.Context) error {
	var given string
	for _, name := range []string{"json", "bench", "csv"} {
		switch {
		case !c.Bool(name):
		case given != "":
			return exit.Usagef("--%s and --%s exclude each other: give one of them", given, name)
		default:
			given = name
		}
	}
	return nil
}
