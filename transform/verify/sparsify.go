package verify

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/lowtoggle/lowtoggle/transform/plan"
)

// Sparsify checks the pass sparsify: the step and the values before it determine which values are zero.
var Sparsify = &Check{Claim: func(s *plan.Step) (*Claim, error) {
	z, err := plan.Data[Zeros](s, "zeros")
	if err == nil {
		err = checkZeros(&z)
	}
	return &Claim{Zeros: &z}, err
}}

// Zeros describes the required zeros, by exactly one of Block, Runs and Pattern. Block is a size in rows and columns.
// A block is zero if its mean square is below Threshold, or if it equals Threshold and the block's number is below
// Ties. Runs zeroes runs along memory, where a zero is worth this much squared error. Pattern "2:4" zeroes two of
// every four inputs.
type Zeros struct {
	Block     *[2]int `json:"block"`
	Threshold float64 `json:"threshold"`
	Ties      int     `json:"ties"`
	Runs      float64 `json:"runs"`
	Pattern   string  `json:"pattern"`
}

// zeroing computes which values a claimed step must have zeroed, from the values before the step.
type zeroing struct {
	z         *Zeros
	inputRows bool
	rows      int
	height    int         // number of rows that are decided together
	values    [][]float32 // values of these rows
	zero      [][]bool
}

func newZeroing(z *Zeros, rows, cols, outAxis int) *zeroing {
	s := &zeroing{z: z, inputRows: outAxis == 1, rows: rows, height: 1}
	switch {
	case z.Block != nil:
		s.height = z.Block[0]
	case z.Pattern != "" && s.inputRows:
		s.height = 4
	}
	for range s.height {
		s.values = append(s.values, make([]float32, cols))
		s.zero = append(s.zero, make([]bool, cols))
	}
	return s
}

// checkZeros returns an error for a step that is not possible.
func checkZeros(z *Zeros) error {
	parts := 0
	for _, asked := range []bool{z.Block != nil, z.Runs > 0, z.Pattern == "2:4"} {
		if asked {
			parts++
		}
	}
	if parts != 1 || z.Pattern != "" && z.Pattern != "2:4" {
		return errors.New("the step must have exactly one of block, runs and pattern \"2:4\"")
	}
	if b := z.Block; b != nil && (b[0] < 1 || b[1] < 1 || b[0] > 64 || 64%b[0] != 0 || b[1] > 4096) {
		return fmt.Errorf("blocks of %dx%d are not possible", b[0], b[1])
	}
	return nil
}

// row returns which values of row n must be zero. It must be called for rows in order. load returns the values of a row
// before the step.
func (s *zeroing) row(n int, load func(dst []float32, n int)) []bool {
	if n%s.height == 0 {
		here := min(s.height, s.rows-n)
		for i := range here {
			load(s.values[i], n+i)
			clear(s.zero[i])
		}
		s.decide(n/s.height, here)
	}
	return s.zero[n%s.height]
}

func (s *zeroing) decide(band, rows int) {
	cols := len(s.values[0])
	switch {
	case s.z.Block != nil:
		s.tiles(band, rows)
	case s.z.Runs > 0:
		s.runs(s.values[0], s.zero[0])
	case s.inputRows && rows == 4:
		for k := range cols {
			s.fours(func(j int) (*float32, *bool) { return &s.values[j][k], &s.zero[j][k] })
		}
	case !s.inputRows:
		for k := 0; k+4 <= cols; k += 4 {
			s.fours(func(j int) (*float32, *bool) { return &s.values[0][k+j], &s.zero[0][k+j] })
		}
	}
}

// tiles zeroes the tiles whose mean square, summed in the order of memory, is below the threshold. It also zeroes the
// first tiles at the threshold.
func (s *zeroing) tiles(band, rows int) {
	cols, width := len(s.values[0]), s.z.Block[1]
	number := band * ((cols + width - 1) / width)
	for left := 0; left < cols; left += width {
		right, sum := min(cols, left+width), 0.0
		for _, row := range s.values[:rows] {
			for _, v := range row[left:right] {
				sum += float64(float64(v) * float64(v)) // exact for 24 bits each, fused or not
			}
		}
		mean := sum / float64(rows*(right-left))
		if mean < s.z.Threshold || mean == s.z.Threshold && number < s.z.Ties {
			for _, zero := range s.zero[:rows] {
				for k := left; k < right; k++ {
					zero[k] = true
				}
			}
		}
		number++
	}
}

// fours zeroes all values of a group but the two largest. The earlier of two equal values counts as larger. A group
// with NaN or infinity does not change.
func (s *zeroing) fours(at func(j int) (*float32, *bool)) {
	magnitude := func(j int) float64 { v, _ := at(j); return math.Abs(float64(*v)) }
	order := []int{0, 1, 2, 3}
	for _, j := range order {
		if m := magnitude(j); m-m != 0 {
			return
		}
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(magnitude(j), magnitude(i)) })
	for _, j := range order[2:] {
		_, zero := at(j)
		*zero = true
	}
}

// runs finds the cheapest runs of zeros along a row, as the shortest path through two states. A kept value costs
// nothing. A zeroed value costs its square minus the worth of a zero. A change of state costs the worth of two zeros.
// Of equally cheap paths, runs prefers the one that stays in its state, and at the end of the row the one that keeps
// the value.
func (s *zeroing) runs(values []float32, zero []bool) {
	const keep, drop = 0, 1
	worth := s.z.Runs
	change := 2 * worth
	var cost [2]float64
	came := make([][2]int, len(values))
	for k, v := range values {
		before := cost
		for state := range cost {
			came[k][state] = state
			if other := before[1-state] + change; other < before[state] {
				came[k][state], cost[state] = 1-state, other
			}
		}
		if x := float64(v); x-x == 0 {
			cost[drop] = cost[drop] + float64(x*x) - worth
		} else {
			cost[drop] = math.Inf(1)
		}
	}
	state := keep
	if cost[drop] < cost[keep] {
		state = drop
	}
	for k := len(values) - 1; k >= 0; k-- {
		zero[k] = state == drop
		state = came[k][state]
	}
}
