package model

import (
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cli/flag"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/weights"
)

// planFlags returns the flags of a command that makes a plan, with the command's own flag for tokens.
func planFlags(tokens *cli.StringFlag) []cli.Flag {
	return []cli.Flag{formatFlag, flag.Passes, flag.Recipe, ignoreFlag, onlyFlag, trustFamilyFlag, flag.MinSNR, referenceFlag, tokens, maxLossFlag, searchTimeFlag, searchDirFlag, planDeviceFlag, flag.Workload, flag.Role, flag.Seed, flag.Arch, flag.GPU, flag.Calibration}
}

// planOptions reads all options of a plan.
func planOptions(c *cli.Context) (o transform.Options, err error) {
	r, err := flag.Read(c)
	if err != nil {
		return o, err
	}
	o.Workload, o.Role, o.Workers, o.Family = r.Workload, r.Role, r.Workers, r.Family
	o.Seed, o.Version, o.Cost = c.Uint64("seed"), c.App.Version, r.Calibration
	passes := c.String("passes")
	if c.IsSet("passes") && c.IsSet("recipe") {
		return o, exit.Usagef("--passes and --recipe exclude each other: give one of them")
	}
	switch {
	case c.IsSet("format"):
		if passes, err = readFormat(c, &o); err != nil {
			return o, err
		}
	case !c.IsSet("passes"):
		recipe, err := findRecipe(c)
		if err != nil {
			return o, err
		}
		passes, o.Budget.MinSNR, o.Budget.OrSource = recipe.Passes, recipe.MinSNR, true
		o.Selection, o.KeepRouters, o.TrustFamily = recipe.Selection, !recipe.Routers, recipe.TrustFamily
		if searches(c, recipe) {
			passes, o.Budget.MinSNR = recipe.WithTokens, nil
			if recipe.MaxLoss != nil {
				o.Budget.MaxLoss = nats(*recipe.MaxLoss)
			}
		}
	}
	if err := readSelection(c, &o); err != nil {
		return o, err
	}
	if err := readBudget(c, &o); err != nil {
		return o, err
	}
	if c.IsSet("min-snr") {
		v := c.Float64("min-snr")
		if !(v >= 0 && v <= 200) {
			return o, exit.Usagef("--min-snr %v: give a number from 0 to 200, in dB", v)
		}
		o.Budget.MinSNR, o.Budget.OrSource = &v, false
	}
	if passes != "" || !c.IsSet("format") { // a format needs no passes
		if o.Passes, err = transform.ParsePasses(passes); err != nil {
			return o, exit.Usage(err)
		}
	}
	known := o
	if c.IsSet("tokens") { // the tokens are read later
		known.Tokens = &transform.Tokens{}
	}
	if err := known.Validate(); err != nil {
		return o, exit.Usage(inRecipe(c, err))
	}
	return o, nil
}

// findRecipe returns the recipe of --recipe, or the default one.
func findRecipe(c *cli.Context) (transform.Recipe, error) {
	name := transform.DefaultRecipe
	if c.IsSet("recipe") {
		name = c.String("recipe")
	}
	recipe, err := transform.FindRecipe(name)
	if err != nil {
		return recipe, exit.Usage(err)
	}
	return recipe, nil
}

// inRecipe adds the recipe's file to an error about the recipe's content.
func inRecipe(c *cli.Context, err error) error {
	name := c.String("recipe")
	if name == "" || slices.ContainsFunc(transform.Recipes, func(r transform.Recipe) bool { return r.Name == name }) {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}

// searches reports whether the recipe's passes for tokens are used.
func searches(c *cli.Context, recipe transform.Recipe) bool {
	return c.IsSet("tokens") && recipe.WithTokens != "" && !c.IsSet("min-snr")
}

// suitRecipe sets the passes of a recipe that suit the model.
func suitRecipe(c *cli.Context, m *weights.Model, o *transform.Options) error {
	if c.IsSet("passes") || c.IsSet("format") {
		return nil
	}
	recipe, err := findRecipe(c)
	if err != nil {
		return err
	}
	recipe.TrustFamily = o.TrustFamily
	suited := recipe.For(m, o.Family, o.Workload)
	passes := suited.Passes
	if searches(c, recipe) {
		passes = suited.WithTokens
	}
	if o.Passes, err = transform.ParsePasses(passes); err != nil {
		return exit.Usage(err)
	}
	return nil
}
