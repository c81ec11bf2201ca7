package cuda

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/lowtoggle/lowtoggle/gemm"
)

// scaling is a cublasLtMatmulMatrixScale_t: which elements of an FP8 operand share a scale.
type scaling int32

const (
	scaleTensor scaling = 0
	scaleRow    scaling = 3 // a row of the row-major operand
	scaleInputs scaling = 4 // a row's block of 128 columns
	scaleBlock  scaling = 5 // 128×128
)

// scaleSize is the number of columns, and of rows of weights, that share a scale with scaleInputs and scaleBlock.
const scaleSize = 128

// scalingsOf returns the modes for the weights' scales and for the activations.
func scalingsOf(p gemm.Problem, s *gemm.Scales) (w, x scaling, err error) {
	switch {
	case s == nil || s.Rows >= p.N && s.Cols >= p.K:
		return scaleTensor, scaleTensor, nil
	case s.Rows == 1 && s.Cols >= p.K:
		return scaleRow, scaleRow, nil
	case s.Rows == scaleSize && s.Cols == scaleSize:
		return scaleBlock, scaleInputs, nil
	}
	return 0, 0, fmt.Errorf("%v: cuBLASLt has scales of a tensor, of a row and of %d×%d elements, and none of %d×%d", p, scaleSize, scaleSize, s.Rows, s.Cols)
}

// scaleValues returns scales in the library's layout, for operands of the given padded rows and columns. Without scales, the
// values are 1.
func scaleValues(mode scaling, s *gemm.Scales, rows, cols int) []byte {
	across, down := 1, 1
	switch mode {
	case scaleRow:
		down = rows
	case scaleInputs:
		across, down = ceil(cols, scaleSize), rows
	case scaleBlock: // a row of blocks is padded to four
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

// stackScales returns the scales of several copies of weights, one below the other; rows is the number of rows of one copy.
func stackScales(s *gemm.Scales, rows, times int) (*gemm.Scales, error) {
	if s == nil || times == 1 {
		return s, nil
	}
	out := *s
	if s.Rows >= rows {
		out.Rows = rows
	} else if rows%s.Rows != 0 {
		return nil, fmt.Errorf("weights of %d outputs cannot be stacked: blocks of %d outputs share a scale", rows, s.Rows)
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
	at   [2]uint64 // addresses of the scales of w and of x; 0: a scale of 1
}
