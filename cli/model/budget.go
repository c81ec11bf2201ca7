package model

import (
	"errors"
	"fmt"
	"math"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cli/flag"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/evaluate"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
)

var (
	planTokensFlag    = &cli.StringFlag{Name: "tokens", Usage: "choose changes on the calibration tokens in `FILE`"}
	convertTokensFlag = &cli.StringFlag{Name: "tokens", Usage: "choose changes on calibration tokens in `FILE`; test on evaluation tokens"}
	searchTimeFlag    = &cli.DurationFlag{Name: "search-time", Usage: "refine the plan for up to `TIME`, such as 5m", DefaultText: "not refined"}
	planDeviceFlag    = &cli.StringFlag{Name: "device", Usage: "search on the GPU of this `NUMBER`", DefaultText: "on the CPU"}
	searchDirFlag     = &cli.StringFlag{Name: "search-dir", Usage: "keep a search's intermediate results in `DIR`", DefaultText: "removed at the end"}
)

// readBudget reads --max-loss and the flags that need it.
func readBudget(c *cli.Context, o *transform.Options) error {
	if err := tokensGiven(c); err != nil {
		return err
	}
	if _, err := deviceNumber(c); err != nil {
		return err
	}
	for _, f := range []string{"max-loss", "search-time", "search-dir", "device"} {
		if c.IsSet(f) && !c.IsSet("tokens") {
			return exit.Usagef("--%s needs tokens: give --tokens FILE; without tokens, --min-snr sets the budget", f)
		}
	}
	if c.Duration("search-time") < 0 {
		return exit.Usagef("--search-time %v: give a time such as 5m", c.Duration("search-time"))
	}
	o.Search.Time = c.Duration("search-time")
	if c.IsSet("max-loss") && c.IsSet("min-snr") {
		return exit.Usagef("--max-loss and --min-snr exclude each other: give one of them")
	}
	limit, err := readMaxLoss(c)
	if limit != nil {
		o.Budget.MaxLoss, o.Budget.MinSNR = limit, nil
	}
	return err
}

// givenTokens reads the file of --tokens; t is nil without the flag. The search keeps intermediate results in a folder
// named after beside, the path of the output. The caller must call close.
func givenTokens(c *cli.Context, m *weights.Model, path, beside string, o transform.Options) (t *transform.Tokens, close func() error, err error) {
	close = func() error { return nil }
	if !c.IsSet("tokens") {
		return nil, close, nil
	}
	number, err := deviceNumber(c)
	if err != nil {
		return nil, close, err
	}
	if t, err = readTokens(c, m, o); err != nil {
		return nil, close, err
	}
	if number != nil {
		gpu, err := evaluate.OpenDevice(*number)
		if err != nil {
			return nil, close, err
		}
		t.Device, close = gpu, gpu.Close
	}
	t.Dir, t.Keep, err = searchDir(c, path, beside, t.Key())
	if err == nil && o.Budget.MaxLoss != nil && !c.IsSet("plan") {
		announce(c, t, *o.Budget.MaxLoss)
	}
	return t, close, err
}

// announce prints the search's budget before the search begins, unless --max-loss gives it. On a GPU it also prints
// the size of the search.
func announce(c *cli.Context, t *transform.Tokens, maxLoss float64) {
	if !c.IsSet("max-loss") {
		recipe := c.String("recipe")
		if recipe == "" {
			recipe = transform.DefaultRecipe
		}
		term.Notice(c, "with --tokens, the recipe %s searches for the largest saving at which perplexity rises by at most %.3g %%; --max-loss sets another budget",
			recipe, 100*math.Expm1(maxLoss))
	}
	if t.Device == nil {
		return
	}
	e := t.Effort()
	term.Notice(c, "the search on %s first computes calibration statistics on %s tokens for fitting and %s held-out tokens (%s in %s). Then it measures %s one at a time on %s tokens, and whole models on %s tokens",
		t.Device.Name(), term.Count(e.Fit), term.Count(e.Held), term.Size(e.Statistics), t.Dir, term.Plural(e.Layers, "layer", "layers"), term.Count(e.Few), term.Count(e.Held))
}

// readTokens reads the file of --tokens.
func readTokens(c *cli.Context, m *weights.Model, o transform.Options) (*transform.Tokens, error) {
	file, err := openTokens(c.Context, c.String("tokens"), m.Dir)
	if err != nil {
		return nil, err
	}
	family, err := flag.FamilyFile(c)
	if err != nil {
		return nil, err
	}
	return transform.NewTokens(m, file, o.Family, family, o.Workers)
}

// withoutDevice adds advice to an error of the GPU that --device names.
func withoutDevice(err error) error {
	switch {
	case errors.Is(err, cuda.ErrOutOfMemory):
		return fmt.Errorf("%w: stop other programs on the GPU, or leave --device out to run the model on the CPU", err)
	case errors.Is(err, cuda.ErrNoGPU), errors.Is(err, cuda.ErrNoCompiler), errors.Is(err, cuda.ErrNoKernel):
		return fmt.Errorf("%w; or leave --device out to run the model on the CPU", err)
	}
	return err
}

// finish removes the search's intermediate results, unless a flag keeps them.
func finish(t *transform.Tokens) error {
	if t == nil {
		return nil
	}
	return t.Remove()
}

// planFailed adds advice to the error of an unfinished plan; t may be nil.
func planFailed(c *cli.Context, t *transform.Tokens, err error) error {
	switch {
	case errors.Is(err, plan.ErrPattern) && !c.IsSet("ignore") && !c.IsSet("only"):
		return exit.Usage(inRecipe(c, err))
	case errors.Is(err, plan.ErrPattern):
		return exit.Usage(err)
	case c.Context.Err() == nil:
		return err
	case t != nil && transform.HasSearch(t.Dir):
		return fmt.Errorf("%w: the search's intermediate results are in %s; run the same command again to continue", c.Context.Err(), t.Dir)
	}
	return fmt.Errorf("%w: nothing was written; run the same command again to start over", c.Context.Err())
}

// overBudget returns an error if out, the result, has a perplexity that rises by more than the budget; nil otherwise.
func overBudget(out string, r *transform.Conversion) error {
	if r.WithinBudget() {
		return nil
	}
	return errAboveMaxLoss(out, r.Loss.Difference, r.Plan.Request.MaxLoss)
}
