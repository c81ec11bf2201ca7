package pass

import (
	"context"
	"math"
	"slices"

	"github.com/lowtoggle/lowtoggle/internal/elementary"
	"github.com/lowtoggle/lowtoggle/transform/program"
)

// runBorder is the cost of a border between zero and nonzero, in units of a zero's value. Each border toggles a whole
// value, which offsets the saving of about two zeros.
const runBorder = 2

// runsWithin bisects the value of a zero. It returns the largest value at which the number of zeros and the lost
// squares, over the whole layer, are within bounds. The value may span many binades, so the exponent is bisected. If
// even the fewest zeros are too many, the result is nil.
func runsWithin(ctx context.Context, l *Layer, within func(zeros, lost float64) bool) (found []any, err error) {
	rms, err := l.OutputRMS(ctx)
	if err != nil {
		return nil, err
	}
	if slices.Max(rms) == 0 { // all values are already zero
		return nil, nil
	}
	lo, hi := -36.0, 5.0 // log2 of the value of a zero over the largest output's mean square
	for range 12 {
		mid := (lo + hi) / 2
		worth := elementary.Exp2(mid) * slices.Max(rms) * slices.Max(rms)
		zeros, lost, err := tryRuns(ctx, l, worth)
		if err != nil {
			return nil, err
		}
		if within(zeros, lost) {
			lo, found = mid, []any{Zeros{Runs: worth}}
		} else {
			hi = mid
		}
	}
	return found, nil
}

func tryRuns(ctx context.Context, l *Layer, worth float64) (zeros, lost float64, err error) {
	var zero runMask
	err = l.EachValues(ctx, func(b program.Block, v []float32) {
		for i := range b.Rows {
			row := v[i*b.Cols : (i+1)*b.Cols]
			for k, z := range zero.choose(row, worth) {
				if z {
					zeros++
					lost += float64(float64(row[k]) * float64(row[k]))
				}
			}
		}
	})
	return zeros, lost, err
}

// runMask finds the best runs of zeros in a row by dynamic programming over two states: keep and zero.
type runMask struct {
	zero []bool
	from [][2]bool // [k][state]: the previous state is zero
}

// choose minimises the lost squares, minus worth for each zero, plus runBorder·worth for each border. Ties keep the
// value. The result is valid until the next call.
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
		if square-square != 0 { // keep NaN and infinity
			nextZero, square = math.Inf(1), 0
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

func zeroRuns(b program.Block, worth float64) {
	row := make([]float32, b.Cols)
	var mask runMask
	size := b.RowBytes()
	for i := range b.Rows {
		data := b.Data[i*size : (i+1)*size]
		b.Format.Decode(row, data)
		for k, zero := range mask.choose(row, worth) {
			if zero {
				b.Format.SetElem(data, k, 0)
			}
		}
	}
}
