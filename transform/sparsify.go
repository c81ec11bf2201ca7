package transform

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Zeros is what sparsify does to a tensor: exactly one of its parts.
type Zeros struct {
	// Block is zeroed as a whole where the mean of its squares is below Threshold: rows and columns
	// of the stored matrix; [1, 1] are single elements. Of blocks whose mean is just Threshold the
	// first are zeroed, in the order of memory: those numbered below Ties.
	Block     *[2]int `json:"block,omitempty"`
	Threshold float64 `json:"threshold,omitempty"`
	Ties      int     `json:"ties,omitempty"`
	// Runs along memory: those zeros that minimise the sum of squares lost, minus Runs for each
	// zero, plus runBorder·Runs for each border between a zero and another value.
	Runs float64 `json:"runs,omitempty"`
	// Pattern "2:4" zeroes the two smallest of every four neighbouring inputs.
	Pattern string `json:"pattern,omitempty"`
}

var sparsifyPass = &Pass{
	Name: "sparsify", Class: Lossy,
	Usage: "sparsify=SHARE[/element|/runs|/RxC] or sparsify=2:4",
	Doc: "Zeroes the given share of each layer's weights, the smallest first: single elements, blocks of " +
		"R×C by their mean square, runs along memory, or two of every four inputs. With a share alone the " +
		"planner takes the shape that is predicted to save most at the loss that single elements would " +
		"cause: a zero beside another value toggles, so zeros scattered at random save half of what blocks " +
		"do. It costs far more accuracy than rounding for the same energy.",
	check: checkSparsify,
	candidates: func(t *target, args []string) ([]*Step, error) {
		if len(args) == 0 {
			args = []string{"0.1"}
		}
		if args[0] == "2:4" {
			return []*Step{{Zeros: &Zeros{Pattern: "2:4"}}}, nil
		}
		share, _ := strconv.ParseFloat(args[0], 64)
		if len(args) > 1 {
			return t.zerosOfShare(share, args[1])
		}
		return t.zerosOfLoss(share)
	},
	compile: compileSparsify,
}

func checkSparsify(args []string) error {
	if args[0] == "2:4" && len(args) == 1 {
		return nil
	}
	if s, err := strconv.ParseFloat(args[0], 64); err != nil || !(s > 0 && s <= 1) {
		return fmt.Errorf("%q is neither a share above 0 and up to 1 nor 2:4", args[0])
	}
	if len(args) > 2 {
		return errors.New("too many arguments")
	}
	if len(args) == 2 && args[1] != "element" && args[1] != "runs" {
		if _, err := parseBlock(args[1]); err != nil {
			return err
		}
	}
	return nil
}

func parseBlock(s string) ([2]int, error) {
	h, w, _ := strings.Cut(s, "x")
	rows, err1 := strconv.Atoi(h)
	cols, err2 := strconv.Atoi(w)
	if err1 != nil || err2 != nil || rows < 1 || cols < 1 || rows > 64 || cols > 4096 || 64%rows != 0 {
		return [2]int{}, fmt.Errorf("%q is neither element, runs nor a block RxC with R a power of two up to 64 and C up to 4096", s)
	}
	return [2]int{rows, cols}, nil
}

// zerosOfShare zeroes as much as fits into the given share of all values.
func (t *target) zerosOfShare(share float64, shape string) ([]*Step, error) {
	most := math.Round(share * float64(t.base.rows*t.base.cols))
	if shape == "runs" {
		return t.runsWithin(func(zeros, _ float64) bool { return zeros <= most })
	}
	tile := [2]int{1, 1}
	if shape != "element" {
		tile, _ = parseBlock(shape)
	}
	z, _, err := t.smallestTiles(tile, func(taken square) bool { return taken.n <= most })
	return []*Step{{Zeros: z}}, err
}

// zerosOfLoss lists, for every shape, the zeros that lose no more than single elements of the
// given share would.
func (t *target) zerosOfLoss(share float64) ([]*Step, error) {
	most := math.Round(share * float64(t.base.rows*t.base.cols))
	single, loss, err := t.smallestTiles([2]int{1, 1}, func(taken square) bool { return taken.n <= most })
	if err != nil || loss.n == 0 {
		return nil, err
	}
	steps := []*Step{{Zeros: single}}
	for _, tile := range [][2]int{{16, 1}, {1, 16}, {16, 16}, {64, 64}} {
		z, taken, err := t.smallestTiles(tile, func(taken square) bool { return taken.sum <= loss.sum })
		if err != nil {
			return nil, err
		}
		if taken.n > 0 {
			steps = append(steps, &Step{Zeros: z})
		}
	}
	runs, err := t.runsWithin(func(_, lost float64) bool { return lost <= loss.sum })
	return append(steps, runs...), err
}

// parts counts what z asks for.
func (z *Zeros) parts() (n int) {
	for _, asked := range []bool{z.Block != nil, z.Runs > 0, z.Pattern != ""} {
		if asked {
			n++
		}
	}
	return n
}

func compileSparsify(s *Step, c *compiler) error {
	p, z := c.prog, s.Zeros
	switch {
	case z == nil || z.parts() != 1:
		return errors.New("does not say what to zero, or says it twice")
	case z.Pattern == "2:4":
		if p.outAxis == 1 {
			p.unit = max(p.unit, 4)
		}
		p.ops = append(p.ops, func(b block) { twoOfFour(b, p.outAxis == 1) })
	case z.Pattern != "":
		return fmt.Errorf("pattern %q is not known", z.Pattern)
	case z.Block != nil:
		tile := *z.Block
		if _, err := parseBlock(fmt.Sprintf("%dx%d", tile[0], tile[1])); err != nil {
			return err
		}
		p.unit = max(p.unit, tile[0]) // all are powers of two
		p.ops = append(p.ops, func(b block) { zeroBlocks(b, z) })
	default:
		p.ops = append(p.ops, func(b block) { zeroRuns(b, z.Runs) })
	}
	return nil
}

// twoOfFour zeroes the two smallest magnitudes of every four neighbouring inputs; of equals the
// later goes first. A group with values that are not finite, and a last group of fewer than four,
// stay.
func twoOfFour(b block, inputsAreRows bool) {
	group := func(at [4]int) {
		var mag [4]float32
		for j, i := range at {
			v := b.format.Value(b.format.Elem(b.data, i))
			if v-v != 0 {
				return
			}
			mag[j] = max(v, -v)
		}
		for j, i := range at {
			larger := 0
			for l := range mag {
				if mag[l] > mag[j] || mag[l] == mag[j] && l < j {
					larger++
				}
			}
			if larger >= 2 {
				b.format.SetElem(b.data, i, 0)
			}
		}
	}
	step, outer, inner := 1, b.rows, b.cols
	if inputsAreRows {
		step, outer, inner = b.cols, b.cols, b.rows
	}
	for o := range outer {
		for i := 0; i+4 <= inner; i += 4 {
			first := o*b.cols + i
			if inputsAreRows {
				first = i*b.cols + o
			}
			group([4]int{first, first + step, first + 2*step, first + 3*step})
		}
	}
}

// String says which zeros are chosen, for tables.
func (z *Zeros) String() string {
	switch {
	case z.Pattern != "":
		return z.Pattern
	case z.Block != nil && *z.Block == [2]int{1, 1}:
		return "elements"
	case z.Block != nil:
		return fmt.Sprintf("%dx%d blocks", z.Block[0], z.Block[1])
	}
	return "runs"
}
