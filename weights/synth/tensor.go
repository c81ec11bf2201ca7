package synth

import (
	"math"

	"github.com/lowtoggle/lowtoggle/weights"
)

// kind is the kind of a tensor. It determines the distribution of the values.
type kind int

const (
	linear    kind = iota // outputs × inputs
	conv1D                // inputs × outputs, as GPT-2 stores them
	kernel                // outputs × inputs × positions, of a convolution
	embedding             // tokens × channels
	norm
	norm1p // multiplies by 1 + weight
	bias
)

func (k kind) isMatrix() bool { return k == linear || k == conv1D || k == kernel || k == embedding }

// Distributions of tensors other than the weights of linear layers.
const (
	embeddingStd     = 0.02
	biasStd          = 0.02
	normStd          = 0.15 // around 1, or around 0 for norms that add 1
	normMin, normMax = 0.5, 1.5
)

// Standard deviations of an 8-bit matrix before the channels' factors. Real checkpoints also have a tensor of scales; package
// synth writes none.
const (
	floatByteStd = 1
	int8Std      = 24
)

// tensor generates the elements of one tensor, row by row in any order.
type tensor struct {
	info weights.Info
	kind kind
	// rows and cols are the dimensions of the matrix in storage order. Norms and biases are one row. Each output of a convolution
	// is a row.
	rows, cols int
	key        uint64 // seed of the rows' random streams
	encode     encoder
	// rowScale and colScale are the factors of a matrix's channels; rowScale includes the standard deviation.
	rowScale, colScale []float32
}

func newTensor(info weights.Info, k kind, seed uint64) *tensor {
	t := &tensor{info: info, kind: k, encode: encoders[info.DType], key: key(seed, info.Name, "values")}
	if !k.isMatrix() {
		t.rows, t.cols = 1, info.Len()
		return t
	}
	t.rows, t.cols = info.Matrix()
	if k == kernel {
		t.rows, t.cols = info.Shape[0], info.Len()/info.Shape[0]
	}
	rows, cols := newStream(key(seed, info.Name, "rows"), 0), newStream(key(seed, info.Name, "columns"), 0)
	if k == conv1D {
		t.rowScale, t.colScale = inputScales(t.rows, rows), outputScales(t.cols, cols)
	} else {
		t.rowScale, t.colScale = outputScales(t.rows, rows), inputScales(t.cols, cols)
	}
	std := float32(t.std())
	for i := range t.rowScale {
		t.rowScale[i] *= std
	}
	return t
}

// std returns the standard deviation of a matrix before the channels' factors.
func (t *tensor) std() float64 {
	if f, _ := t.info.DType.Format(); f.Bits == 8 {
		if f.IsFloat() {
			return floatByteStd
		}
		return int8Std
	}
	fanIn := t.cols
	switch t.kind {
	case embedding:
		return embeddingStd
	case conv1D:
		fanIn = t.info.Shape[len(t.info.Shape)-2]
	}
	return 1 / math.Sqrt(float64(fanIn))
}

// fill writes rows [first, first+n) into dst. values is scratch for one row.
func (t *tensor) fill(dst []byte, first, n int, values []float32) {
	width := t.rowBytes()
	for r := range n {
		t.draw(values, first+r)
		t.encode(dst[r*width:(r+1)*width], values)
	}
}

func (t *tensor) rowBytes() int { return t.cols * t.info.DType.Bits() / 8 }

// draw sets values to the values of one row.
func (t *tensor) draw(values []float32, row int) {
	quantiles().draw(values, newStream(t.key, row))
	switch t.kind {
	case norm:
		for i, z := range values {
			values[i] = min(max(1+float32(normStd*z), normMin), normMax)
		}
	case norm1p:
		for i, z := range values {
			values[i] = min(max(float32(normStd*z), normMin-1), normMax-1)
		}
	case bias:
		for i, z := range values {
			values[i] = biasStd * z
		}
	default:
		scale, cols := t.rowScale[row], t.colScale[:len(values)]
		for i, z := range values {
			values[i] = z * scale * cols[i]
		}
	}
}
