package cost

import (
	"context"

	"github.com/lowtoggle/lowtoggle/weights"
)

// Weights are what a prediction looks at: bands of a stored matrix.
type Weights struct {
	DType weights.DType
	// OutAxis is the axis along which the outputs lie: 0 where rows are outputs, as in Linear, 1
	// where columns are, as in Conv1D.
	OutAxis int
	// Rows and Cols are those of the whole stored matrix, as weights.Info.Matrix gives them.
	Rows, Cols int
	// Bands are at least one, in order, and do not overlap.
	Bands []Band
	// Scale is the root mean square of the random weights that an Estimate is relative to; 0: that of
	// these weights. A layer that was multiplied by a power of two is comparable with what it was only
	// where both have the same.
	Scale float64
}

// RMS is the root mean square of a sample of the weights, which random weights have where Scale is 0.
// Values that are not finite do not count.
func (w Weights) RMS(ctx context.Context) (float64, error) {
	m, err := w.matrix()
	if err != nil {
		return 0, err
	}
	return m.sampleRMS(ctx)
}

// Band is a part of a matrix: whole rows, in storage order.
type Band struct {
	First int    // its first row in the stored matrix
	Data  []byte // may lie in a mapped file: what reads it must do so under weights.Guard
}

// What a sample holds. Bands are high enough for a tile's neighbours, several so that parts of a
// layer that differ are seen, and fewer where rows are so long that the sample would grow large.
const (
	bandRows    = 48 // at least, and a multiple of bandUnit
	sampleBands = 4
	leastSample = 1 << 15 // elements, where the matrix has them
	mostSample  = 1 << 21 // elements, unless a single band has more
)

// SampleRows are the ranges [first, end) of rows that stand for a matrix: spread evenly, all
// alike, each beginning and ending at a multiple of unit and of 16 rows. unit is a power of two.
// A matrix that is not much larger is one range.
func SampleRows(rows, cols, unit int) (ranges [][2]int) {
	unit, cols = max(unit, bandUnit), max(cols, 1)
	height := max(bandRows, leastSample/sampleBands/cols)
	height = (height + unit - 1) / unit * unit
	n := max(1, min(sampleBands, mostSample/height/cols))
	if n*height >= rows {
		return [][2]int{{0, rows}}
	}
	for i := range n { // in the middle of each of n parts
		first := (rows*(2*i+1)/n - height) / 2 / unit * unit
		ranges = append(ranges, [2]int{first, first + height})
	}
	return ranges
}

// SampleOf is a tensor's sample. Nothing is copied: the bands are slices of its data, which must
// be as long as its shape says.
func SampleOf(t weights.Tensor, outAxis int) Weights {
	w := Weights{DType: t.DType, OutAxis: outAxis}
	w.Rows, w.Cols = t.Matrix()
	size := w.Cols * t.DType.Bits() / 8
	for _, r := range SampleRows(w.Rows, w.Cols, 1) {
		w.Bands = append(w.Bands, Band{r[0], t.Data[r[0]*size : r[1]*size]})
	}
	return w
}
