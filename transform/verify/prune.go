package verify

import (
	"context"
	"fmt"

	"github.com/lowtoggle/lowtoggle/transform/plan"
)

// Prune checks the pass prune: all values of the pruned inputs and outputs are zero. All other values are chosen
// jointly, so any value is allowed.
var Prune = &Check{Claim: func(s *plan.Step) (*Claim, error) {
	d, err := plan.Data[struct {
		Inputs  []int `json:"inputs"`
		Outputs []int `json:"outputs"`
	}](s)
	return &Claim{Anywhere: true, Holds: func(ctx context.Context, t *Result) error {
		return pruned(ctx, t, d.Inputs, d.Outputs)
	}}, err
}}

// pruned checks that all finite values of the given inputs and outputs are zero. Inputs and outputs are source
// positions.
func pruned(ctx context.Context, t *Result, inputs, outputs []int) error {
	rows, cols := make([]bool, t.Rows), make([]bool, t.Cols) // by source position
	in, out := cols, rows
	if t.OutAxis == 1 {
		in, out = rows, cols
	}
	for _, axis := range []struct {
		marks     []bool
		positions []int
	}{{in, inputs}, {out, outputs}} {
		for _, i := range axis.positions {
			if i < 0 || i >= len(axis.marks) {
				return fmt.Errorf("position %d is not from 0 to %d", i, len(axis.marks)-1)
			}
			axis.marks[i] = true
		}
	}
	row := make([]float32, t.Cols)
	for n := range t.Rows {
		if err := ctx.Err(); err != nil {
			return err
		}
		t.Row(row, n)
		for k, v := range row {
			if v != 0 && v-v == 0 && (rows[t.SourceRow(n)] || cols[t.SourceCol(k)]) {
				return fmt.Errorf("element [%d, %d] is %g, and the plan prunes this element", n, k, v)
			}
		}
	}
	return nil
}
