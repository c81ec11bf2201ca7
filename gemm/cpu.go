package gemm

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/lowtoggle/lowtoggle/cost/arith"
)

// Multiply returns y[M,N], row-major, computed on the CPU as the reference for GPUs. Floating-point types accumulate in
// float32, INT8 in exact integers. The result is not rounded to the type's output. The weights' role has no effect.
// Multiply returns an error if the shapes or types of the operands differ from p's.
func Multiply(p Problem, x, w Matrix) ([]float64, error) {
	if err := p.Fits(x, w); err != nil {
		return nil, err
	}
	if p.Type == arith.INT8 { // float64 holds every int32 and every partial sum exactly
		y := make([]float64, p.M*p.N)
		blas64.Gemm(blas.NoTrans, blas.Trans, 1, general64(x), general64(w), 0,
			blas64.General{Rows: p.M, Cols: p.N, Stride: p.N, Data: y})
		return y, nil
	}
	y := make([]float32, p.M*p.N)
	blas32.Gemm(blas.NoTrans, blas.Trans, 1, general32(x), general32(w), 0,
		blas32.General{Rows: p.M, Cols: p.N, Stride: p.N, Data: y})
	return widen(y), nil
}

func general32(m Matrix) blas32.General {
	return blas32.General{Rows: m.Rows, Cols: m.Cols, Stride: m.Cols, Data: m.floats()}
}

func general64(m Matrix) blas64.General {
	return blas64.General{Rows: m.Rows, Cols: m.Cols, Stride: m.Cols, Data: widen(m.floats())}
}

func widen(v []float32) []float64 {
	out := make([]float64, len(v))
	for i, f := range v {
		out[i] = float64(f)
	}
	return out
}
