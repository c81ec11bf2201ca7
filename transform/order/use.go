package order

import (
	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/weights"
)

// Use is a matrix with the labels of an index along one of its axes.
type Use struct {
	Format     weights.Format
	Rows, Cols int
	// Axis is 0 where labels are rows and 1 where they are columns.
	Axis int
	// Positions are the positions of each label on the axis; several where a label is a block, such as the rows of a head.
	Positions [][]int
	// Dir has an element for each position: a factor of 2 on its label multiplies it by 2^Dir. A position with Dir 0 takes no signs.
	// nil: 0 everywhere.
	Dir []int
	// Lags are the distances on the axis at which differing bits cost energy.
	Lags []cost.Lag
	// Rows are read by one goroutine at a time each. A row stays valid until the next call.
	Reader func() func(row int) []byte
	// Guard runs work on the mapped file, so that its faults are errors.
	Guard func(work func() error) error
}

// Across is the length of the other axis.
func (u *Use) Across() int {
	if u.Axis == 0 {
		return u.Cols
	}
	return u.Rows
}

// Blocks reports whether labels are several neighbouring positions, such as the rows of a head.
func (u *Use) Blocks() bool { return areBlocks(u.Positions) }

func areBlocks(positions [][]int) bool {
	if len(positions) == 0 {
		return false
	}
	list := positions[0]
	return len(list) > 1 && list[1] == list[0]+1
}

// Signed is u without the positions that take no signs and scales; nil where none do.
func (u *Use) Signed() *Use {
	signed, _ := u.bySign(true)
	return signed
}

// allSigned reports whether all positions take signs and scales.
func (u *Use) allSigned() bool {
	if u.Dir == nil {
		return false
	}
	for _, list := range u.Positions {
		for _, pos := range list {
			if u.Dir[pos] == 0 {
				return false
			}
		}
	}
	return true
}

// bySign divides a use into the positions that may be given signs and the others; nil where there are none.
func (u *Use) bySign(signs bool) (signed, plain *Use) {
	if !signs || u.Dir == nil {
		return nil, u
	}
	if u.allSigned() {
		return u, nil
	}
	parts := [2]*Use{}
	for label, list := range u.Positions {
		for _, pos := range list {
			i := 0
			if u.Dir[pos] == 0 {
				i = 1
			}
			if parts[i] == nil {
				part := *u
				part.Positions = make([][]int, len(u.Positions))
				parts[i] = &part
			}
			parts[i].Positions[label] = append(parts[i].Positions[label], pos)
		}
	}
	return parts[0], parts[1]
}

// borders gives, for every label, the first and the last position of each of its runs of neighbouring
// positions. Inside a run nothing moves; at its borders labels meet.
func (u *Use) borders() (heads, tails [][]int) {
	if !u.Blocks() {
		return u.Positions, u.Positions
	}
	heads, tails = make([][]int, len(u.Positions)), make([][]int, len(u.Positions))
	for label, list := range u.Positions {
		for i, pos := range list {
			if i == 0 || pos != list[i-1]+1 {
				heads[label] = append(heads[label], pos)
			}
			if i == len(list)-1 || pos != list[i+1]-1 {
				tails[label] = append(tails[label], pos)
			}
		}
	}
	return heads, tails
}

// Along returns the lags of an axis for labels at the given positions. Labels that are blocks of positions follow one another at
// their borders only. For other labels, runs begin at the position of the first label.
func Along(lags []cost.Lag, positions [][]int) []cost.Lag {
	if areBlocks(positions) {
		return blockLags(lags)
	}
	if len(positions) == 0 || len(positions[0]) == 0 {
		return lags
	}
	return shifted(lags, positions[0][0])
}

// totalWeight is what a bit costs that toggles at all lags of an axis.
func totalWeight(lags []cost.Lag) (sum float64) {
	for _, l := range lags {
		for _, v := range l.Weights {
			sum += v / float64(len(l.Weights))
		}
	}
	return sum
}

// blockLags are the lags of labels that are blocks.
func blockLags(lags []cost.Lag) []cost.Lag {
	sum := totalWeight(lags)
	if sum == 0 {
		return nil
	}
	weights := make([]float64, len(lags[0].Weights))
	for i := range weights {
		weights[i] = sum
	}
	return []cost.Lag{{Distance: 1, Weights: weights}}
}

// shifted are lags whose first place stands at a position.
func shifted(lags []cost.Lag, position int) []cost.Lag {
	out := make([]cost.Lag, len(lags))
	for i, l := range lags {
		out[i] = cost.Lag{Distance: l.Distance, Weights: make([]float64, len(l.Weights))}
		for j := range l.Weights {
			out[i].Weights[j] = l.Weights[(position+j)%len(l.Weights)]
		}
	}
	return out
}
