package rounding

import (
	"context"
	"fmt"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
)

// Pruning is the error of zeroing whole columns of a layer while the other columns compensate.
type Pruning struct {
	// Order is the order of elimination. To zero z columns, Order[:z] is FactorOptions.First and z is Options.Zero.
	Order []int
	// Error[z] is the error power of zeroing the first z columns, under the damped Hessian.
	Error []float64
	// Scale makes errors relative; see [Loss.Scale].
	Scale float64
}

// PruneOptions are the options of [Prune].
type PruneOptions struct {
	Damp    float64 // as in FactorOptions
	Signal  float64 // power of the outputs, [Power] of w under h; 0: unknown, Prune computes it
	Workers int     // largest number of goroutines; 0: all processors
}

// Prune orders the columns of w[N,K] for zeroing. The inputs that the other inputs predict best come first. The order
// is the reverse of a pivoted Cholesky factorisation of h[K,K]: each pivot is the input with the largest variance
// given the earlier pivots.
func Prune(ctx context.Context, w, h sgemm.Matrix, o PruneOptions) (*Pruning, error) {
	if ctx == nil {
		return nil, parallel.ErrNoContext
	}
	if h.Rows != w.Cols {
		panic(fmt.Sprintf("rounding: w of %d×%d and h of %d×%d do not fit", w.Rows, w.Cols, h.Rows, h.Cols))
	}
	damp, err := damping(h, o.Damp)
	if err != nil {
		return nil, err
	}
	order, err := eliminationOrder(ctx, h, damp, o.Workers)
	if err != nil {
		return nil, err
	}
	f, err := NewFactor(ctx, h, FactorOptions{Damp: o.Damp, First: order, Workers: o.Workers})
	if err != nil {
		return nil, err
	}
	p := &Pruning{Order: order}
	if p.Error, err = zeroing(ctx, w, f, o.Workers); err != nil {
		return nil, err
	}
	signal := o.Signal
	if signal == 0 {
		if signal, err = Power(ctx, w, sgemm.Matrix{}, h, o.Workers); err != nil {
			return nil, err
		}
	}
	p.Scale = Loss{Signal: signal}.Scale(w.Rows * w.Cols)
	return p, nil
}

// Best returns the number of columns to zero that minimises Error·Scale − gain·columns. gain is the saving of a
// zeroed column, expressed as a relative error. Ties go to the smallest number.
func (p *Pruning) Best(gain float64) int {
	best, least := 0, 0.0
	for z, e := range p.Error {
		if c := float64(e*p.Scale) - float64(gain*float64(z)); c < least {
			best, least = z, c
		}
	}
	return best
}

// zeroing returns the error power of zeroing the first z columns, for every z: Σ D_k ‖t_k‖² with t = w·U.
func zeroing(ctx context.Context, w sgemm.Matrix, f *Factor, workers int) ([]float64, error) {
	sums := make([]float64, w.Cols+1)
	w = finiteDifference(w, sgemm.Matrix{})
	wt := gather(w, f.Order)
	t := wt
	if f.U.Data != nil {
		t = sgemm.Dense(w.Cols, w.Rows, nil)
		if err := sgemm.Mul(ctx, t, f.U, wt, sgemm.Op{TransA: true, Workers: workers}); err != nil {
			return nil, err
		}
	}
	for k, d := range f.D {
		var sum float64
		for _, v := range t.Row(k) {
			sum += float64(float64(v) * float64(v))
		}
		sums[k+1] = sums[k] + float64(d*sum)
	}
	return sums, nil
}

// eliminationOrder returns the pivots from the last to the first. Pivots are found column by column in blocks. A
// product then updates the whole matrix, because pivots may be anywhere.
func eliminationOrder(ctx context.Context, h sgemm.Matrix, damp float64, workers int) ([]int, error) {
	k := h.Rows
	order := make([]int, k)
	rest := sgemm.Dense(k, k, nil) // h given the pivots of earlier blocks
	variance := make([]float64, k) // of each input given all pivots so far; negative for a pivot
	for i := range k {
		copy(rest.Row(i), h.Row(i))
		variance[i] = float64(h.Row(i)[i]) + damp
	}
	for first := 0; first < k; first += panelCols {
		block := min(panelCols, k-first)
		u, minusY := sgemm.Dense(block, k, nil), sgemm.Dense(block, k, nil)
		for i := range block {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			pivot := 0
			for j, v := range variance {
				if v > variance[pivot] {
					pivot = j
				}
			}
			order[k-1-first-i] = pivot
			y := minusY.Row(i)
			copy(y, rest.Row(pivot))
			for m := range i {
				s := u.Row(m)[pivot]
				for j, v := range minusY.Row(m)[:len(y)] {
					y[j] += float32(v * s)
				}
			}
			d := max(variance[pivot], damp, noise*float64(h.Row(pivot)[pivot]))
			to := u.Row(i)
			for j, v := range y {
				if d > 0 {
					to[j] = float32(float64(v) / d)
				}
				if variance[j] >= 0 {
					variance[j] = max(variance[j]-float64(float64(to[j])*float64(v)), 0)
				}
				y[j] = -v
			}
			variance[pivot] = -1
		}
		if err := sgemm.Mul(ctx, rest, minusY, u, sgemm.Op{TransA: true, Add: true, Workers: workers}); err != nil {
			return nil, err
		}
	}
	return order, nil
}
