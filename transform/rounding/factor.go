package rounding

import (
	"cmp"
	"context"
	"fmt"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/internal/tally"
)

// Factor is the factorisation of a damped Hessian. It feeds the error of a column back into later columns.
type Factor struct {
	// Order is the order of rounding: column Order[i] of W is the i-th.
	Order []int
	// U is unit upper triangular [K,K], in the order of rounding, with zeros below the diagonal. U[j,i] is the share
	// of the j-th column's error that the i-th column absorbs. Without data, U is the identity, and there is no
	// feedback.
	U sgemm.Matrix
	// D are the weights of the columns' squared distances to their targets, in the order of rounding.
	D []float64
}

// FactorOptions are the options of [NewFactor].
type FactorOptions struct {
	Damp    float64 // share of the mean of H's diagonal, added to the diagonal; 0: 1e-3. Below 1e-5 the precision of float32 limits it.
	First   []int   // columns to round before the others, in this order
	Workers int     // largest number of goroutines; 0: all processors
}

// NewFactor factorises the damped Hessian h[K,K] for the columns in o.First, then the other columns by descending
// diagonal. If h is all zero, errors do not change the outputs: D is zero, and there is no feedback.
func NewFactor(ctx context.Context, h sgemm.Matrix, o FactorOptions) (*Factor, error) {
	if ctx == nil {
		return nil, parallel.ErrNoContext
	}
	damp, err := damping(h, o.Damp)
	if err != nil {
		return nil, err
	}
	order, err := Order(diagonalOf(h), o.First)
	if err != nil {
		return nil, err
	}
	tally.Add(ctx, "rounding.NewFactor", 1)
	f := &Factor{Order: order, D: make([]float64, h.Rows)}
	if damp == 0 {
		return f, nil
	}
	f.U = sgemm.Dense(h.Rows, h.Rows, nil)
	for i, k := range order {
		row, from := f.U.Row(i), h.Row(k)
		f.D[i] = float64(from[k])
		for j := i; j < len(row); j++ {
			row[j] = from[order[j]]
		}
	}
	if err := factorise(ctx, f.U, f.D, damp, o.Workers); err != nil {
		return nil, err
	}
	return f, nil
}

// Uncompensated returns a factor without feedback, for columns in their own order. The weight of each column is its
// element of the Hessian's diagonal.
func Uncompensated(diagonal []float32) *Factor {
	f := Flat(len(diagonal))
	for k, v := range diagonal {
		f.D[k] = float64(v)
	}
	return f
}

// Flat returns a factor without feedback in which all k columns have weight 1. It is for a layer with an unknown
// Hessian.
func Flat(k int) *Factor {
	f := &Factor{Order: naturalOrder(k), D: make([]float64, k)}
	for i := range f.D {
		f.D[i] = 1
	}
	return f
}

func naturalOrder(k int) []int {
	order := make([]int, k)
	for i := range order {
		order[i] = i
	}
	return order
}

// damping checks h and returns its [Damping].
func damping(h sgemm.Matrix, relative float64) (float64, error) {
	if h.Rows != h.Cols {
		return 0, fmt.Errorf("rounding: the Hessian is %d×%d; give XᵀX, which is square", h.Rows, h.Cols)
	}
	damp, err := Damping(diagonalOf(h), relative)
	for i := 0; err == nil && i < h.Rows; i++ {
		if err = checkRow(i, h.Row(i)[i:]); err != nil {
			break
		}
		for j, v := range h.Row(i)[:i] {
			if v-v != 0 {
				return 0, fmt.Errorf("rounding: the Hessian is %g at (%d, %d); leave out tokens whose activations overflow", v, i, j)
			}
		}
	}
	return damp, err
}

func diagonalOf(h sgemm.Matrix) []float32 {
	d := make([]float32, h.Rows)
	for i := range d {
		d[i] = h.Row(i)[i]
	}
	return d
}

func compareDescending(a, b float32) int { return -cmp.Compare(a, b) }
