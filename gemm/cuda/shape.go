package cuda

import (
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/gemm"
)

// shape is a padded product in cuBLASLt's terms: column-major D[m,n] = A[k,m]ᵀ·B[k,n].
type shape struct{ m, n, k int }

func shapeOf(p gemm.Problem) shape {
	pad := func(v int) int {
		to := arithmetics[p.Type].multiple
		return (v + to - 1) / to * to
	}
	if p.Streaming { // w is operand B
		return shape{pad(p.M), pad(p.N), pad(p.K)}
	}
	return shape{pad(p.N), pad(p.M), pad(p.K)}
}

// rowsOf returns the padded numbers of rows of x and of w.
func (s shape) rowsOf(p gemm.Problem) (x, w int) {
	if p.Streaming {
		return s.m, s.n
	}
	return s.n, s.m
}

// padded returns m's data, padded with zeros to rows × cols. It copies the data only if it pads.
func padded(m gemm.Matrix, rows, cols int) []byte {
	if rows == m.Rows && cols == m.Cols {
		return m.Data
	}
	size := m.DType.Bits() / 8
	out := make([]byte, rows*cols*size)
	for r := range m.Rows {
		copy(out[r*cols*size:], m.Data[r*m.Cols*size:(r+1)*m.Cols*size])
	}
	return out
}

// result returns D as y[M,N], row-major and without padding.
func (s shape) result(p gemm.Problem, d []byte) []float64 {
	all := make([]float64, s.m*s.n)
	p.Type.Decode(all, d)
	if !p.Streaming && s.m == p.N && s.n == p.M {
		return all
	}
	y := make([]float64, p.M*p.N)
	for i := range p.M {
		for j := range p.N {
			if p.Streaming {
				y[i*p.N+j] = all[j*s.m+i]
			} else {
				y[i*p.N+j] = all[i*s.m+j]
			}
		}
	}
	return y
}

// outputBytes returns the size of D in bytes.
func (s shape) outputBytes(t arith.Type) int { return s.m * s.n * t.Output().Bits() / 8 }
