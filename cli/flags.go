package cli

import (
	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/transform"
)

// Flags shared by several commands.
var (
	jsonFlag    = &cli.BoolFlag{Name: "json", Usage: "print one JSON document and nothing else", DisableDefaultText: true}
	quietFlag   = &cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "show no progress", DisableDefaultText: true}
	workersFlag = &cli.IntFlag{Name: "workers", Usage: "use `N` goroutines", DefaultText: "all processors"}
	tensorsFlag = &cli.BoolFlag{Name: "tensors", Usage: "one row for each tensor instead of each kind", DisableDefaultText: true}
	archFlag    = &cli.StringFlag{Name: "arch", Usage: "read the model's family from `FILE` instead of the catalogue"}
	tokensFlag  = &cli.StringFlag{Name: "tokens", Usage: "measure the loss on the tokens in `FILE`"}

	passesFlag   = &cli.StringFlag{Name: "passes", Usage: "exactly these `PASSES`, such as reorder,round=4; see lowtoggle passes"}
	recipeFlag   = &cli.StringFlag{Name: "recipe", Usage: "exact, near-lossless, balanced or a `FILE`", DefaultText: transform.DefaultRecipe}
	minSNRFlag   = &cli.Float64Flag{Name: "min-snr", Usage: "keep every layer's output SNR above this many `dB`", DefaultText: "the recipe's; --passes: none"}
	workloadFlag = &cli.StringFlag{Name: "workload", Value: "prefill", Usage: "`MIX`: prefill, decode or prefill=0.3,decode=0.7", DefaultText: "prefill"}
	roleFlag     = &cli.StringFlag{Name: "role", Value: "stationary", Usage: "`ROLE` of the weights: stationary or streaming", DefaultText: "stationary"}
	seedFlag     = &cli.Uint64Flag{Name: "seed", Usage: "`NUMBER` that seeds everything random"}
)

var commonFlags = []cli.Flag{jsonFlag, quietFlag, workersFlag}

func flags(groups ...[]cli.Flag) []cli.Flag {
	var all []cli.Flag
	for _, g := range groups {
		all = append(all, g...)
	}
	return all
}
