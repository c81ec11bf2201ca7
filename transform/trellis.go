package transform

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/lowtoggle/lowtoggle/transform/rounding"
)

// Trellis is what trellis does to a tensor.
type Trellis struct {
	// Lambda is the relative error of the layer's output that is worth a relative energy of 1.
	Lambda float64 `json:"lambda"`
	// Rates are what values cost, as the cost model said of this layer when the plan was made.
	Rates rounding.Rates `json:"rates"`
}

var trellisPass = &Pass{
	Name: "trellis", Class: Lossy, UsesInputs: true,
	Usage: "trellis[=LAMBDA]",
	Doc: "Chooses every value among those near it by what it costs in error and in energy: values of few " +
		"significant bits, powers of two above all, toggle less wires in multipliers and memory; in the streaming " +
		"role also values like those of the row before (by dynamic programming along rows). What a value costs is asked of the cost model for " +
		"the layer, workload and role, and written into the plan. LAMBDA says how much of the output's power may " +
		"be lost to error for all of its energy: 1e-3 is gentle, 1e-1 leaves mostly powers of two. With " +
		"--tokens errors are weighed by the inputs that layers really get. With compensate it is the best trade there is.",
	check: func(args []string) error {
		if l, err := strconv.ParseFloat(args[0], 64); err != nil || !(l > 0 && l <= 1000) {
			return fmt.Errorf("%q is no number above 0 and up to 1000", args[0])
		}
		if len(args) > 1 {
			return errors.New("too many arguments")
		}
		return nil
	},
	candidates: func(t *target, args []string) ([]*Step, error) {
		if len(args) == 0 && t.p.opt.MinSNR == nil {
			return nil, nil // the search for a budget of loss chooses
		}
		rates, err := t.rates()
		if err != nil {
			return nil, err
		}
		tried := lambdas()
		if len(args) > 0 {
			lambda, _ := strconv.ParseFloat(args[0], 64)
			tried = []float64{lambda}
		}
		var steps []*Step
		for _, lambda := range tried {
			steps = append(steps, &Step{Trellis: &Trellis{lambda, rates}})
		}
		return steps, nil
	},
	compile: func(s *Step, c *compiler) error {
		if s.Trellis == nil {
			return errors.New("does not say what values cost")
		}
		if l := s.Trellis.Lambda; !(l >= 0 && l <= 1000) {
			return fmt.Errorf("a lambda of %g is not within 0 and 1000", l)
		}
		return s.Trellis.Rates.Validate(c.prog.format)
	},
}

// rates asks the cost model what values of this layer cost: the layer rounded to each number of
// significant bits, with a quarter of its outputs zeroed, and with rows made alike.
func (t *target) rates() (r rounding.Rates, err error) {
	sample, err := t.sample(nil)
	if err != nil {
		return r, err
	}
	energy := func(change op) (float64, error) {
		prog := *t.base
		prog.ops = append(prog.ops[:len(prog.ops):len(prog.ops)], change)
		e, err := sample.energy(t.p, &prog)
		return e.Relative, err
	}
	full := t.format.MantBits + 1
	r.Significant = make([]float64, full+1)
	for bits := range full {
		zeroed := min(full-1-bits, t.format.Zeroable())
		if r.Significant[bits+1], err = energy(func(b block) { roundBlock(b.format, b.data, Bits{Zeroed: zeroed}) }); err != nil {
			return r, err
		}
	}
	// More bits cost no less; a sample may say otherwise.
	for b := full - 1; b >= 1; b-- {
		r.Significant[b] = math.Min(r.Significant[b], r.Significant[b+1])
	}
	// Measured: a zero among other values saves no more than a power of two does.
	r.Significant[0] = r.Significant[1]
	const share = 4
	lines, err := energy(func(b block) {
		for i := range b.rows {
			row := b.data[i*len(b.data)/b.rows : (i+1)*len(b.data)/b.rows]
			clear(row[len(row)-len(row)/share:])
		}
	})
	// A quarter of the lines may save more than a quarter of the energy, and no line less than all.
	r.Line = math.Max(0, math.Min(r.Significant[1], r.Significant[full]-share*(r.Significant[full]-lines)))
	if err != nil {
		return r, err
	}
	return r, t.stepRates(&r, energy)
}

// stepRates are what a step from row to row costs more where the values differ: the saving of
// equal rows in runs, and the part of it that equal signs make.
func (t *target) stepRates(r *rounding.Rates, energy func(op) (float64, error)) error {
	if t.base.outAxis == 1 {
		return nil // rows of the file are inputs there
	}
	const run = 4
	alike, err := energy(func(b block) {
		size := len(b.data) / b.rows
		for i := range b.rows {
			if first := i - (b.first+i)%run; first >= 0 {
				copy(b.data[i*size:(i+1)*size], b.data[first*size:])
			}
		}
	})
	if err != nil {
		return err
	}
	signless, err := energy(func(b block) {
		for i := range b.rows * b.cols {
			b.format.SetElem(b.data, i, b.format.Elem(b.data, i)&^b.format.SignMask())
		}
	})
	full := len(r.Significant) - 1
	saved := r.Significant[full] - alike
	const least = 0.01 // what a sample of an uncoupled role may show
	if err != nil || saved < least {
		return err
	}
	// Three of four steps are within a run; half of all signs differ.
	steps := saved * run / (run - 1)
	r.Sign = math.Max(0, math.Min(2*(r.Significant[full]-signless), steps))
	r.Differ = math.Max(0, steps-r.Sign/2)
	r.Run = run
	return nil
}
