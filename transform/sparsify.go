package transform

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Zeros is what sparsify does to a tensor: exactly one of its parts.
type Zeros struct {
	// Block is zeroed as a whole where the mean of its squares is at most Threshold: rows and
	// columns of the stored matrix; [1, 1] are single elements.
	Block     *[2]int `json:"block,omitempty"`
	Threshold float64 `json:"threshold,omitempty"`
	// Runs along memory: those zeros that minimise the sum of squares lost, minus Runs for each
	// zero, plus runBorder·Runs for each border between a zero and another value.
	Runs float64 `json:"runs,omitempty"`
	// Pattern "2:4" zeroes the two smallest of every four neighbouring inputs.
	Pattern string `json:"pattern,omitempty"`
}

// runBorder is the price of a border between zero and nonzero in units of a zero's worth: each is
// a toggle of the whole value, which eats what some two zeros save.
const runBorder = 2

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
			z, err := t.zerosOfShare(share, args[1])
			return []*Step{{Zeros: z}}, err
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

// zerosOfShare finds the threshold at which a shape zeroes the given share.
func (t *target) zerosOfShare(share float64, shape string) (*Zeros, error) {
	if shape == "runs" {
		return t.runsWhere(func(zeros, _ float64) bool { return zeros >= share })
	}
	tile := [2]int{1, 1}
	if shape != "element" {
		tile, _ = parseBlock(shape)
	}
	squares, err := t.tileSquares(tile)
	if err != nil || len(squares) == 0 {
		return &Zeros{Block: &tile}, err
	}
	slices.SortFunc(squares, byMean)
	var n, total float64
	for _, s := range squares {
		total += s.n
	}
	z := &Zeros{Block: &tile, Threshold: -1}
	for _, s := range squares {
		if n += s.n; n > share*total+0.5 {
			break
		}
		z.Threshold = s.mean()
	}
	return z, nil
}

// zerosOfLoss lists, for every shape, the zeros that lose as much as single elements of the given
// share would.
func (t *target) zerosOfLoss(share float64) ([]*Step, error) {
	single, err := t.tileSquares([2]int{1, 1})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(single, byMean)
	var loss float64
	for _, s := range single[:int(share*float64(len(single)))] {
		loss += s.sum
	}
	var steps []*Step
	for _, tile := range [][2]int{{1, 1}, {16, 1}, {1, 16}, {16, 16}, {64, 64}} {
		squares := single
		if tile != [2]int{1, 1} {
			if squares, err = t.tileSquares(tile); err != nil {
				return nil, err
			}
			slices.SortFunc(squares, byMean)
		}
		z := &Zeros{Block: &tile, Threshold: -1}
		var lost float64
		for _, s := range squares {
			if lost += s.sum; lost > loss {
				break
			}
			z.Threshold = s.mean()
		}
		if z.Threshold >= 0 {
			steps = append(steps, &Step{Zeros: z})
		}
	}
	runs, err := t.runsWhere(func(_, lost float64) bool { return lost >= loss })
	if err == nil && runs.Runs > 0 {
		steps = append(steps, &Step{Zeros: runs})
	}
	return steps, err
}

// square is the sum of the squares of a block's n values.
type square struct{ sum, n float64 }

func (s square) mean() float64 { return s.sum / s.n }

func byMean(a, b square) int {
	switch x, y := a.mean(), b.mean(); {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// tileSquares sums the squares of every tile of the layer before anything lossy. Tiles with
// values that are not finite are left out.
func (t *target) tileSquares(tile [2]int) ([]square, error) {
	var list []square
	p := *t.base
	p.unit = tile[0]
	err := p.eachValues(t.p.ctx, 0, p.rows, func(b block, v []float32) {
		b.eachTile(tile, func(rows, cols [2]int) {
			if s := tileSquare(v, b.cols, rows, cols); s.sum-s.sum == 0 {
				list = append(list, s)
			}
		})
	})
	return list, err
}

// eachTile cuts a block of rows into tiles; those at the far edges may be smaller.
func (b block) eachTile(size [2]int, fn func(rows, cols [2]int)) {
	for i := 0; i < b.rows; i += size[0] {
		for k := 0; k < b.cols; k += size[1] {
			fn([2]int{i, min(b.rows, i+size[0])}, [2]int{k, min(b.cols, k+size[1])})
		}
	}
}

func tileSquare(v []float32, stride int, rows, cols [2]int) square {
	var s square
	for i := rows[0]; i < rows[1]; i++ {
		for _, x := range v[i*stride+cols[0] : i*stride+cols[1]] {
			s.sum += float64(float64(x) * float64(x)) // explicit, so that no machine fuses it
		}
	}
	s.n = float64((rows[1] - rows[0]) * (cols[1] - cols[0]))
	return s
}

// runsWhere bisects the worth of a zero until enough(share of zeros, squares lost) holds, on the
// whole layer.
func (t *target) runsWhere(enough func(zeros, lost float64) bool) (*Zeros, error) {
	rms, err := t.outputRMS()
	if err != nil {
		return nil, err
	}
	lo, hi := 0.0, 16*slices.Max(rms)*slices.Max(rms)
	for range 12 {
		mid := (lo + hi) / 2
		zeros, lost, err := t.tryRuns(mid)
		if err != nil {
			return nil, err
		}
		if enough(zeros, lost) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return &Zeros{Runs: hi}, nil
}

func (t *target) tryRuns(worth float64) (zeros, lost float64, err error) {
	p := t.base
	var zero runMask
	err = p.eachValues(t.p.ctx, 0, p.rows, func(b block, v []float32) {
		for i := range b.rows {
			row := v[i*b.cols : (i+1)*b.cols]
			for k, z := range zero.choose(row, worth) {
				if z {
					zeros++
					lost += float64(row[k]) * float64(row[k])
				}
			}
		}
	})
	return zeros / float64(p.rows*p.cols), lost, err
}

// runMask finds the best runs of zeros in a row by dynamic programming over two states, keep and
// zero.
type runMask struct {
	zero []bool
	from [][2]bool // [k][state]: the state before is zero
}

// choose minimises the squares lost, minus worth for each zero, plus runBorder·worth for each
// border. Ties keep the value. The result is valid until the next call.
func (m *runMask) choose(row []float32, worth float64) []bool {
	m.zero = slices.Grow(m.zero[:0], len(row))[:len(row)]
	m.from = slices.Grow(m.from[:0], len(row))[:len(row)]
	border := runBorder * worth
	keep, zero := 0.0, 0.0
	for k, x := range row {
		square := float64(float64(x) * float64(x))
		fromZero := zero+border < keep
		stayZero := !(keep+border < zero)
		m.from[k] = [2]bool{fromZero, stayZero}
		nextKeep, nextZero := keep, zero
		if fromZero {
			nextKeep = zero + border
		}
		if !stayZero {
			nextZero = keep + border
		}
		if !(square-square == 0) { // NaN and infinity stay
			nextZero = math.Inf(1)
		}
		keep, zero = nextKeep, nextZero+square-worth
	}
	state := zero < keep
	for k := len(row) - 1; k >= 0; k-- {
		m.zero[k] = state
		if state {
			state = m.from[k][1]
		} else {
			state = m.from[k][0]
		}
	}
	return m.zero
}

func compileSparsify(s *Step, c *compiler) error {
	p, z := c.prog, s.Zeros
	switch {
	case z == nil:
		return errors.New("says nothing to zero")
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
		p.ops = append(p.ops, func(b block) { zeroBlocks(b, tile, z.Threshold) })
	case z.Runs > 0:
		p.ops = append(p.ops, func(b block) { zeroRuns(b, z.Runs) })
	}
	return nil
}

func zeroBlocks(b block, size [2]int, threshold float64) {
	v := make([]float32, b.rows*b.cols)
	b.format.Decode(v, b.data)
	b.eachTile(size, func(rows, cols [2]int) {
		if !(tileSquare(v, b.cols, rows, cols).mean() <= threshold) {
			return
		}
		for i := rows[0]; i < rows[1]; i++ {
			for k := cols[0]; k < cols[1]; k++ {
				b.format.SetElem(b.data, i*b.cols+k, 0)
			}
		}
	})
}

func zeroRuns(b block, worth float64) {
	row := make([]float32, b.cols)
	var mask runMask
	size := b.cols * b.format.Bits / 8
	for i := range b.rows {
		data := b.data[i*size : (i+1)*size]
		b.format.Decode(row, data)
		for k, zero := range mask.choose(row, worth) {
			if zero {
				b.format.SetElem(data, k, 0)
			}
		}
	}
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
