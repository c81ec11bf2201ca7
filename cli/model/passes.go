package model

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/flag"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/pass"
)

var Passes = &cli.Command{
	Name:  "passes",
	Usage: "list the passes and recipes",
	Description: `Lists the values for --passes and --recipe of plan and convert.

   lowtoggle passes
   lowtoggle passes --json                          the same list as JSON
   lowtoggle convert MODEL OUT --passes reorder,round=4`,
	Flags: flag.Common,
	Action: func(c *cli.Context) error {
		if _, err := flag.Arguments(c); err != nil {
			return err
		}
		if c.Bool("json") {
			return term.JSON(c.App.Writer, passList())
		}
		printPasses(c.App.Writer)
		return nil
	},
}

// passJSON is a pass in the output of passes --json.
type passJSON struct {
	Name        string     `json:"name"`
	Class       pass.Class `json:"class"`
	Usage       string     `json:"usage"`
	Doc         string     `json:"doc"`
	NeedsFamily bool       `json:"needs_family"`
}

// passesJSON is the output of passes --json.
type passesJSON struct {
	Passes  []passJSON         `json:"passes"` // in the order in which they run
	Recipes []transform.Recipe `json:"recipes"`
}

func passList() passesJSON {
	var list []passJSON
	for _, r := range transform.Passes {
		p := r.Pass
		list = append(list, passJSON{p.Name, p.Class, p.Usage, p.Doc, p.NeedsFamily})
	}
	return passesJSON{list, transform.Recipes}
}

func printPasses(w io.Writer) {
	const indent = "      "
	fmt.Fprintln(w, "Passes, in the order in which they run:")
	for _, r := range transform.Passes {
		p := r.Pass
		fmt.Fprintf(w, "\n  %s  (%s)\n%s", p.Usage, p.Class, term.Wrap(p.Doc, indent, indent, 92))
	}
	fmt.Fprintln(w, "\nRecipes:")
	for _, r := range transform.Recipes {
		name := r.Name
		if name == transform.DefaultRecipe {
			name += ", the default"
		}
		fmt.Fprintf(w, "\n  %s  (%s)\n%s", name, r.Passes, term.Wrap(r.Doc, indent, indent, 92))
	}
}
