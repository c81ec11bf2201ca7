package card

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cli/flag"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/gemm/operand"
)

// predictRequest holds predict's flags and arguments.
type predictRequest struct {
	request
	sources  []operand.Source
	compared bool // sources are compared with the first, which is --w
	layers   bool // print a row for every layer
	chosen   bool // --cold or --workload decode chooses where the weights are
	phased   bool // --workload was given
}

func readPredict(c *cli.Context) (*predictRequest, error) {
	f := &predictRequest{request: request{seed: c.Uint64("seed")}, layers: c.Bool("layers")}
	var err error
	if f.Role, err = cost.ParseRole(c.String("role")); err != nil {
		return nil, exit.Usage(fmt.Errorf("--role: %w", err))
	}
	if f.Family, err = flag.ReadFamily(c); err != nil {
		return nil, err
	}
	if c.IsSet("dtype") {
		if f.dtype, err = arith.ParseType(strings.ToLower(c.String("dtype"))); err != nil {
			return nil, exit.Usage(fmt.Errorf("--dtype: %w", err))
		}
	}
	if name := c.String("kernel"); name != "" {
		if f.kernel, err = cost.ParseKernel(name); err != nil {
			return nil, exit.Usage(fmt.Errorf("--kernel: %w", err))
		}
	}
	if err := readSource(c, "x", &f.x); err != nil {
		return nil, err
	}
	if err := f.readSources(c); err != nil {
		return nil, err
	}
	decode := false
	switch phase := c.String("workload"); phase {
	case "prefill":
	case "decode":
		decode = true
	default:
		mixture := ""
		if w, err := cost.ParseWorkload(phase); err == nil && w.Prefill > 0 && w.Decode > 0 {
			mixture = "; to predict a mixture:\n" + term.CommandIndent + term.CommandLine("verify", "MODEL", "OUT", "--workload", phase)
		}
		return nil, exit.Usagef("--workload %s: predict takes one phase: give prefill or decode%s", phase, mixture)
	}
	f.cold, f.chosen, f.phased = decode || c.Bool("cold"), decode || c.IsSet("cold"), c.IsSet("workload")
	return f, f.readTokens(c.String("shape"), decode)
}

// models returns the files and folders that operands are read from.
func (f *predictRequest) models() []string { return pathsOf(append(f.sources, f.x)...) }

// readSources reads --w, every --against and the arguments, in this order. If there are none, the source is the
// default pattern.
func (f *predictRequest) readSources(c *cli.Context) error {
	add := func(name, text string) error {
		text = flag.Path(text)
		s, err := operand.Parse(text)
		switch {
		case err != nil:
			return sourceError(name, err)
		case slices.ContainsFunc(f.sources, func(have operand.Source) bool { return have.Text == text }):
			return exit.Usagef("%s is given twice: give it once", text)
		}
		f.sources = append(f.sources, s)
		return nil
	}
	if f.compared = c.IsSet("w"); f.compared {
		if err := add("w", c.String("w")); err != nil {
			return err
		}
	}
	for _, text := range c.StringSlice("against") {
		if err := add("against", text); err != nil {
			return err
		}
	}
	for _, text := range c.Args().Slice() {
		if err := add("", text); err != nil {
			return err
		}
	}
	if len(f.sources) == 0 {
		f.sources = []operand.Source{operand.DefaultW(f.dtype)}
	}
	return nil
}

// readTokens reads --shape as measure does. Decoding has its own default number of tokens.
func (f *predictRequest) readTokens(text string, decode bool) error {
	shaped := slices.ContainsFunc(f.sources, operand.Source.HasShape)
	if decode && text == "" {
		text = decodeShape(shaped)
	}
	return f.readShape(text, shaped)
}

// decodeShape returns the default --shape for decoding. Weights from files have their own N and K.
func decodeShape(shaped bool) string {
	if shaped {
		return fmt.Sprint(operand.DecodeTokens)
	}
	return fmt.Sprintf("%dx%dx%d", operand.DecodeTokens, operand.DefaultSize, operand.DefaultSize)
}
