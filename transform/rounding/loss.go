package rounding

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/internal/elementary"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
)

// Loss compares a layer's outputs with stored values and its outputs with the original weights: powers summed over
// outputs, mean over tokens.
type Loss struct {
	Error  float64 // power of the change, tr(E H Eᵀ)
	Signal float64 // power of the outputs, tr(W H Wᵀ)
}

// Decibels returns the output SNR in dB; +Inf without an error.
func (l Loss) Decibels() float64 {
	if l.Error <= 0 {
		return math.Inf(1)
	}
	return 10 * elementary.Log10(l.Signal/l.Error)
}

// Scale returns the factor for relative error powers in [Trellis] and [Prune]: an error power of Signal/weights
// becomes 1. Without a signal, it returns 0.
func (l Loss) Scale(weights int) float64 {
	if !(l.Signal > 0) {
		return 0
	}
	return float64(weights) / l.Signal
}

// Power returns tr(E H Eᵀ) with E = w − q, or E = w if q has no rows. Weights that are not finite are left out.
func Power(ctx context.Context, w, q, h sgemm.Matrix, workers int) (float64, error) {
	if q.Rows > 0 && (w.Rows != q.Rows || w.Cols != q.Cols) || h.Rows != w.Cols || h.Cols != w.Cols {
		panic(fmt.Sprintf("rounding: w of %d×%d, q of %d×%d, h of %d×%d do not fit",
			w.Rows, w.Cols, q.Rows, q.Cols, h.Rows, h.Cols))
	}
	parts := make([]float64, (w.Rows+chunkRows-1)/chunkRows) // added in order, whichever worker computes them
	err := parallel.Run(ctx, len(parts), workers, func(ctx context.Context, i int) (err error) {
		n0, n1 := i*chunkRows, min((i+1)*chunkRows, w.Rows)
		buffer := buffers.Get().(*[]float32)
		defer buffers.Put(buffer)
		n := (n1 - n0) * w.Cols
		if len(*buffer) < 2*n {
			*buffer = make([]float32, 2*n)
		}
		e, eh := sgemm.Dense(n1-n0, w.Cols, (*buffer)[:n]), sgemm.Dense(n1-n0, w.Cols, (*buffer)[n:2*n])
		var stored sgemm.Matrix
		if q.Rows > 0 {
			stored = q.Slice(n0, n1, 0, w.Cols)
		}
		writeDifference(e, w.Slice(n0, n1, 0, w.Cols), stored)
		parts[i], err = power(ctx, eh, e, h)
		return err
	})
	sum := 0.0
	for _, p := range parts {
		sum += p
	}
	return sum, err
}

// finiteDifference returns w − q, or w if q has no data, with zeros for weights that are not finite.
func finiteDifference(w, q sgemm.Matrix) sgemm.Matrix {
	e := sgemm.Dense(w.Rows, w.Cols, nil)
	writeDifference(e, w, q)
	return e
}

// writeDifference writes finiteDifference to e. The old values of e are ignored.
func writeDifference(e, w, q sgemm.Matrix) {
	for n := range w.Rows {
		from := w.Row(n)
		to := e.Row(n)[:len(from)]
		if q.Data == nil {
			copy(to, from)
		} else {
			stored := q.Row(n)[:len(from)]
			for k, v := range from {
				to[k] = v - stored[k]
			}
		}
		for k, v := range from {
			if v-v != 0 {
				to[k] = 0
			}
		}
	}
}

// buffers are for a chunk's errors and for their product with the Hessian.
var buffers = sync.Pool{New: func() any { return new([]float32) }}

// power returns tr(e h eᵀ). eh is a buffer for e·h.
func power(ctx context.Context, eh, e, h sgemm.Matrix) (sum float64, err error) {
	if err := sgemm.Mul(ctx, eh, e, h, sgemm.Op{Workers: 1}); err != nil {
		return 0, err
	}
	for i, v := range eh.Data {
		sum += float64(float64(v) * float64(e.Data[i]))
	}
	return sum, nil
}
