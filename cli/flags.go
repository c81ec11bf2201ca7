package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// Flags that several commands share.
var (
	jsonFlag    = &cli.BoolFlag{Name: "json", Usage: "print one JSON document and nothing else"}
	quietFlag   = &cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "show no progress"}
	workersFlag = &cli.IntFlag{Name: "workers", Usage: "goroutines to work with", DefaultText: "all processors"}
	archFlag    = &cli.StringFlag{Name: "arch", Usage: "read the model's family from `FILE` instead of the catalogue"}

	passesFlag   = &cli.StringFlag{Name: "passes", Usage: "exactly these `PASSES`, such as reorder,round=4; lowtoggle passes lists them"}
	recipeFlag   = &cli.StringFlag{Name: "recipe", Usage: "exact, near-lossless, balanced or a `FILE`", DefaultText: transform.DefaultRecipe}
	minSNRFlag   = &cli.Float64Flag{Name: "min-snr", Usage: "budget: every layer's output keeps this signal-to-noise ratio, in `dB`", DefaultText: "the recipe's"}
	workloadFlag = &cli.StringFlag{Name: "workload", Value: "prefill", Usage: "`WORKLOAD` to save in: prefill, decode or prefill=0.3,decode=0.7"}
	roleFlag     = &cli.StringFlag{Name: "role", Value: "stationary", Usage: "the weights' `ROLE` in the product: stationary (today's runtimes) or streaming"}
	seedFlag     = &cli.Uint64Flag{Name: "seed", Usage: "`NUMBER` that fixes what is drawn at random"}
)

var commonFlags = []cli.Flag{jsonFlag, quietFlag, workersFlag}

var planFlags = []cli.Flag{passesFlag, recipeFlag, minSNRFlag, workloadFlag, roleFlag, seedFlag, archFlag}

func flags(groups ...[]cli.Flag) []cli.Flag {
	var all []cli.Flag
	for _, g := range groups {
		all = append(all, g...)
	}
	return all
}

func workers(c *cli.Context) (int, error) {
	if !c.IsSet("workers") {
		return runtime.GOMAXPROCS(0), nil
	}
	if n := c.Int("workers"); n >= 1 && n <= 4096 {
		return n, nil
	}
	return 0, usagef("--workers %d: give a number from 1 to 4096", c.Int("workers"))
}

// family reads the file that --arch names; nil where it names none.
func family(c *cli.Context) (*arch.Family, error) {
	path := c.String("arch")
	if path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f, err := arch.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// workload reads --workload and --role.
func workload(c *cli.Context) (cost.Workload, cost.Role, error) {
	w, err := cost.ParseWorkload(c.String("workload"))
	if err != nil {
		return w, 0, usageError{fmt.Errorf("--workload: %w", err)}
	}
	r, err := cost.ParseRole(c.String("role"))
	if err != nil {
		return w, r, usageError{fmt.Errorf("--role: %w", err)}
	}
	return w, r, nil
}

// planOptions reads everything that a plan is made with.
func planOptions(c *cli.Context) (o transform.Options, err error) {
	if o.Workload, o.Role, err = workload(c); err != nil {
		return o, err
	}
	if o.Workers, err = workers(c); err != nil {
		return o, err
	}
	if o.Family, err = family(c); err != nil {
		return o, err
	}
	o.Seed, o.Version, o.Cost = c.Uint64("seed"), Version, predictor
	passes := c.String("passes")
	if c.IsSet("passes") && c.IsSet("recipe") {
		return o, usagef("--passes and --recipe exclude each other")
	}
	if !c.IsSet("passes") {
		name := transform.DefaultRecipe
		if c.IsSet("recipe") {
			name = c.String("recipe")
		}
		recipe, err := transform.FindRecipe(name)
		if err != nil {
			return o, usageError{err}
		}
		passes, o.MinSNR = recipe.Passes, recipe.MinSNR
	}
	if c.IsSet("min-snr") {
		v := c.Float64("min-snr")
		o.MinSNR = &v
	}
	if o.Passes, err = transform.ParsePasses(passes); err != nil {
		return o, usageError{err}
	}
	if err := o.Validate(); err != nil {
		return o, usageError{err}
	}
	return o, nil
}

// predictor is the cost model that commands use.
var predictor transform.Cost = cost.Rough{}

// printJSON writes a document to standard output.
func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
