package model

import (
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quantise"
)

var formatFlag = &cli.StringFlag{Name: "format", Usage: "quantise to `NAME`, such as fp8, int4 or nvfp4", DefaultText: "the model's"}

// readFormat reads --format. It returns the default passes for codes and scales; --passes replaces them.
func readFormat(c *cli.Context, o *transform.Options) (passes string, err error) {
	for _, f := range []string{"recipe", "min-snr", "max-loss"} {
		if c.IsSet(f) {
			return "", exit.Usagef("--format and --%s exclude each other: quantise first (%s), then convert the result (%s)", f,
				term.CommandLine(withTokens(c, "convert", "MODEL", "QUANTISED", "--format", c.String("format"))...),
				term.CommandLine(withTokens(c, "convert", "QUANTISED", "OUT", "--"+f, fmt.Sprint(c.Value(f)))...))
		}
	}
	if c.IsSet("reference") {
		return "", exit.Usagef("--format and --reference exclude each other, because --format chooses codes near the values of MODEL: leave --reference out")
	}
	if o.Format, err = quantise.ParseTarget(c.String("format")); err != nil {
		return "", exit.Usage(fmt.Errorf("--format: %w", err))
	}
	if c.IsSet("passes") {
		return c.String("passes"), nil
	}
	return transform.FormatPasses(o.Format, c.IsSet("tokens")), nil
}

// sizeOf returns the size of a result's shards in bytes.
func sizeOf(m *weights.Model, out string, man *plan.Manifest) int64 {
	if man == nil || man.Plan.Request.Format == "" {
		return m.Size()
	}
	var n int64
	for _, f := range man.Files {
		if slices.ContainsFunc(man.Shards, func(s plan.Shard) bool { return s.File == f.Path }) {
			n += f.Size
		}
	}
	return n
}

// formatName returns the format's name as in a plan's request, with the group size that fits the model.
func formatName(m *weights.Model, o transform.Options) string {
	if o.Format.Name == "" {
		return ""
	}
	if t, err := quantise.NewTarget(m, o.Family, o.Format, leaves(o.Selection)); err == nil {
		return t.Format.String()
	}
	return o.Format.String()
}
