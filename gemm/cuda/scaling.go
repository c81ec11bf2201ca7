package cuda

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/lowtoggle/lowtoggle/gemm"
)

// scaling is a cublasLtMatmulMatrixScale_t. It determines which elements of an FP8 operand share a scale.
type scaling int32

const (
	scaleTensor scaling = 0
	scaleRow    scaling = 3 // one scale per row of the row-major operand
	scaleInputs scaling = 4 // one scale per 128 columns of a row
	scaleBlock  scaling = 5 // one scale per 128×128 elements
)

// scaleSize is the number of columns that share a scale with scaleInputs, and the number of rows and columns with
// scaleBlock.
const scaleSize = 128

// scalingsOf returns the scaling of the weights and of the activations.
func scalingsOf(p gemm.Problem, s *gemm.Scales) (w, x scaling, err error) {
	switch {
	case s == nil || s.Rows >= p.N && s.Cols >= p.K:
		return scaleTensor, scaleTensor, nil
	case s.Rows == 1 && s.Cols >= p.K:
		return scaleRow, scaleRow, nil
	case s.Rows == scaleSize && s.Cols == scaleSize:
		return scaleBlock, scaleInputs, nil
	}
	return 0, 0, fmt.Errorf("%v: cuBLASLt supports scales per tensor, per row and per %d×%d elements, but not per %d×%d elements", p, scaleSize, scaleSize, s.Rows, s.Cols)
}

// scaleValues returns the scales in the library's layout, for an operand of padded size rows × cols. Without scales,
// all values are 1.
func scaleValues(mode scaling, s *gemm.Scales, rows, cols int) []byte {
	across, down := 1, 1
	switch mode {
	case scaleRow:
		down = rows
	case scaleInputs:
		across, down = ceil(cols, scaleSize), rows
	case scaleBlock: // a row of blocks is padded to a multiple of four
		across, down = ceil(ceil(cols, scaleSize), 4)*4, ceil(rows, scaleSize)
	}
	out := make([]byte, 4*across*down)
	for i := range across * down {
		binary.LittleEndian.PutUint32(out[4*i:], math.Float32bits(1))
	}
	if s == nil {
		return out
	}
	of := across
	if mode == scaleBlock {
		of = ceil(cols, scaleSize)
	}
	for i, v := range s.Values {
		at := i/of*across + i%of
		binary.LittleEndian.PutUint32(out[4*at:], math.Float32bits(v))
	}
	return out
}

func ceil(a, b int) int { return (a-1)/b + 1 }

// stackScales returns the scales of times copies of weights, stacked along the rows. rows is the number of rows of one
// copy.
func stackScales(s *gemm.Scales, rows, times int) (*gemm.Scales, error) {
	if s == nil || times == 1 {
		return s, nil
	}
	out := *s
	if s.Rows >= rows {
		out.Rows = rows
	} else if rows%s.Rows != 0 {
		return nil, fmt.Errorf("weights with %d outputs cannot be stacked, because their number is not a multiple of the %d outputs that share a scale", rows, s.Rows)
	}
	out.Values = slices.Repeat(s.Values, times)
	if len(s.Values) == 1 {
		out.Values, out.Rows = s.Values, rows*times
	}
	return &out, nil
}

// scales are an FP8 product's scales on the card.
type scales struct {
	w, x scaling
	at   [2]uint64 // addresses of the scales of w and of x; 0 means a scale of 1
}
