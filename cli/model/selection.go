package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/plan"
)

var (
	ignoreFlag      = &cli.StringFlag{Name: "ignore", Usage: "do not change `PATTERNS`, such as lm_head,*.v_proj,re:.*gate$"}
	onlyFlag        = &cli.StringFlag{Name: "only", Usage: "change weights of these `PATTERNS` only"}
	trustFamilyFlag = &cli.BoolFlag{Name: "trust-family", Usage: "trust that the model's own code (auto_map) computes like its family",
		DisableDefaultText: true}
)

// readSelection reads --ignore and --only. --ignore adds to a recipe's patterns; --only replaces them.
func readSelection(c *cli.Context, o *transform.Options) error {
	for _, name := range []string{"ignore", "only"} {
		if c.IsSet(name) && c.String(name) == "" {
			return exit.Usagef("--%s is empty: give names of modules or patterns, such as lm_head,*.v_proj", name)
		}
	}
	o.Selection.Ignore = slices.Concat(o.Selection.Ignore, splitPatterns(c.String("ignore")))
	if c.IsSet("only") {
		o.Selection.Only = splitPatterns(c.String("only"))
	}
	o.TrustFamily = o.TrustFamily || c.Bool("trust-family")
	if _, err := o.Selection.Selector(); err != nil {
		return exit.Usage(ofOption(c, err))
	}
	return nil
}

// ofOption names --ignore or --only in an error about one of its patterns. Patterns of a recipe have no option.
func ofOption(c *cli.Context, err error) error {
	if !errors.Is(err, plan.ErrPattern) {
		return err
	}
	for _, name := range []string{"ignore", "only"} {
		for _, p := range splitPatterns(c.String(name)) {
			switch about := fmt.Sprintf("%v %q", plan.ErrPattern, p); {
			case strings.HasPrefix(err.Error(), name+": "+about):
				return fmt.Errorf("--%w", err)
			case strings.HasPrefix(err.Error(), about):
				return fmt.Errorf("--%s: %w", name, err)
			}
		}
	}
	return err
}

// splitPatterns splits a list at commas. Commas within brackets belong to a regular expression.
func splitPatterns(list string) (all []string) {
	if list == "" {
		return nil
	}
	depth, start := 0, 0
	for i, c := range list {
		switch {
		case strings.ContainsRune("([{", c):
			depth++
		case strings.ContainsRune(")]}", c):
			depth--
		case c == ',' && depth <= 0:
			all, start = append(all, list[start:i]), i+1
		}
	}
	return append(all, list[start:])
}

// leaves returns a function that reports which weights a format conversion leaves unquantised; nil: only the default
// ones.
func leaves(s plan.Selection) func(name string) bool {
	selector, err := s.Selector() // the patterns were checked before
	if err != nil || selector.LeavesNone() {
		return nil
	}
	return func(name string) bool { return selector.Leaves(name) }
}

// withSelection adds --ignore and --only, if given, to a command's words.
func withSelection(c *cli.Context, words ...string) []string {
	for _, f := range []string{"ignore", "only"} {
		if list := c.String(f); list != "" {
			words = append(words, "--"+f, list)
		}
	}
	if c.Bool("trust-family") {
		words = append(words, "--trust-family")
	}
	return words
}
