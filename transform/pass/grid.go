package pass

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/transform/rounding"
	"github.com/lowtoggle/lowtoggle/weights"
)

// Steps is the data of a step of [Grid].
type Steps struct {
	// Exponents are the exponents of the steps: output n of the result holds multiples of 2^Exponents[n]. Absent for
	// a weight that is stored as codes.
	Exponents []int `json:"exponents,omitempty"`
	// S is the divisor of σ: steps are near σ/S. For codes, σ is the root mean square of the codes under each scale.
	S float64 `json:"s,omitempty"`
}

// Grid rounds values to multiples of a power of two.
var Grid = &Pass{
	Name: "grid", Class: Lossy, Chooser: true,
	Usage: "grid[=S]",
	Doc: "Rounds every value to the nearest multiple of a step, ties to even. The step is a power of two near σ/S of the " +
		"value's output row; σ is the row's root mean square. Without S, the planner takes the coarsest of S = 2, 4, 8, " +
		"16, 32 that the budget allows. S may be 0.25 to 2^20. In BF16, values of at least 128 steps do not change. A " +
		"large S, such as 4000, therefore changes only the smallest values and saves little. Coarse grids suit larger " +
		"budgets, above all for a streaming operand.",
	Args: func(args []string) error {
		if s, err := strconv.ParseFloat(args[0], 64); err != nil || !(s >= 0.25 && s <= 1<<20) {
			return fmt.Errorf("%q is not a number from 0.25 to 2^20", args[0])
		}
		if len(args) > 1 {
			return errors.New("too many arguments")
		}
		return nil
	},
	Codes: anyCodes,
	Candidates: func(ctx context.Context, l *Layer, args []string) (all []any, err error) {
		fineness := []float64{2, 4, 8, 16, 32}
		if len(args) > 0 {
			s, _ := strconv.ParseFloat(args[0], 64)
			fineness = []float64{s}
		}
		if l.Codes() != nil {
			for _, s := range fineness {
				all = append(all, Steps{S: s})
			}
			return all, nil
		}
		rms, err := l.OutputRMS(ctx)
		if err != nil {
			return nil, err
		}
		for _, s := range fineness {
			exps := make([]int, len(rms))
			for n, r := range rms {
				exps[n] = weights.GridExponent(r / s)
			}
			all = append(all, Steps{exps, s})
		}
		return all, nil
	},
	Preview: func(_ context.Context, l *Layer, data any) (program.Operation, error) {
		return gridOperation(l.Base(), data.(Steps))
	},
	Compile: func(s *plan.Step, c *program.Context) (o program.Operation, err error) {
		steps, err := plan.Data[Steps](s)
		if err != nil {
			return o, err
		}
		if c.Program.Coded() {
			if !(steps.S > 0) || steps.Exponents != nil {
				return o, errors.New("the grid of a quantised weight needs S and has no exponents")
			}
			return program.Operation{Codes: &program.Recoding{Grid: steps.S}}, nil
		}
		return gridOperation(c.Program, steps)
	},
	Describe: func(s *plan.Step) string {
		steps, _ := plan.Data[Steps](s)
		if steps.S > 0 {
			return fmt.Sprintf("grid σ/%g", steps.S)
		}
		return "grid"
	},
}

func gridOperation(p *program.Program, data Steps) (o program.Operation, err error) {
	_, outputs := p.OutputAxis()
	if len(data.Exponents) != outputs {
		return o, fmt.Errorf("the grid must have one step for each of the %d outputs", outputs)
	}
	made := map[int]*weights.Grid{}
	steps := make([]*weights.Grid, outputs)
	for n, e := range data.Exponents {
		if e < -800 || e > 800 {
			return o, fmt.Errorf("the exponent %d of output %d's step is not within ±800", e, n)
		}
		if made[e] == nil {
			made[e] = p.Format.Grid(e)
		}
		steps[n] = made[e]
	}
	o.Apply = func(b program.Block) {
		size := len(b.Data) / (b.Rows * b.Cols)
		for i := range b.Rows {
			row := b.Data[i*b.Cols*size : (i+1)*b.Cols*size]
			if p.OutAxis == 0 {
				steps[b.First+i].Apply(row)
				continue
			}
			for k, step := range steps {
				step.Apply(row[k*size : (k+1)*size])
			}
		}
	}
	o.Chooser = func(int, float64) (rounding.Chooser, error) {
		return rounding.Grid{Format: p.Format, Exponents: data.Exponents}, nil
	}
	return o, nil
}
