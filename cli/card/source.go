package card

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cli/flag"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm/operand"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
)

// sourceHelp explains sources.
const sourceHelp = `A SOURCE is one of
   PATTERN       such as normal(0,0.02), zeros, or normal(0,0.02) | round(4) | sparse(50%);
                 docs/patterns.md has the language
   PATH:TENSOR   a tensor of a folder or a safetensors file
   PATH:         all linear layers, one after the other; PATH:*up_proj.weight takes the layers
                 that match. A later source PATH: takes the layers of the first source. As --x,
                 PATH: has a tensor of inputs for each layer, with the layer's name.
tensor(PATH:TENSOR) | round(4) is a pattern, too. The default is normal(0,0.02) for w and
normal(0,1) for x; for both, it is normal(0,1) in FP8 and normal(0,32) in INT8. For FP8 and INT8,
tensors of other types are scaled by a power of two to the range of the type.`

// readSource parses a flag's source into to, if the flag is set.
func readSource(c *cli.Context, name string, to *operand.Source) (err error) {
	if !c.IsSet(name) {
		return nil
	}
	*to, err = operand.Parse(flag.Path(c.String(name)))
	return sourceError(name, err)
}

// noticeOrder prints a notice if w is a conversion and against is not, so that the user probably swapped both.
func noticeOrder(c *cli.Context, w, against operand.Source) {
	if w.Path == "" || against.Path == "" || weights.IsURL(against.Path) {
		return
	}
	if _, err := plan.ReadManifest(w.Path); err != nil {
		return
	}
	if _, err := plan.ReadManifest(against.Path); errors.Is(err, fs.ErrNotExist) {
		term.Notice(c, "%s is a conversion and %s is not: to compare a conversion with its source, give the source as --w and the conversion as --against", w.Path, against.Path)
	}
}

// sourceError adds the flag's name to a non-nil error. A missing file is not a usage error.
func sourceError(name string, err error) error {
	if err == nil {
		return nil
	}
	if name != "" {
		err = fmt.Errorf("--%s: %w", name, err)
	}
	if errors.Is(err, operand.ErrNoFile) {
		return err
	}
	return exit.Usage(err)
}

// operandError adds advice to an error about operands.
func operandError(err error) error {
	var (
		missing *operand.NotFoundError
		shape   *operand.ShapeError
		typ     *operand.TypeError
		problem *operand.ProblemError
	)
	switch {
	case errors.As(err, &missing):
		return fmt.Errorf("%w; %s lists its tensors", err, term.CommandLine("inspect", missing.Path, "--tensors"))
	case errors.As(err, &shape):
		return exit.Usage(fmt.Errorf("--shape: %w", err))
	case errors.As(err, &typ):
		return fmt.Errorf("%w: choose a type with --dtype", err)
	case errors.As(err, &problem):
		return exit.Usage(err)
	}
	return err
}
