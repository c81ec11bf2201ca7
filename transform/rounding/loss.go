package rounding

import (
	"context"
	"fmt"
	"math"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
)

// Loss compares a layer's outputs with stored values to those with its weights: summed over outputs, mean
// over tokens.
type Loss struct {
	Error  float64 // power of the change, tr(E H Eᵀ)
	Signal float64 // power of the outputs, tr(W H Wᵀ)
}

// Decibels is the output SNR in dB; +Inf without an error.
func (l Loss) Decibels() float64 {
	if l.Error <= 0 {
		return math.Inf(1)
	}
	return 10 * math.Log10(l.Signal/l.Error)
}

// Scale is the factor that makes error powers relative, for [Trellis] and [Prune]: an error power of
// Signal/weights becomes 1. It is 0 without a signal.
func (l Loss) Scale(weights int) float64 {
	if !(l.Signal > 0) {
		return 0
	}
	return float64(weights) / l.Signal
}

// Power is tr(E H Eᵀ) with E = w − q, or E = w if q has no rows. Weights that are not finite are left out.
func Power(ctx context.Context, w, q, h sgemm.Matrix, workers int) (float64, error) {
	if q.Rows > 0 && (w.Rows != q.Rows || w.Cols != q.Cols) || h.Rows != w.Cols || h.Cols != w.Cols {
		panic(fmt.Sprintf("rounding: w of %d×%d, q of %d×%d, h of %d×%d do not fit",
			w.Rows, w.Cols, q.Rows, q.Cols, h.Rows, h.Cols))
	}
	parts := make([]float64, (w.Rows+chunkRows-1)/chunkRows) // added in order, whichever worker computes them
	err := parallel.Run(ctx, len(parts), workers, func(ctx context.Context, i int) (err error) {
		n0, n1 := i*chunkRows, min((i+1)*chunkRows, w.Rows)
		e := w.Slice(n0, n1, 0, w.Cols)
		if q.Rows > 0 {
			e = finiteDifference(e, q.Slice(n0, n1, 0, w.Cols))
		} else {
			e = finiteDifference(e, sgemm.Matrix{})
		}
		parts[i], err = power(ctx, e, h)
		return err
	})
	sum := 0.0
	for _, p := range parts {
		sum += p
	}
	return sum, err
}

// finiteDifference is w − q, or w if q has no data, with zeros in place of weights that are not finite.
func finiteDifference(w, q sgemm.Matrix) sgemm.Matrix {
	e := sgemm.Dense(w.Rows, w.Cols, nil)
	for n := range w.Rows {
		to := e.Row(n)
		for k, v := range w.Row(n) {
			if v-v != 0 {
				continue
			}
			to[k] = v
			if q.Data != nil {
				to[k] -= q.Row(n)[k]
			}
		}
	}
	return e
}

// power is tr(e h eᵀ).
func power(ctx context.Context, e, h sgemm.Matrix) (sum float64, err error) {
	eh := sgemm.Dense(e.Rows, e.Cols, nil)
	if err := sgemm.Mul(ctx, eh, e, h, sgemm.Op{Workers: 1}); err != nil {
		return 0, err
	}
	for i, v := range eh.Data {
		sum += float64(v) * float64(e.Data[i])
	}
	return sum, nil
}
