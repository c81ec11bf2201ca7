package quant_test

import (
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// eachLayout runs a benchmark on one layer of 4096 × 8192 in every layout that can be read.
func eachLayout(b *testing.B, run func(b *testing.B, w *quant.Weight)) {
	for _, q := range testmodel.Quantisations {
		b.Run(q.Name, func(b *testing.B) {
			m := testmodel.Open(b, testmodel.QuantisedLayer(b, q, 4096, 8192))
			d, err := quant.Describe(m)
			testmodel.OK(b, err)
			w := quant.Group(m, d).All[0]
			if w.Quantised == nil {
				b.Skip(d.Weights[0].CanRead())
			}
			b.SetBytes(m.Size())
			run(b, w)
		})
	}
}

// BenchmarkRead reads the matrix. Its bytes per second count the stored tensors.
func BenchmarkRead(b *testing.B) {
	eachLayout(b, func(b *testing.B, w *quant.Weight) {
		for b.Loop() {
			if _, err := w.Quantised.Read(0); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkEncode encodes the matrix. Its bytes per second count the stored tensors.
func BenchmarkEncode(b *testing.B) {
	eachLayout(b, func(b *testing.B, w *quant.Weight) {
		m, err := w.Quantised.Read(0)
		testmodel.OK(b, err)
		for b.Loop() {
			testmodel.OK(b, w.Quantised.Encode(m, 0, func(int, int64, []byte) error { return nil }))
		}
	})
}

// BenchmarkReadRows dequantises 64 rows at a time. Its bytes per second count F32 values.
func BenchmarkReadRows(b *testing.B) {
	eachLayout(b, func(b *testing.B, w *quant.Weight) {
		b.SetBytes(w.Info().Size())
		var buf []byte
		for b.Loop() {
			for first := 0; first < w.Rows; first += 64 {
				buf = w.ReadRows(buf, first, 64)
			}
		}
	})
}
