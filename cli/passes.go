package cli

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/transform"
)

var passesCommand = &cli.Command{
	Name:  "passes",
	Usage: "list the passes and recipes",
	Flags: []cli.Flag{jsonFlag},
	Action: func(c *cli.Context) error {
		if _, err := arguments(c); err != nil {
			return err
		}
		if c.Bool("json") {
			type pass struct {
				Name  string          `json:"name"`
				Class transform.Class `json:"class"`
				Usage string          `json:"usage"`
				Doc   string          `json:"doc"`
			}
			var list []pass
			for _, p := range transform.Passes {
				list = append(list, pass{p.Name, p.Class, p.Usage, p.Doc})
			}
			return printJSON(c.App.Writer, map[string]any{"passes": list, "recipes": transform.Recipes})
		}
		w := c.App.Writer
		fmt.Fprintln(w, "Passes, in the order in which they act:")
		for _, p := range transform.Passes {
			fmt.Fprintf(w, "\n  %s  (%s)\n%s", p.Usage, p.Class, wrap(p.Doc, "      ", 92))
		}
		fmt.Fprintln(w, "\nRecipes:")
		for _, r := range transform.Recipes {
			fmt.Fprintf(w, "\n  %s  (%s)\n%s", r.Name, r.Passes, wrap(r.Doc, "      ", 92))
		}
		return nil
	},
}
