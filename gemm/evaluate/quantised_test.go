package evaluate_test

import (
	"context"
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/evaluate"
	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/gemm/hessian"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
)

// doubled is a Weights with one doubled tensor and no others.
type doubled struct {
	forward.Weights
	name string
}

func (d doubled) Tensor(ctx context.Context, name string) ([]float32, error) {
	if name != d.name {
		return nil, nil
	}
	values, err := d.Weights.Tensor(ctx, name)
	for i := range values {
		values[i] *= 2
	}
	return values, err
}

// TestQuantisedStatistics: calibration statistics and divergences of a quantised model equal those of its dequantised copy.
func TestQuantisedStatistics(t *testing.T) {
	const changed = "model.layers.1.mlp.up_proj.weight"
	type result struct {
		gram       []float32
		layers     []string
		nats       []float64
		divergence float64
		loss       float64
	}
	of := func(m *weights.Model) (r result) {
		set := few()
		s, err := evaluate.New(m, nil, set, 0)
		testmodel.OK(t, err)
		store, reference, err := s.OnCPU(m).CollectAndScore(t.Context(), set.Sequences, t.TempDir(), hessian.Options{Key: "k"})
		testmodel.OK(t, err)
		gram, err := store.Read(t.Context(), changed)
		testmodel.OK(t, err)
		r.gram = gram.Data
		err = reference.PerLayer(t.Context(), nil, doubled{forward.Stored(m), changed}, func(layer string, nats float64) error {
			r.layers, r.nats = append(r.layers, layer), append(r.nats, nats)
			return nil
		})
		testmodel.OK(t, err)
		r.divergence, r.loss, _, err = reference.WholeModel(t.Context(), doubled{forward.Stored(m), changed})
		testmodel.OK(t, err)
		return r
	}
	for _, q := range testmodel.Quantisations {
		if q.Name != "compressed fp8 block" && q.Name != "pack-quantized asymmetric" && q.Name != "modelopt nvfp4" {
			continue
		}
		m := testmodel.Open(t, testmodel.Quantised(t, q, testmodel.With{}))
		got, want := of(m), of(testmodel.Open(t, testmodel.Dequantised(t, m, nil)))
		if !slices.Equal(got.gram, want.gram) || !slices.Equal(got.layers, []string{changed}) || !slices.Equal(got.nats, want.nats) ||
			got.divergence != want.divergence || got.loss != want.loss || !(got.divergence > 0) {
			t.Errorf("%s: layers %v by %v, in all %v and %v; want %v, %v and %v", q.Name, got.layers, got.nats, got.divergence, got.loss, want.nats, want.divergence, want.loss)
		}
	}
}
