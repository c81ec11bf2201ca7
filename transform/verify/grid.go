package verify

import (
	"context"
	"fmt"
	"math"

	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
)

// Grid checks the pass grid: every value is a multiple of its output's step, and moved by at most half a step.
var Grid = &Check{Claim: func(s *plan.Step) (*Claim, error) {
	d, err := plan.Data[struct {
		Exponents []int   `json:"exponents"`
		S         float64 `json:"s"`
	}](s)
	return &Claim{
		Within: func(_ weights.Format, output int, _, _ float64) float64 {
			if output >= len(d.Exponents) {
				return 0
			}
			return power(max(-1022, min(1023, d.Exponents[output]-1)))
		},
		Codes: func(_ context.Context, m *Codes) error { return gridCodes(m, d.S) },
		Holds: func(ctx context.Context, t *Result) error { return onGrid(ctx, t, d.Exponents) },
	}, err
}}

// onGrid checks that every finite value is a multiple of its output's step, 2^exps[output].
func onGrid(ctx context.Context, t *Result, exps []int) error {
	if outputs := []int{t.Rows, t.Cols}[t.OutAxis]; len(exps) != outputs {
		return fmt.Errorf("the plan has %d grid steps for %d outputs", len(exps), outputs)
	}
	perStep := make([]float64, len(exps)) // reciprocal of the step
	for i, e := range exps {
		if e < -800 || e > 800 {
			return fmt.Errorf("the grid step 2^%d is outside the range of values", e)
		}
		perStep[i] = math.Ldexp(1, -e)
	}
	row := make([]float32, t.Cols)
	for n := range t.Rows {
		if err := ctx.Err(); err != nil {
			return err
		}
		t.Row(row, n)
		for k, v := range row {
			out := n
			if t.OutAxis == 1 {
				out = k
			}
			if q := float64(v) * perStep[out]; v-v == 0 && q != math.Trunc(q) {
				return fmt.Errorf("element [%d, %d] is not a multiple of 2^%d", n, k, exps[out])
			}
		}
	}
	return nil
}
