package rounder

import (
	"math"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/transform/rounding"
	"github.com/lowtoggle/lowtoggle/weights"
)

// travels reports whether values of a format are transferred to the card in their stored form. Values of other formats
// are transferred as F32.
func travels(f weights.Format) bool { return f.DType == weights.BF16 || f.DType == weights.F32 }

// size returns the bytes of a value in the transfer to the card.
func size(f weights.Format) int {
	if f.DType == weights.BF16 {
		return 2
	}
	return 4
}

// rows returns rows [first, end) in the form of the transfer to the card.
func rows(v rounding.Values, first, end, workers int) (data []byte, err error) {
	if travels(v.Format) {
		bytes := v.Cols * size(v.Format)
		return v.Data[first*bytes : end*bytes], nil
	}
	m := sgemm.Dense(end-first, v.Cols, nil)
	err = weights.Guard("values of a layer", func() error { v.Decode(m, first); return nil })
	return bytesOf(m.Data), err
}

// stored converts values from the card to bytes of w's format. The values are the rows of w from row first on.
func stored(w rounding.Values, first int, data []byte, workers int) []byte {
	f := w.Format
	if travels(f) {
		return data
	}
	n := len(data) / 4
	values, out := make([]float32, n), make([]byte, n*f.Bits/8)
	for i := range values {
		values[i] = math.Float32frombits(uint32(data[4*i]) | uint32(data[4*i+1])<<8 | uint32(data[4*i+2])<<16 | uint32(data[4*i+3])<<24)
	}
	row := w.Cols * f.Bits / 8
	parallel.Do(n/w.Cols, workers, func(i int) {
		to, own := out[i*row:][:row], w.Data[(first+i)*row:][:row]
		f.Encode(to, values[i*w.Cols:][:w.Cols])
		for k := range w.Cols {
			if v := f.Elem(own, k); !f.Finite(v) {
				f.SetElem(to, k, v)
			}
		}
	})
	return out
}
