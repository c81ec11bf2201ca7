package divergence_test

import (
	"context"
	"testing"
)

// BenchmarkPerLayer evaluates every layer of the demo model on its 8192 calibration tokens.
func BenchmarkPerLayer(b *testing.B) {
	m := trained(b, 32, 256)
	e, coarse := m.evaluator(b), grid(m.stored, 1./16)
	for b.Loop() {
		perLayer(b, e, nil, coarse)
	}
	b.ReportMetric(float64(len(m.Layers())*b.N)/b.Elapsed().Seconds(), "layers/s")
}

// BenchmarkWholeModel evaluates all of it at once.
func BenchmarkWholeModel(b *testing.B) {
	m := trained(b, 32, 256)
	e, coarse := m.evaluator(b), grid(m.stored, 1./16)
	for b.Loop() {
		if _, _, _, err := e.WholeModel(context.Background(), coarse); err != nil {
			b.Fatal(err)
		}
	}
}
