package order

import (
	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/weights"
)

// Use is a matrix with the labels of an index along one of its axes.
type Use struct {
	Format     weights.Format
	Rows, Cols int
	// Axis is 0 if labels are rows, and 1 if labels are columns.
	Axis int
	// Positions are the positions of each label on the axis. A label that is a block, such as the rows of a head, has
	// several positions.
	Positions [][]int
	// Dir has an element for each position: a factor of 2 on the label multiplies the position by 2^Dir. A position
	// with Dir 0 has no sign. nil: 0 everywhere.
	Dir []int
	// Lags are the distances on the axis at which differing bits cost energy.
	Lags []cost.Lag
	// Reader returns a function that reads rows, for one goroutine. A row stays valid until the next call.
	Reader func() func(row int) []byte
	// Guard runs work on the mapped file and turns read faults into errors.
	Guard func(work func() error) error
}

// Across returns the length of the other axis.
func (u *Use) Across() int {
	if u.Axis == 0 {
		return u.Cols
	}
	return u.Rows
}

// Blocks reports whether each label is several neighbouring positions, such as the rows of a head.
func (u *Use) Blocks() bool { return areBlocks(u.Positions) }

func areBlocks(positions [][]int) bool {
	if len(positions) == 0 {
		return false
	}
	list := positions[0]
	return len(list) > 1 && list[1] == list[0]+1
}

// Signed returns u without the positions that have no signs and scales; nil if no position has any.
func (u *Use) Signed() *Use {
	signed, _ := u.bySign(true)
	return signed
}

// allSigned reports whether all positions have signs and scales.
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

// bySign divides a use into positions with signs and positions without. A part without positions is nil.
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

// borders returns, for every label, the first and the last position of each run of neighbouring positions. Inside a
// run, an order changes nothing; labels meet only at the borders.
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

// Along returns the lags of an axis for labels at the given positions. Labels that are blocks of positions meet only
// at their borders. For other labels, lag places are counted from the position of the first label.
func Along(lags []cost.Lag, positions [][]int) []cost.Lag {
	if areBlocks(positions) {
		return blockLags(lags)
	}
	if len(positions) == 0 || len(positions[0]) == 0 {
		return lags
	}
	return shifted(lags, positions[0][0])
}

// totalWeight is the energy of a bit that toggles at all lags of an axis.
func totalWeight(lags []cost.Lag) (sum float64) {
	for _, l := range lags {
		for _, v := range l.Weights {
			sum += v / float64(len(l.Weights))
		}
	}
	return sum
}

// blockLags returns the lags of labels that are blocks.
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

// shifted returns lags whose places are counted from a position.
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
