package divergence_test

import (
	"context"
	"testing"
)

// BenchmarkPerLayer judges every layer of the demo model on its 8192 calibration tokens.
func BenchmarkPerLayer(b *testing.B) {
	m := trained(b, 32, 256)
	j, coarse := m.judge(b), grid(m.stored, 1./16)
	for b.Loop() {
		alone(b, j, nil, coarse)
	}
	b.ReportMetric(float64(len(m.Layers())*b.N)/b.Elapsed().Seconds(), "layers/s")
}

// BenchmarkWholeModel judges all of it at once.
func BenchmarkWholeModel(b *testing.B) {
	m := trained(b, 32, 256)
	j, coarse := m.judge(b), grid(m.stored, 1./16)
	for b.Loop() {
		if _, _, _, err := j.WholeModel(context.Background(), coarse); err != nil {
			b.Fatal(err)
		}
	}
}
