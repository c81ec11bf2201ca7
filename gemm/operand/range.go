package operand

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/lowtoggle/lowtoggle/cost/pattern"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/weights"
)

// sampleSide is the number of rows and columns of values that checkRange draws.
const sampleSide = 64

// checkRange returns an error for a pattern whose values are outside the range of type d: more than one in a hundred
// exceeds d's largest value, or all nonzero values become zero. It checks only the first step, because the user chooses
// the later steps. It accepts patterns that begin with a tensor.
func (s Source) checkRange(ctx context.Context, d weights.DType, seed uint64) error {
	if _, _, ok := s.Pattern.Tensor(); ok {
		return nil
	}
	first, _, _ := strings.Cut(s.Pattern.String(), " | ")
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
		return fmt.Errorf("%s exceeds the range of %s (±%.3g): choose smaller values", first, d, most)
	case nonzero > 0 && kept == 0:
		return fmt.Errorf("%s becomes zero everywhere in %s: choose larger values", first, d)
	}
	return nil
}
