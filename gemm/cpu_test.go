package gemm

import (
	"fmt"
	"math"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"gonum.org/v1/gonum/mat"
)

// oddShapes have dimensions that are not multiples of block sizes.
var oddShapes = [][3]int{{1, 1, 1}, {1, 7, 129}, {16, 33, 65}, {5, 1, 1000}, {67, 31, 257}}

// operands are random x and w for p, of a scale that keeps every type in range.
func operands(p Problem, seed uint64) (x, w Matrix) {
	sx, sw := 1.0, 0.02
	if p.Type == arith.INT8 {
		sx, sw = 40, 40
	}
	return normal(p.Type.Operand(), p.M, p.K, 0, sx, seed), normal(p.Type.Operand(), p.N, p.K, 0, sw, seed+1)
}

func dense(m Matrix) *mat.Dense { return mat.NewDense(m.Rows, m.Cols, widen(m.floats())) }

func TestCPUIsTheProduct(t *testing.T) {
	for _, typ := range arith.Types() {
		for _, s := range oddShapes {
			p := Problem{M: s[0], N: s[1], K: s[2], Type: typ}
			t.Run(fmt.Sprint(p), func(t *testing.T) {
				x, w := operands(p, 1)
				y, err := Multiply(p, x, w)
				if err != nil {
					t.Fatal(err)
				}
				var want mat.Dense
				want.Mul(dense(x), dense(w).T())
				got := mat.NewDense(p.M, p.N, y)
				if typ == arith.INT8 {
					if !mat.Equal(got, &want) {
						t.Error("int8 is not exact")
					}
					return
				}
				var diff mat.Dense
				diff.Sub(got, &want)
				limit := 4 * math.Ldexp(1, -24) * math.Sqrt(float64(p.K))
				if e := diff.Norm(2) / want.Norm(2); e > limit {
					t.Errorf("relative error %g, more than float32 accumulation explains (%g)", e, limit)
				}
			})
		}
	}
}

func TestINT8HoldsItsLongestSum(t *testing.T) {
	p := Problem{M: 1, N: 1, K: maxIntK, Type: arith.INT8}
	x := NewMatrix(p.Type.Operand(), 1, p.K)
	for i := range x.Data {
		x.Data[i] = 0x80 // −128
	}
	y, err := Multiply(p, x, x)
	if want := 128 * 128 * float64(maxIntK); err != nil || y[0] != want || want > math.MaxInt32 {
		t.Errorf("%v, %v; want %v, within int32", y, err, want)
	}
	p.K++
	if p.Validate() == nil {
		t.Error("a sum that can overflow is accepted")
	}
}
