package transform

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/lowtoggle/lowtoggle/weights"
)

// Grid is what grid does to a tensor.
type Grid struct {
	// Exponents of the steps: output n of the result holds multiples of 2^Exponents[n].
	Exponents []int `json:"exponents"`
	// S is what the steps were chosen by: near σ/S. It only informs.
	S float64 `json:"s,omitempty"`
}

var gridPass = &Pass{
	Name: "grid", Class: Lossy,
	Usage: "grid[=S]",
	Doc: "Moves every value to the nearest multiple of a step, a power of two near σ/S of its output " +
		"row (σ the row's root mean square), ties to even. Zero is on every grid. Without S the planner " +
		"takes the coarsest of S = 2, 4, 8, 16, 32 that the budget allows. Coarse grids are the better " +
		"trade once about 0.3 % of perplexity may be spent, above all for a streaming operand.",
	check: func(args []string) error {
		if s, err := strconv.ParseFloat(args[0], 64); err != nil || !(s >= 0.25 && s <= 1<<20) {
			return fmt.Errorf("%q is no number from 0.25 to 2^20", args[0])
		}
		if len(args) > 1 {
			return errors.New("too many arguments")
		}
		return nil
	},
	candidates: func(t *target, args []string) ([]*Step, error) {
		fineness := []float64{2, 4, 8, 16, 32}
		if len(args) > 0 {
			s, _ := strconv.ParseFloat(args[0], 64)
			fineness = []float64{s}
		}
		rms, err := t.outputRMS()
		if err != nil {
			return nil, err
		}
		var steps []*Step
		for _, s := range fineness {
			exps := make([]int, len(rms))
			for n, r := range rms {
				exps[n] = weights.GridExponent(r / s)
			}
			steps = append(steps, &Step{Grid: &Grid{exps, s}})
		}
		return steps, nil
	},
	compile: compileGrid,
}

func compileGrid(s *Step, c *compiler) error {
	p := c.prog
	outputs := p.rows
	if p.outAxis == 1 {
		outputs = p.cols
	}
	if s.Grid == nil || len(s.Grid.Exponents) != outputs {
		return fmt.Errorf("the grid's steps are not one for each of %d outputs", outputs)
	}
	made := map[int]*weights.Grid{}
	steps := make([]*weights.Grid, outputs)
	for n, e := range s.Grid.Exponents {
		if e < -1000 || e > 1000 {
			return errors.New("a step's exponent is not within ±1000")
		}
		if made[e] == nil {
			made[e] = p.format.Grid(e)
		}
		steps[n] = made[e]
	}
	p.ops = append(p.ops, func(b block) {
		size := len(b.data) / (b.rows * b.cols)
		for i := range b.rows {
			row := b.data[i*b.cols*size : (i+1)*b.cols*size]
			if p.outAxis == 0 {
				steps[b.first+i].Apply(row)
				continue
			}
			for k, step := range steps {
				step.Apply(row[k*size : (k+1)*size])
			}
		}
	})
	return nil
}
