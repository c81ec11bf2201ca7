package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path"
	"strings"

	"github.com/lowtoggle/lowtoggle/cost/pattern"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/weights"
)

// source is where the values of an operand come from: a pattern, or tensors of a file.
type source struct {
	text    string
	pattern pattern.Pattern // where path is ""
	path    string          // of the model; "" for patterns
	tensors string          // a name, one with wildcards, or "" for all linear layers
}

// errNoSuchFile is about the world, not the command line.
var errNoSuchFile = errors.New("there is no such file or folder")

// sourceHelp says how a source is written.
const sourceHelp = `A SOURCE is one of
   PATTERN       such as normal(0,0.02), zeros, or normal(0,0.02) | round(4) | sparse(50%);
                 docs/patterns.md has the language
   PATH:TENSOR   a tensor of a folder or a safetensors file
   PATH:         all linear layers, one after the other; PATH:*up_proj.weight those that match.
                 For other weights, the same layers of another model; for --x, the tensor that
                 is named like the layer.
tensor(PATH:TENSOR) | round(4) is a pattern, too. Usual are normal(0,0.02) for w and normal(0,1)
for x; normal(0,1) for both in FP8, normal(0,32) in INT8. Tensors of other types are scaled by a
power of two to the range of these two.`

// parseSource reads a pattern, or PATH:TENSOR.
func parseSource(text string) (source, error) {
	s := source{text: text}
	p, wrong := pattern.Parse(text)
	if wrong == nil {
		s.pattern = p
		return s, nil
	}
	// A colon may belong to the path: the first one behind something that exists counts.
	for i, c := range text {
		if c != ':' {
			continue
		}
		if _, err := os.Stat(text[:i]); err == nil {
			s.path, s.tensors = text[:i], text[i+1:]
			return s, s.checkTensors()
		}
	}
	if strings.ContainsAny(text, "(|") {
		return s, wrong
	}
	if file, _, tensor := strings.Cut(text, ":"); tensor && file != "" {
		return s, fmt.Errorf("%s: %w", file, errNoSuchFile)
	}
	if _, err := os.Stat(text); err == nil {
		return s, fmt.Errorf("%s: which tensor? write %s:NAME, or %s: for all its linear layers", text, text, text)
	}
	return s, fmt.Errorf("%w\nor a tensor, as in MODEL:NAME (MODEL: alone means all its linear layers)", wrong)
}

// checkTensors refuses wildcards that match nothing whatever the names, and steps of a pattern
// behind a name.
func (s source) checkTensors() error {
	if name, steps, piped := strings.Cut(s.tensors, "|"); piped {
		meant := fmt.Sprintf("tensor(%s:%s) | %s", s.path, strings.TrimSpace(name), strings.TrimSpace(steps))
		if _, err := pattern.Parse(meant); err == nil {
			return fmt.Errorf("%s: only patterns have steps; write %s", s.text, meant)
		}
	}
	if _, err := path.Match(s.tensors, ""); err != nil {
		return fmt.Errorf("%s: %q matches nothing: [ begins a set of characters and ] must end it", s.text, s.tensors)
	}
	return nil
}

// sampleSide of the square of values that holds looks at.
const sampleSide = 64

// holds refuses a pattern whose source type d cannot hold: more than one value in a hundred is
// beyond its largest, or all that are not zero become zero. What steps do is asked for, whatever
// it is; a tensor has been in a file already.
func (s source) holds(ctx context.Context, d weights.DType, seed uint64) error {
	if _, _, ok := s.pattern.Tensor(); ok {
		return nil
	}
	first, _, _ := strings.Cut(s.pattern.String(), " | ")
	draw := func(d weights.DType) (value func(i int) float64, err error) {
		data, err := pattern.MustParse(first).Generate(ctx, pattern.Spec{DType: d, Rows: sampleSide, Cols: sampleSide, Seed: seed}, 1)
		f, _ := d.Format()
		return func(i int) float64 { return float64(f.Value(f.Elem(data, i))) }, err
	}
	exact, err := draw(weights.F32)
	if err != nil {
		return err
	}
	rounded, err := draw(d)
	if err != nil {
		return err
	}
	const n = sampleSide * sampleSide
	most, beyond, nonzero, kept := float64(gemm.MaxOf(d)), 0, 0, 0
	for i := range n {
		if math.Abs(exact(i)) > most {
			beyond++
		}
		if exact(i) != 0 {
			nonzero++
		}
		if rounded(i) != 0 {
			kept++
		}
	}
	switch {
	case beyond > n/100:
		return fmt.Errorf("%s goes beyond what %s holds (%.3g)", first, d, most)
	case nonzero > 0 && kept == 0:
		return fmt.Errorf("%s is nothing but zeros in %s: choose larger values", first, d)
	}
	return nil
}
