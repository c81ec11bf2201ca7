// Package gemm multiplies by linear layers: y[M,N] = x[M,K]·w[N,K]ᵀ with M tokens, N outputs and K
// inputs.
//
// Here is the reference on the CPU, in float64. It serves to check numbers, never to speak of
// power.
package gemm

import (
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/lowtoggle/lowtoggle/weights"
)

// Weight decodes a layer's stored weight into w[N,K]. outAxis is the stored dimension that counts
// outputs: 0, or 1 for storage [K, N] as in GPT-2's Conv1D. Every value of the six transformable
// types is exact in float64; other types and other ranks than two are errors.
func Weight(t weights.Tensor, outAxis int) (*mat.Dense, error) {
	f, ok := t.DType.Format()
	if !ok || len(t.Shape) != 2 || t.Len() == 0 {
		return nil, fmt.Errorf("%s: tensor %q: %s%v is no matrix of numbers that can be multiplied", t.File, t.Name, t.DType, t.Shape)
	}
	rows, cols := t.Matrix()
	w := mat.NewDense(rows, cols, nil)
	for n := range rows {
		for k := range cols {
			w.Set(n, k, float64(f.Value(f.Elem(t.Data, n*cols+k))))
		}
	}
	if outAxis == 1 {
		return mat.DenseCopyOf(w.T()), nil
	}
	return w, nil
}

// Linear returns x[M,K]·w[N,K]ᵀ, accumulated in float64. It panics where K differs, as mat does.
func Linear(x, w mat.Matrix) *mat.Dense {
	var y mat.Dense
	y.Mul(x, w.T())
	return &y
}
