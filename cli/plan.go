package cli

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

var planCommand = &cli.Command{
	Name:      "plan",
	Usage:     "decide what to do to a model; write the plan and nothing else",
	ArgsUsage: "MODEL",
	Description: `The plan is JSON: readable, complete, a line for every step. convert --plan carries it out.
With --json it goes to standard output, and to a file only where -o names one.

Exit status 3: written, but the budget does not allow in every layer what --passes asks for.`,
	Flags: flags([]cli.Flag{&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "plan.json", DefaultText: "plan.json",
		Usage: "write the plan to `FILE`, replacing an older plan"}}, planFlags, commonFlags),
	Action: func(c *cli.Context) error {
		args, err := arguments(c, "MODEL")
		if err != nil {
			return err
		}
		o, err := planOptions(c)
		if err != nil {
			return err
		}
		m, err := openModel(args[0])
		if err != nil {
			return err
		}
		defer m.Close()
		path := c.String("output")
		if c.Bool("json") && !c.IsSet("output") {
			path = ""
		}
		if err := checkFile(path, args[0], m); err != nil {
			return err
		}
		b, err := newBudget(c, m, args[0], path, o)
		if err != nil {
			return err
		}
		plan, err := planWith(c, m, o, b)
		if err != nil {
			return err
		}
		js, err := plan.Encode()
		if err != nil {
			return err
		}
		if err := errors.Join(replaceFile(path, js), b.finish()); err != nil {
			return err
		}
		if c.Bool("json") {
			if _, err := c.App.Writer.Write(js); err != nil {
				return err
			}
		} else {
			printPlan(c.App.Writer, m, plan, layoutOf(c, m))
			if b != nil && b.strange != "" {
				term.Remark(c.App.Writer, "note", b.strange)
			}
			fmt.Fprintf(c.App.Writer, "\nplan written to %s\ncarry it out: %s\n", path,
				term.CommandLine(withTokens(c, withArch(c, "convert", args[0], "OUT", "--plan", path)...)...))
		}
		return missed(plan)
	},
}

// planWith plans and shows progress; b may be nil.
func planWith(c *cli.Context, m *weights.Model, o transform.Options, b *budget) (plan *transform.Plan, err error) {
	defer func() {
		switch {
		case err == nil || c.Context.Err() == nil:
		case b != nil && searching(b.dir):
			err = fmt.Errorf("%w: what the search has found stays in %s; the same command goes on", c.Context.Err(), b.dir)
		default:
			err = fmt.Errorf("%w: nothing was written", err)
		}
	}()
	if b != nil && (o.MaxLoss != nil || transform.UsesInputs(o.Passes)) {
		if o.Inputs, err = b.inputs(c, o); err != nil {
			return nil, err
		}
		if o.MaxLoss != nil {
			if err := b.spend(c, &o); err != nil {
				return nil, err
			}
		}
	}
	event, end := term.Progress(c)
	defer end()
	o.Progress = event
	return transform.Make(c.Context, m, o)
}

// missed is errShort where part of the request did not fit the budget.
func missed(plan *transform.Plan) error {
	n := 0
	for _, o := range plan.Outlook {
		if o.Missed != "" {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	remedy := "lower --min-snr"
	if plan.Request.MaxLoss != nil {
		remedy = "allow more with --max-loss"
	}
	return fmt.Errorf("%w: the budget does not allow it in %s; %s or ask for gentler passes",
		errShort, term.Plural(n, "layer", "layers"), remedy)
}

// layoutOf is the model's layout for tables; nil where the family is not known.
func layoutOf(c *cli.Context, m *weights.Model) *arch.Layout {
	fam, err := family(c)
	if err != nil {
		return nil
	}
	layout, _ := arch.Resolve(m, fam)
	return layout
}
