package cli

import (
	"fmt"
	"os"
	"runtime"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

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

// readings are what a command that looks at models is asked for.
type readings struct {
	workload    cost.Workload
	role        cost.Role
	workers     int
	family      *arch.Family
	calibration *cost.Calibration
}

func readOptions(c *cli.Context) (o readings, err error) {
	if o.workload, o.role, err = workload(c); err != nil {
		return o, err
	}
	if o.workers, err = workers(c); err != nil {
		return o, err
	}
	if o.calibration, err = calibration(c); err != nil {
		return o, err
	}
	o.family, err = family(c)
	return o, err
}

// planOptions reads everything that a plan is made with.
func planOptions(c *cli.Context) (o transform.Options, err error) {
	r, err := readOptions(c)
	if err != nil {
		return o, err
	}
	o.Workload, o.Role, o.Workers, o.Family = r.workload, r.role, r.workers, r.family
	o.Seed, o.Version, o.Cost = c.Uint64("seed"), Version, r.calibration
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
		passes, o.Budget.MinSNR = recipe.Passes, recipe.MinSNR
		if c.IsSet("tokens") && recipe.WithTokens != "" && !c.IsSet("min-snr") {
			passes, o.Budget.MinSNR = recipe.WithTokens, nil
			if recipe.MaxLoss != nil {
				o.Budget.MaxLoss = nats(*recipe.MaxLoss)
			}
		}
	}
	if err := readBudget(c, &o); err != nil {
		return o, err
	}
	if c.IsSet("min-snr") {
		v := c.Float64("min-snr")
		o.Budget.MinSNR = &v
	}
	if o.Passes, err = transform.ParsePasses(passes); err != nil {
		return o, usageError{err}
	}
	known := o
	if c.IsSet("tokens") { // what is read from them is not there yet
		known.Tokens = &transform.Tokens{}
	}
	if err := known.Validate(); err != nil {
		return o, usageError{err}
	}
	return o, nil
}
