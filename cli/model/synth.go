package model

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cli/flag"
	"github.com/lowtoggle/lowtoggle/cli/outfile"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/internal/printable"
	"github.com/lowtoggle/lowtoggle/internal/spelling"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/quant"
	"github.com/lowtoggle/lowtoggle/weights/quantise"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

const synthExamples = `

   lowtoggle synth llama-tiny m                        a few hundred kB, for tests
   lowtoggle synth config.json m --shard-size 4GB      the architecture and size of this config
   lowtoggle synth qwen3-tiny m --format int4 --seed 2

`

var Synth = &cli.Command{
	Name:      "synth",
	Usage:     "write a model with random weights, of any architecture and size",
	ArgsUsage: "CONFIG OUT",
	Description: strings.TrimSpace(term.Wrap("CONFIG is a config.json, or one of "+strings.Join(synth.Names(), ", ")+". As in trained "+
		"models, the weights' scales differ between channels, and a few channels are outliers. OUT appears whole or "+
		"not at all.", "", "", 90)) + synthExamples + formatsHelp(),
	Flags: flag.Join([]cli.Flag{
		flag.Seed,
		&cli.StringFlag{Name: "dtype", Usage: "element `TYPE`, such as BF16, F16, F32 or F8_E4M3", DefaultText: "the config's"},
		&cli.StringFlag{Name: "format", Usage: "write a quantised checkpoint in the format `NAME`", DefaultText: "none"},
		&cli.BoolFlag{Name: "sparse", Usage: "write sparse files, in which one row in 128 of a matrix has values", DisableDefaultText: true},
		&cli.StringFlag{Name: "filled", Usage: "with --sparse: `NUMBERS` of files without holes, such as 1,7", DefaultText: "none"},
		&cli.StringFlag{Name: "shard-size", Value: "2GB", DefaultText: "2GB", Usage: "largest file, in `BYTES` (kB, MB, GB)"},
		flag.Arch,
	}, flag.Common),
	Action: func(c *cli.Context) error {
		args, err := flag.Arguments(c, "CONFIG", "OUT")
		if err != nil {
			return err
		}
		o := synth.Options{Seed: c.Uint64("seed"), Sparse: c.Bool("sparse")}
		if c.IsSet("filled") {
			if !o.Sparse {
				return exit.Usagef("--filled needs --sparse: add --sparse, or leave --filled out")
			}
			for text := range strings.SplitSeq(c.String("filled"), ",") {
				n, err := strconv.Atoi(text)
				if err != nil {
					return exit.Usagef("--filled: %q is not a file number: give numbers from 1, such as 1,7", text)
				}
				o.Filled = append(o.Filled, n)
			}
		}
		if o.Workers, err = flag.ReadWorkers(c); err != nil {
			return err
		}
		if o.Family, err = flag.ReadFamily(c); err != nil {
			return err
		}
		if o.ShardBytes, err = flag.ParseSize(c.String("shard-size")); err != nil {
			return exit.Usage(fmt.Errorf("--shard-size: %w", err))
		}
		if c.IsSet("dtype") {
			if o.DType, err = weights.ParseDType(c.String("dtype")); err != nil {
				return exit.Usage(fmt.Errorf("--dtype: %w: choose %s", err, weights.FormatNames("or")))
			}
		}
		if c.IsSet("format") {
			if o.Format, err = quantise.Parse(c.String("format")); err != nil {
				return exit.Usage(fmt.Errorf("--format: %w", err))
			}
			if o.DType.Bits() == 8 {
				return exit.Usagef("--format and --dtype %s exclude each other: give one of them", o.DType)
			}
		}
		config, err := readConfig(args[0])
		if err != nil {
			return err
		}
		if err := outfile.CheckParent(args[1]); err != nil {
			return err
		}
		start := time.Now()
		if err := writeSynth(c, config, args[1], o); err != nil {
			if errors.Is(err, arch.ErrConfig) && filepath.Base(args[0]) != weights.ConfigName {
				err = weights.FileErrorf(args[0], "%w", err)
			}
			return err
		}
		return reportSynth(c, args[1], time.Since(start))
	},
}

// formatsHelp lists the formats, a line each.
func formatsHelp() string {
	var b strings.Builder
	b.WriteString(term.Wrap("--format quantises the linear layers within blocks, except routers. NAME=GROUP, as in int4=64, sets the "+
		"size of INT4 groups. The formats:", "", "", 90) + "\n")
	for _, f := range quantise.Formats() {
		b.WriteString(term.Wrap(f.Doc, fmt.Sprintf("   %-15s", f.Name), strings.Repeat(" ", 18), 90))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// readConfig returns an embedded configuration by name, or the content of a file.
func readConfig(name string) ([]byte, error) {
	if js, err := synth.Config(name); err == nil {
		return js, nil
	}
	return flag.ReadFile(name, "name a config.json, or one of the embedded configurations"+spelling.DidYouMean("", name, synth.Names())+
		", which lowtoggle synth --help lists")
}

func writeSynth(c *cli.Context, config []byte, out string, o synth.Options) error {
	event, end := term.Progress(c)
	defer end()
	o.Progress = func(done, total int64) { event(transform.Event{Stage: "synth", Done: done, Total: total}) }
	return synth.Folder(c.Context, config, out, o)
}

// synthJSON is the output of synth --json.
type synthJSON struct {
	Output   string  `json:"output"`
	Tensors  int     `json:"tensors"`
	Elements int     `json:"elements"` // number of weights
	Bytes    int64   `json:"bytes"`
	Shards   int     `json:"shards"` // number of files
	Seconds  float64 `json:"seconds"`
}

func reportSynth(c *cli.Context, out string, took time.Duration) error {
	m, err := weights.Open(out)
	if err != nil {
		return err
	}
	defer m.Close()
	elements, formats, err := countWeights(m)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return term.JSON(c.App.Writer, synthJSON{out, len(m.Infos()), elements, m.Size(), len(m.Shards), took.Seconds()})
	}
	_, err = fmt.Fprintf(c.App.Writer, "%s written: %s, %s, %s in %s, in %s\ninspect the model: %s\n", printable.Quote(out),
		term.Plural(len(m.Infos()), "tensor", "tensors"), term.Plural(elements, "weight", "weights"), term.Size(m.Size()),
		term.Plural(len(m.Shards), "file", "files"), term.Duration(took), term.CommandLine("inspect", out))
	if err == nil && formats != "" {
		term.Remark(c.App.Writer, "format", formats)
	}
	return err
}

// countWeights counts a model's weights. A quantised weight counts its values, because a stored element may hold
// several. formats lists the quantised weights and their number by format.
func countWeights(m *weights.Model) (n int, formats string, err error) {
	d, err := quant.Describe(m)
	if err != nil {
		return 0, "", err
	}
	for _, t := range m.Infos() {
		if !d.Holds(t.Name) {
			n += t.Len()
		}
	}
	for _, w := range d.Weights {
		n += weights.Info{Shape: w.Shape}.Len()
	}
	return n, d.Formats(), nil
}
