// Package flag declares and reads the flags and arguments that several commands share.
package flag

import (
	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/transform"
)

// Flags shared by several commands.
var (
	JSON    = &cli.BoolFlag{Name: "json", Usage: "print one JSON document and nothing else", DisableDefaultText: true}
	Quiet   = &cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print the report and errors only, no progress", DisableDefaultText: true}
	Log     = &cli.StringFlag{Name: "log", Usage: "log progress as `KIND`: text, json or none"}
	Workers = &cli.IntFlag{Name: "workers", Usage: "use `N` goroutines", DefaultText: "all processors"}
	Tensors = &cli.BoolFlag{Name: "tensors", Usage: "print a row for each tensor, not for each kind of tensor", DisableDefaultText: true}
	Arch    = &cli.StringFlag{Name: "arch", Usage: "read the architecture from `FILE`, not from the catalogue"}
	Tokens  = &cli.StringFlag{Name: "tokens", Usage: "measure the loss on the tokens in `FILE`"}

	Passes   = &cli.StringFlag{Name: "passes", Usage: "use exactly these `PASSES`, such as reorder,round=4; see lowtoggle passes"}
	Recipe   = &cli.StringFlag{Name: "recipe", Usage: "exact, near-lossless, balanced or a YAML `FILE`", DefaultText: transform.DefaultRecipe}
	MinSNR   = &cli.Float64Flag{Name: "min-snr", Usage: "lowest output SNR of a layer, in `dB`", DefaultText: "the recipe's, or none"}
	Workload = &cli.StringFlag{Name: "workload", Value: "prefill", Usage: "`MIX` by energy share: decode, or prefill=0.3,decode=0.7", DefaultText: "prefill"}
	Role     = &cli.StringFlag{Name: "role", Value: "stationary", Usage: "unquantised weights' `ROLE`: stationary or streaming", DefaultText: "stationary"}
	Seed     = &cli.Uint64Flag{Name: "seed", Usage: "`NUMBER` that seeds all random choices"}
)

// Common are the flags of all commands that read or write models.
var Common = []cli.Flag{JSON, Quiet, Log, Workers}

// Join returns the flags of several groups in one list.
func Join(groups ...[]cli.Flag) []cli.Flag {
	var all []cli.Flag
	for _, g := range groups {
		all = append(all, g...)
	}
	return all
}
