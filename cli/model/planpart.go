package model

import (
	"errors"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cli/flag"
	"github.com/lowtoggle/lowtoggle/cli/outfile"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm/hessian"
	"github.com/lowtoggle/lowtoggle/internal/bounded"
	"github.com/lowtoggle/lowtoggle/internal/printable"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/apply"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/search"
	"github.com/lowtoggle/lowtoggle/weights"
)

var (
	planPartFlag = &cli.StringFlag{Name: "part", Usage: "make part `K/N` of the plan, or auto; -o names the whole plan"}
	mergeFlag    = &cli.BoolFlag{Name: "merge", Usage: "join all parts into one plan; repeat the options of --part", DisableDefaultText: true}
)

// planPartPath returns the file of part p of the plan in path.
func planPartPath(path string, p apply.Part) string {
	return fmt.Sprintf("%s.part-%05d-of-%05d", path, p.Number, p.Of)
}

// planPartFlags reads --part of plan. It returns an error for flags that exclude --part or --merge.
func planPartFlags(c *cli.Context) (part apply.Part, err error) {
	if !c.IsSet("part") && !c.Bool("merge") {
		return part, nil
	}
	name := "--part"
	if c.Bool("merge") {
		name = "--merge"
	}
	if c.IsSet("part") && c.Bool("merge") {
		return part, exit.Usagef("--part and --merge exclude each other: make every part, then --merge")
	}
	if c.IsSet("tokens") && !c.IsSet("search-dir") {
		return part, exit.Usagef("%s with --tokens needs --search-dir DIR, a folder that all parts share", name)
	}
	if !c.IsSet("part") {
		return part, nil
	}
	if part, err = parsePart(c.String("part"), os.Getenv); err != nil {
		err = exit.Usage(fmt.Errorf("--part %s: %w", c.String("part"), err))
	}
	return part, err
}

// planPartJSON is the output of plan --part --json.
type planPartJSON struct {
	Output string `json:"output"` // file of the part; in a search, the folder of --search-dir
	Part   int    `json:"part"`
	Parts  int    `json:"parts"`
	Layers int    `json:"layers"` // number of layers that the part decides or measures
}

// writePlanPart is plan --part.
func writePlanPart(c *cli.Context, m *weights.Model, model, path string, o transform.Options, part apply.Part) (err error) {
	defer func() { err = planPartFailed(c, model, path, part, err) }()
	var closeDevice func() error
	o.Tokens, closeDevice, err = givenTokens(c, m, model, path, o)
	defer exit.CloseAll(&err, closeDevice)
	if err != nil {
		return err
	}
	event, end := term.Progress(c)
	o.Progress = event
	if o.Tokens != nil {
		o.Tokens.Shared = true
		if o.Budget.MaxLoss != nil {
			layers, err := transform.SearchPart(c.Context, m, o, part)
			end()
			if err != nil {
				return err
			}
			return searchPartDone(c, model, path, o.Tokens.Dir, part, layers)
		}
	}
	made, err := transform.PlanPart(c.Context, m, o, part)
	end()
	if err != nil {
		return apply.Temporary(err, path)
	}
	js, err := made.Encode()
	if err != nil {
		return err
	}
	file := planPartPath(path, part)
	if err := outfile.WritePlan(c.Context, file, js); err != nil {
		return err
	}
	if c.Bool("json") {
		return term.JSON(c.App.Writer, planPartJSON{file, part.Number, part.Of, len(made.Layers)})
	}
	_, err = fmt.Fprintf(c.App.Writer, "part %v: %s decided, written to %s\nwhen all parts are made: %s\n", part, term.Plural(len(made.Layers), "layer", "layers"),
		printable.Quote(file), planCommand(c, model, path, "--merge"))
	return err
}

// searchPartDone prints the result of a part of a search.
func searchPartDone(c *cli.Context, model, path, dir string, part apply.Part, layers int) error {
	if c.Bool("json") {
		return term.JSON(c.App.Writer, planPartJSON{dir, part.Number, part.Of, layers})
	}
	_, err := fmt.Fprintf(c.App.Writer, "part %v: %s measured, kept in %s\nwhen all parts are measured: %s\n", part, term.Plural(layers, "layer", "layers"),
		printable.Quote(dir), planCommand(c, model, path, "--merge"))
	return err
}

// planPartFailed adds to a part's error the command that makes the part again, unless the command would fail in the
// same way.
func planPartFailed(c *cli.Context, model, path string, part apply.Part, err error) error {
	status := exit.Status(err)
	if err == nil || status == exit.WrongUsage || status == exit.NoGPU || errors.Is(err, search.ErrOther) || errors.Is(err, hessian.ErrOther) {
		return err
	}
	return fmt.Errorf("%w\nmake part %v again: %s", err, part, planCommand(c, model, path, "--part", part.String()))
}

// planCommand returns the command line of another part, or of the merge, of the same plan.
func planCommand(c *cli.Context, model, path string, words ...string) string {
	line := []string{"plan", model, "-o", path}
	for _, f := range c.Command.Flags {
		name := f.Names()[0]
		if _, isBool := f.(*cli.BoolFlag); !c.IsSet(name) || isBool || name == "output" || name == "part" {
			continue
		}
		if _, isList := f.(*cli.StringSliceFlag); isList {
			for _, v := range c.StringSlice(name) {
				line = append(line, "--"+name, v)
			}
			continue
		}
		line = append(line, "--"+name, fmt.Sprint(c.Value(name)))
	}
	if c.Bool("trust-family") {
		line = append(line, "--trust-family")
	}
	return term.CommandLine(append(line, words...)...)
}

// mergeSearch is plan --merge for a search. The parts have measured all layers.
func mergeSearch(c *cli.Context, m *weights.Model, model, path string, o transform.Options) (*plan.Plan, error) {
	o.Search.Measured = true
	p, err := makePlan(c, m, o)
	if errors.Is(err, search.ErrUnmeasured) {
		err = fmt.Errorf("%s: %w: run the missing parts, then merge again; or measure the missing layers on this machine: %s", o.Tokens.Dir, err, planCommand(c, model, path))
	}
	return p, err
}

// mergePlan is plan --merge.
func mergePlan(c *cli.Context, m *weights.Model, path string, o transform.Options) (*plan.Plan, error) {
	files, err := outfile.PlanParts(c.Context, path)
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: there are no parts of this plan: make them with --part and the same -o", path)
	}
	var parts []*plan.Partial
	for _, file := range files {
		js, err := flag.ReadPlace(c.Context, file, bounded.Plan)
		if err != nil {
			return nil, err
		}
		part, err := plan.DecodePartial(file, js)
		if err != nil {
			return nil, err
		}
		if want := planPartPath(path, apply.Part{Number: part.Number, Of: part.Of}); want != file {
			return nil, weights.FileErrorf(file, "contains part %d/%d, but the name says otherwise: rename the file to %s, or remove it", part.Number, part.Of, want)
		}
		parts = append(parts, part)
	}
	p, err := transform.MergePlan(c.Context, m, o, parts)
	if errors.Is(err, plan.ErrInvalid) {
		err = fmt.Errorf("%s.part-*: %w", path, err)
	}
	return p, err
}
