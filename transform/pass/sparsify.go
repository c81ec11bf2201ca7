package pass

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/program"
)

// Zeros is the data of a step of [Sparsify]. Exactly one of its parts is set.
type Zeros struct {
	// Block is a size in rows and columns of the stored matrix; [1, 1] are single elements. A block is zeroed if the
	// mean of its squares is below Threshold. If the mean equals Threshold, the block is zeroed if its number, in the
	// order of memory, is below Ties.
	Block     *[2]int `json:"block,omitempty"`
	Threshold float64 `json:"threshold,omitempty"`
	Ties      int     `json:"ties,omitempty"`
	// Runs selects runs of zeros along memory. The selected zeros minimise the lost squares, minus Runs for each
	// zero, plus runBorder·Runs for each border between a zero and another value.
	Runs float64 `json:"runs,omitempty"`
	// Pattern "2:4" zeroes the two smallest of every four neighbouring inputs.
	Pattern string `json:"pattern,omitempty"`
}

// Sparsify zeroes a share of each layer's weights.
var Sparsify = &Pass{
	Name: "sparsify", Class: Lossy,
	Usage: "sparsify=SHARE[/element|/runs|/RxC] or sparsify=2:4",
	Doc: "Zeroes the given share of each layer's weights, the smallest first. The zeros are single elements, blocks of " +
		"R×C (the smallest mean squares first), runs along memory, or two of every four inputs (2:4). With a share " +
		"alone, the planner takes the shape with the largest predicted saving. The squared error of every shape is at " +
		"most the squared error of single elements at this share. A zero beside another value still toggles bits, so " +
		"single zeros save less energy than large blocks. Sparsity costs far more accuracy than rounding for the same " +
		"saving of energy.",
	Args: checkSparsify,
	Candidates: func(ctx context.Context, l *Layer, args []string) ([]any, error) {
		if len(args) == 0 {
			args = []string{"0.1"}
		}
		if args[0] == "2:4" {
			return []any{Zeros{Pattern: "2:4"}}, nil
		}
		share, _ := strconv.ParseFloat(args[0], 64)
		if len(args) > 1 {
			return zerosOfShare(ctx, l, share, args[1])
		}
		return zerosOfLoss(ctx, l, share)
	},
	Preview: func(_ context.Context, l *Layer, data any) (program.Operation, error) {
		return zerosOperation(l.Base(), data.(Zeros))
	},
	Compile: func(s *plan.Step, c *program.Context) (o program.Operation, err error) {
		z, err := plan.Data[Zeros](s, "zeros")
		if err != nil {
			return o, err
		}
		return zerosOperation(c.Program, z)
	},
	Describe: func(s *plan.Step) string {
		z, _ := plan.Data[Zeros](s, "zeros")
		return "zero " + z.String()
	},
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

// zerosOfShare zeroes at most the given share of all values.
func zerosOfShare(ctx context.Context, l *Layer, share float64, shape string) ([]any, error) {
	most := math.Round(share * float64(l.Rows()*l.Cols()))
	if shape == "runs" {
		return runsWithin(ctx, l, func(zeros, _ float64) bool { return zeros <= most })
	}
	tile := [2]int{1, 1}
	if shape != "element" {
		tile, _ = parseBlock(shape)
	}
	z, _, err := smallestTiles(ctx, l, tile, func(taken square) bool { return taken.n <= most })
	return []any{z}, err
}

// zerosOfLoss lists, for every shape, zeros whose loss is at most that of single elements at the given share.
func zerosOfLoss(ctx context.Context, l *Layer, share float64) ([]any, error) {
	most := math.Round(share * float64(l.Rows()*l.Cols()))
	single, loss, err := smallestTiles(ctx, l, [2]int{1, 1}, func(taken square) bool { return taken.n <= most })
	if err != nil || loss.n == 0 {
		return nil, err
	}
	all := []any{single}
	for _, tile := range [][2]int{{16, 1}, {1, 16}, {16, 16}, {64, 64}} {
		z, taken, err := smallestTiles(ctx, l, tile, func(taken square) bool { return taken.sum <= loss.sum })
		if err != nil {
			return nil, err
		}
		if taken.n > 0 {
			all = append(all, z)
		}
	}
	runs, err := runsWithin(ctx, l, func(_, lost float64) bool { return lost <= loss.sum })
	return append(all, runs...), err
}

// parts counts the parts of z that are set.
func (z Zeros) parts() (n int) {
	for _, asked := range []bool{z.Block != nil, z.Runs > 0, z.Pattern != ""} {
		if asked {
			n++
		}
	}
	return n
}

func zerosOperation(p *program.Program, z Zeros) (o program.Operation, err error) {
	o.Mask = true
	switch {
	case z.parts() != 1:
		return o, errors.New("must have exactly one of block, runs and pattern")
	case z.Pattern == "2:4":
		if p.OutAxis == 1 {
			o.Height = 4
		}
		o.Apply = func(b program.Block) { twoOfFour(b, p.OutAxis == 1) }
	case z.Pattern != "":
		return o, fmt.Errorf("the pattern is %q, and only 2:4 is possible", z.Pattern)
	case z.Block != nil:
		tile := *z.Block
		if _, err := parseBlock(fmt.Sprintf("%dx%d", tile[0], tile[1])); err != nil {
			return o, err
		}
		o.Height = tile[0]
		o.Apply = func(b program.Block) { zeroBlocks(b, z) }
	default:
		o.Apply = func(b program.Block) { zeroRuns(b, z.Runs) }
	}
	return o, nil
}

// twoOfFour zeroes the two smallest magnitudes of every four neighbouring inputs. Of equal magnitudes, the later one
// is zeroed first. Groups with values that are not finite do not change, and neither does a last group of fewer than
// four.
func twoOfFour(b program.Block, inputsAreRows bool) {
	group := func(at [4]int) {
		var mag [4]float32
		for j, i := range at {
			v := b.Format.Value(b.Format.Elem(b.Data, i))
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
				b.Format.SetElem(b.Data, i, 0)
			}
		}
	}
	step, outer, inner := 1, b.Rows, b.Cols
	if inputsAreRows {
		step, outer, inner = b.Cols, b.Cols, b.Rows
	}
	for o := range outer {
		for i := 0; i+4 <= inner; i += 4 {
			first := o*b.Cols + i
			if inputsAreRows {
				first = i*b.Cols + o
			}
			group([4]int{first, first + step, first + 2*step, first + 3*step})
		}
	}
}

// String describes the zeros, for tables.
func (z Zeros) String() string {
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
