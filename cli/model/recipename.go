package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
)

// withRecipe is spell with the name of the built-in recipe that has the request's passes and budget, if there is one.
func withRecipe(m *weights.Model, o transform.Options, r plan.Request) string {
	i := slices.IndexFunc(transform.Recipes, func(recipe transform.Recipe) bool {
		suited := recipe.For(m, o.Family, r.Workload)
		return r.Format == "" && (samePasses(r, suited.Passes) && equal(r.MinSNR, suited.MinSNR) && r.MaxLoss == nil ||
			suited.WithTokens != "" && samePasses(r, suited.WithTokens) && suited.MaxLoss != nil && equal(r.MaxLoss, nats(*suited.MaxLoss)) && r.MinSNR == nil)
	})
	if i < 0 {
		return spell(r)
	}
	return recipeOf(transform.Recipes[i].Name, r)
}

// askedNow is spell for the request of this command, with the recipe that it names.
func askedNow(c *cli.Context, m *weights.Model, o transform.Options) string {
	r := requestOf(m, o)
	if c.IsSet("recipe") && !c.IsSet("format") {
		return recipeOf(c.String("recipe"), r)
	}
	return withRecipe(m, o, r)
}

func recipeOf(name string, r plan.Request) string {
	return fmt.Sprintf("--recipe %s (%s)", term.Words(name), spell(r))
}

func samePasses(r plan.Request, list string) bool {
	passes, err := transform.ParsePasses(list)
	var names []string
	for _, p := range passes {
		names = append(names, p.String())
	}
	return err == nil && strings.Join(names, ",") == strings.Join(r.Passes, ",")
}

func equal(a, b *float64) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }
