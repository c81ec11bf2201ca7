package transform

import (
	"encoding/binary"
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
				if r > 0 {
					exps[n] = int(math.Round(math.Log2(r / s)))
				}
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
	made := map[int]*gridStep{}
	steps := make([]*gridStep, outputs)
	for n, e := range s.Grid.Exponents {
		if e < -1000 || e > 1000 {
			return errors.New("a step's exponent is not within ±1000")
		}
		if made[e] == nil {
			made[e] = newGridStep(p.format, e)
		}
		steps[n] = made[e]
	}
	p.ops = append(p.ops, func(b block) {
		size := len(b.data) / (b.rows * b.cols)
		for i := range b.rows {
			row := b.data[i*b.cols*size : (i+1)*b.cols*size]
			if p.outAxis == 0 {
				steps[b.first+i].apply(row)
				continue
			}
			for k, step := range steps {
				step.apply(row[k*size : (k+1)*size])
			}
		}
	})
	return nil
}

// gridStep moves values of one format to multiples of one power of two.
type gridStep struct {
	f    *weights.Format
	sign uint32
	max  uint32
	mant int // mantissa bits
	// full is the exponent field at which no bit has to go; each below costs one more bit.
	full int
	exp  int        // the step is 2^exp
	all  *[256]byte // the result for every value of an 8-bit format; else nil
}

func newGridStep(f weights.Format, e int) *gridStep {
	g := &gridStep{&f, f.SignMask(), f.MaxFinite, f.MantBits, e + f.Bias + f.MantBits, e, nil}
	if f.Bits == 8 {
		g.all = new([256]byte)
		for b := range g.all {
			g.all[b] = byte(g.nearest(uint32(b)))
		}
	}
	return g
}

// apply moves a slice of elements in place.
func (g *gridStep) apply(data []byte) {
	switch {
	case g.all != nil:
		for i, b := range data {
			data[i] = g.all[b]
		}
	case g.f.Bits == 16:
		for ; len(data) >= 2; data = data[2:] {
			binary.LittleEndian.PutUint16(data, uint16(g.nearest(uint32(binary.LittleEndian.Uint16(data)))))
		}
	default:
		for ; len(data) >= 4; data = data[4:] {
			binary.LittleEndian.PutUint32(data, g.nearest(binary.LittleEndian.Uint32(data)))
		}
	}
}

// nearest multiple of the step, ties to even. NaN and infinity stay. Where the format has fewer
// bits than a multiple needs, the format's own spacing is the coarser power of two, so the value
// is a multiple already. It works on bits; byArithmetic is its plain twin.
func (g *gridStep) nearest(b uint32) uint32 {
	mag := b &^ g.sign
	exp := int(mag >> g.mant)
	if mag > g.max {
		return b
	}
	if exp == 0 || !g.f.IsFloat() {
		return g.byArithmetic(b)
	}
	unit := uint32(1) << g.mant
	var r uint32
	switch drop := g.full - exp; {
	case drop <= 0:
		return b
	case drop < g.mant: // the multiples of the step in this binade differ in bits above drop
		step := uint32(1) << drop
		r = (mag + step/2 - 1 + mag>>drop&1) &^ (step - 1)
		if r > g.max {
			r = mag &^ (step - 1)
		}
	case drop == g.mant: // between the step and twice the step; halfway goes to twice, which is even
		r = mag &^ (unit - 1)
		if mag&(unit-1) >= unit/2 && r+unit <= g.max {
			r += unit
		}
	case drop == g.mant+1 && mag&(unit-1) != 0: // more than half a step
		r = mag&^(unit-1) + unit
		if r > g.max {
			r = 0
		}
	}
	if r == 0 {
		return 0 // one zero, not two
	}
	return b&g.sign | r
}

// byArithmetic is nearest by division and multiplication.
func (g *gridStep) byArithmetic(b uint32) uint32 {
	if !g.f.Finite(b) {
		return b
	}
	v, limit := float64(g.f.Value(b)), float64(g.f.Value(g.f.MaxFinite))
	if !g.f.IsFloat() && v < 0 {
		limit++ // −128
	}
	q := math.RoundToEven(math.Ldexp(v, -g.exp))
	if largest := math.Floor(math.Ldexp(limit, -g.exp)); math.Abs(q) > largest {
		q = math.Copysign(largest, v)
	}
	if q == 0 {
		return 0
	}
	return g.f.FromValue(float32(math.Ldexp(q, g.exp)))
}
