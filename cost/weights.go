package cost

import (
	"context"

	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// Weights are a sample for a prediction: bands of a stored matrix.
type Weights struct {
	DType weights.DType
	// OutAxis is the axis of the outputs: 0 if rows are outputs, as in Linear; 1 if columns are, as in Conv1D.
	OutAxis int
	// Rows and Cols are the size of the whole stored matrix, as in weights.Info.Matrix.
	Rows, Cols int
	// Bands has at least one band. Bands are in order and do not overlap.
	Bands []Band
	// Format is the format of quantised weights. Their kernel determines their role; see [Kernel.Role]. Default:
	// unquantised.
	Format *quant.Format
	// Scale is the root mean square of the random weights in the baseline of an Estimate; 0: that of these weights.
	// Estimates before and after a multiplication by a power of two are comparable only if they have the same Scale.
	Scale float64
}

// product returns a product with the kernel and the role of quantised weights.
func (w Weights) product(p Product) Product {
	if w.Format != nil {
		p.Role, p.Kernel, _ = p.Kernel.Role(*w.Format, w.DType, p.M) // every format has a default kernel
		p.Scaling = w.Format.Per
	}
	return p
}

// RMS returns the root mean square of a sample of the finite weights. If Scale is 0, this is the scale of the random
// weights.
func (w Weights) RMS(ctx context.Context) (float64, error) {
	m, err := w.matrix()
	if err != nil {
		return 0, err
	}
	return m.sampleRMS(ctx)
}

// Band is a part of a matrix: whole rows, in storage order.
type Band struct {
	First int    // first row of the band in the stored matrix
	Data  []byte // may lie in a mapped file: read it under weights.Guard
}

// Sizes of a sample. Bands have enough rows for a tile's neighbours. There are several bands, because parts of a
// layer may differ. If rows are very long, there are fewer bands.
const (
	bandRows    = 48 // at least this many rows; a multiple of bandUnit
	sampleBands = 4
	leastSample = 1 << 15 // elements, if the matrix has them
	mostSample  = 1 << 21 // elements, unless a single band has more
)

// SampleRows returns ranges [first, end) of rows that represent a matrix. They are evenly spread, equally long, and
// begin and end at multiples of unit and of 16 rows. unit is a power of two. A matrix that is not much larger than
// its sample is one range.
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

// SampleOf returns a tensor's sample. Its bands are slices of the tensor's data. The data's length must match the
// shape.
func SampleOf(t weights.Tensor, outAxis int) Weights {
	w := Weights{DType: t.DType, OutAxis: outAxis}
	w.Rows, w.Cols = t.Matrix()
	size := w.Cols * t.DType.Bits() / 8
	for _, r := range SampleRows(w.Rows, w.Cols, 1) {
		w.Bands = append(w.Bands, Band{r[0], weights.Need(t.Data[r[0]*size : r[1]*size])})
	}
	return w
}
