package transform

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/lowtoggle/lowtoggle/weights"
)

// Grid is what grid does to a tensor.
type Grid struct {
	// Exponents of the steps: output n of the result holds multiples of 2^Exponents[n].
	Exponents []int `json:"exponents"`
}

var gridPass = &Pass{
	Name: "grid", Class: Lossy,
	Usage: "grid[=S]",
	Doc: "Moves every value to the nearest multiple of a step, a power of two near σ/S of its output " +
		"row (σ the row's root mean square), ties to even. Zero is on every grid. Without S the planner " +
		"takes the coarsest of S = 2, 4, 8, 16, 32 that the budget allows. Coarse grids are the better " +
		"trade once about 0.3 % of perplexity may be spent, above all for a streaming operand.",
	check: func(args []string) error {
		if s, err := strconv.ParseFloat(args[0], 64); len(args) != 1 || err != nil || !(s >= 0.25 && s <= 1<<20) {
			return fmt.Errorf("%q is no number from 0.25 to 2^20", args[0])
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
				if r > 0 {
					exps[n] = int(math.Round(math.Log2(r / s)))
				}
			}
			steps = append(steps, &Step{Grid: &Grid{exps}})
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
	steps := make([]gridStep, outputs)
	for n, e := range s.Grid.Exponents {
		if e < -1000 || e > 1000 {
			return errors.New("a step's exponent is not within ±1000")
		}
		steps[n] = newGridStep(p.format, e)
	}
	p.ops = append(p.ops, func(b block) {
		for i := range b.rows {
			for k := range b.cols {
				n := b.first + i
				if p.outAxis == 1 {
					n = k
				}
				at := i*b.cols + k
				b.format.SetElem(b.data, at, steps[n].nearest(b.format, b.format.Elem(b.data, at)))
			}
		}
	})
	return nil
}

// gridStep is 2^e, its inverse, and the largest multiple of it that the format holds.
type gridStep struct{ step, inverse, largest float64 }

func newGridStep(f weights.Format, e int) gridStep {
	g := gridStep{step: math.Ldexp(1, e), inverse: math.Ldexp(1, -e)}
	g.largest = math.Floor(float64(f.Value(f.MaxFinite))*g.inverse) * g.step
	return g
}

// nearest multiple of the step. Where the format has fewer bits than a multiple needs, the
// format's own spacing is the coarser power of two, so the result is a multiple all the same.
func (g gridStep) nearest(f weights.Format, b uint32) uint32 {
	if !f.Finite(b) {
		return b
	}
	v := float64(f.Value(b))
	q := math.RoundToEven(v*g.inverse) * g.step
	if math.Abs(q) > g.largest {
		q = math.Copysign(g.largest, v)
	}
	if q == 0 {
		return 0 // one zero, not two
	}
	return f.FromValue(float32(q))
}
