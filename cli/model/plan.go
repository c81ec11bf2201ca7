package model

import (
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cli/flag"
	"github.com/lowtoggle/lowtoggle/cli/outfile"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/internal/printable"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

var Plan = &cli.Command{
	Name:      "plan",
	Usage:     "decide what a conversion changes, and write the plan",
	ArgsUsage: "MODEL",
	Description: `The plan is JSON, with a line for every step. convert --plan applies the plan.
A plan of more than 4 MiB is packed: its file has a summary of the steps and the compressed plan.
--json prints the plan, never packed, on standard output. A file is then written only with -o or
--merge. With --part, --json prints a summary of the part.

--part K/N makes one of N parts, on any machine, in any order and any number of times. --merge
joins all parts; the plan has the bytes of a single run. With --tokens, all parts share the
folder of --search-dir. If a loss budget is set (--max-loss or the recipe's), a part keeps the
measurements of its layers in this folder.

   lowtoggle plan MODEL                               by the recipe near-lossless, to plan.json
   lowtoggle plan MODEL -o p.json --passes round=4    exactly these passes
   lowtoggle plan MODEL --tokens FILE --max-loss 0.1%
   lowtoggle plan MODEL --tokens FILE --max-loss 0.1% --search-dir DIR --part 3/16
                                                      makes one of 16 parts, on any machine
   lowtoggle plan MODEL --tokens FILE --max-loss 0.1% --search-dir DIR --merge
                                                      makes the plan of all parts
   lowtoggle plan MODEL --json                        the plan on standard output
   lowtoggle convert MODEL OUT --plan plan.json       carries out the plan

Exit status 3: the plan was written, but one of these is true. The budget does not allow --passes
in every layer. The model is quantised, and the plan changes nothing. --passes changes quantised
weights only, and the model has none. The tensors do not fit config.json.`,
	Flags: flag.Join([]cli.Flag{&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "plan.json", DefaultText: "plan.json",
		Usage: "write the plan to `FILE`, replacing an older plan"}, planPartFlag, mergeFlag}, planFlags(planTokensFlag), flag.Common),
	Action: func(c *cli.Context) (err error) {
		defer func() { err = ofOption(c, withoutDevice(err)) }()
		args, err := flag.Arguments(c, "MODEL")
		if err != nil {
			return err
		}
		part, err := planPartFlags(c)
		if err != nil {
			return err
		}
		o, err := planOptions(c)
		if err != nil {
			return err
		}
		m, err := flag.OpenModel(c.Context, args[0])
		if err != nil {
			return err
		}
		defer m.Close()
		if err := suitRecipe(c, m, &o); err != nil {
			return err
		}
		closeReference, err := openReference(c, &o)
		defer exit.CloseAll(&err, closeReference)
		if err != nil {
			return err
		}
		path := flag.Path(c.String("output"))
		if c.Bool("json") && !c.IsSet("output") && !c.Bool("merge") && part.Of == 0 {
			path = ""
		}
		if err := outfile.CheckPlan(c.Context, path, args[0], m); err != nil {
			return err
		}
		if part.Of > 0 {
			return writePlanPart(c, m, args[0], path, o, part)
		}
		var closeDevice func() error
		o.Tokens, closeDevice, err = givenTokens(c, m, args[0], path, o)
		defer exit.CloseAll(&err, closeDevice)
		if err != nil {
			return err
		}
		release, err := holdSearch(path, o.Tokens)
		if err != nil {
			return err
		}
		defer exit.CloseAll(&err, release)
		p, err := planOrMerge(c, m, args[0], path, o)
		if err != nil {
			return err
		}
		js, err := p.Encode()
		if err != nil {
			return err
		}
		if err := errors.Join(outfile.WritePlan(c.Context, path, js), finish(o.Tokens)); err != nil {
			return err
		}
		if c.Bool("json") {
			if js, err = p.Plain(); err != nil {
				return err
			}
			if _, err := c.App.Writer.Write(js); err != nil {
				return err
			}
		} else {
			printPlan(c.App.Writer, m, p, layoutOf(c, m))
			fmt.Fprintf(c.App.Writer, "\nplan written to %s\ncarry out the plan: %s\n", printable.Quote(path),
				term.CommandLine(withDevice(c, p, withTokens(c, withReference(c, withArch(c, "convert", args[0], "OUT", "--plan", path)...)...)...)...))
			if hint := unusedCodes(c, m, args[0], o, p); hint != "" {
				term.Remark(c.App.Writer, "hint", hint)
			}
		}
		return errors.Join(missed(p), nothingLeft(m, p), unfit(c, m))
	},
}

// planOrMerge makes the plan, or with --merge takes it from its parts.
func planOrMerge(c *cli.Context, m *weights.Model, model, path string, o transform.Options) (*plan.Plan, error) {
	if !c.Bool("merge") {
		return makePlan(c, m, o)
	}
	if o.Tokens != nil {
		o.Tokens.Shared = true
		if o.Budget.MaxLoss != nil {
			return mergeSearch(c, m, model, path, o)
		}
	}
	return mergePlan(c, m, path, o)
}

// makePlan plans and shows progress.
func makePlan(c *cli.Context, m *weights.Model, o transform.Options) (*plan.Plan, error) {
	event, end := term.Progress(c)
	defer end()
	o.Progress = counted(o, planStages, event)
	p, err := transform.Plan(c.Context, m, o)
	if err != nil {
		return nil, planFailed(c, o.Tokens, err)
	}
	return p, nil
}

// missed returns an error with [exit.ErrShort] if the budget does not allow all passes in every layer.
func missed(p *plan.Plan) error {
	n := 0
	for _, o := range p.Predictions {
		if o.Missed != "" {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	remedy := "give a smaller --min-snr"
	if p.Request.MaxLoss != nil {
		remedy = "give a larger --max-loss"
	}
	return fmt.Errorf("%w: the budget does not allow all passes in %s; %s, or passes that change less",
		exit.ErrShort, term.Plural(n, "layer", "layers"), remedy)
}

// unfit returns an error with [exit.ErrShort] if the model's tensors do not fit its config.json.
func unfit(c *cli.Context, m *weights.Model) error {
	fam, err := flag.ReadFamily(c)
	if err != nil {
		return err
	}
	if _, err = arch.Resolve(m, fam); err == nil || errors.Is(err, arch.ErrUnknownFamily) {
		return nil
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return fmt.Errorf("%w: the tensors do not fit config.json (%s). Layers were recognised by their names only, and runtimes may not load the result: correct config.json, or describe the architecture with --arch FILE", exit.ErrShort, first)
}

// layoutOf returns the model's layout for tables; nil for an unknown family.
func layoutOf(c *cli.Context, m *weights.Model) *arch.Layout {
	fam, err := flag.ReadFamily(c)
	if err != nil {
		return nil
	}
	layout, _ := arch.Resolve(m, fam)
	return layout
}
