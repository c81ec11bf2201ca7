package inspect_test

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/gemm/inspect"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
)

// zeroed writes a copy of a single-file model whose values have their lowest bits zeroed.
func zeroed(t *testing.T, m *weights.Model, mask byte) *weights.Model {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "copy")
	testmodel.OK(t, os.CopyFS(dir, os.DirFS(m.Dir)))
	for _, shard := range m.Shards {
		path := filepath.Join(dir, filepath.Base(shard.Path))
		data, err := os.ReadFile(path)
		testmodel.OK(t, err)
		testmodel.OK(t, shard.Each(func(x weights.Tensor) error {
			start := len(data) - int(shardBytes(shard)) + int(x.Begin)
			for i := 0; i < len(x.Data); i += 2 {
				data[start+i] &= mask
			}
			return nil
		}))
		testmodel.OK(t, os.WriteFile(path, data, 0o666))
	}
	return testmodel.Open(t, dir)
}

func shardBytes(f *weights.File) (n int64) {
	for _, x := range f.Tensors {
		n = max(n, x.End)
	}
	return n
}

// TestSample: the sample sees bits that no longer toggle and values that became equal. All rows of small layers are in it, so
// toggles over pairs of them are near those of the whole tensor.
func TestSample(t *testing.T) {
	m := testmodel.Random(t, "llama-tiny", 1)
	after := zeroed(t, m, 0xf0)
	all, err := inspect.Sample(t.Context(), m, after, nil, 2)
	testmodel.OK(t, err)
	if len(all) != 9 || all[0].Kind != "" || all[0].Layers != 15 {
		t.Fatalf("%d kinds, %+v", len(all), all[0])
	}
	for _, k := range all {
		if len(k.Before.Toggles) != 16 || k.Before.DType != "BF16" || k.After == nil {
			t.Fatalf("%+v", k)
		}
		for bit, share := range k.After.Toggles {
			if before := k.Before.Toggles[bit]; bit < 4 && share != 0 || bit >= 4 && share != before {
				t.Errorf("%s: bit %d toggles in %v of the pairs, before %v", k.Kind, bit, share, before)
			}
			if bit < 4 && math.Abs(k.Before.Toggles[bit]-0.5) > 0.05 {
				t.Errorf("%s: bit %d of random values toggles in %v", k.Kind, bit, k.Before.Toggles[bit])
			}
		}
		sum := 0.0
		for _, share := range k.Before.Shares {
			sum += share
		}
		if math.Abs(sum-1) > 1e-9 || k.After.Distinct >= k.Before.Distinct || k.Sampled == 0 || k.Sampled > k.Weights {
			t.Errorf("%s: shares of %v, %v distinct values before and %v after, %d of %d", k.Kind, sum, k.Before.Distinct, k.After.Distinct, k.Sampled, k.Weights)
		}
	}
	calibration, err := cost.FindCalibration("h200")
	testmodel.OK(t, err)
	r, err := inspect.Model(t.Context(), m, inspect.Options{Calibration: calibration, Workload: cost.DefaultWorkload})
	testmodel.OK(t, err)
	for _, whole := range r.Kinds() {
		for _, k := range all[1:] {
			if k.Kind == whole.Name && math.Abs(k.Before.PerValue()-whole.RowToggles) > 0.1 {
				t.Errorf("%s: %v toggles in the sample, %v in all", k.Kind, k.Before.PerValue(), whole.RowToggles)
			}
		}
	}
	again, err := inspect.Sample(t.Context(), m, after, nil, 1)
	testmodel.OK(t, err)
	if !reflect.DeepEqual(all, again) {
		t.Error("another number of workers gives another sample")
	}
	alone, err := inspect.Sample(t.Context(), m, nil, nil, 1)
	testmodel.OK(t, err)
	if alone[0].After != nil || !reflect.DeepEqual(alone[0].Before, all[0].Before) {
		t.Errorf("alone: %+v", alone[0])
	}
}

// TestSampleQuantised: quantised weights that can be read are in the sample, with the bits of what the tensor cores read.
func TestSampleQuantised(t *testing.T) {
	for _, q := range testmodel.Quantisations {
		m := testmodel.Open(t, testmodel.Quantised(t, q, testmodel.With{}))
		all, err := inspect.Sample(t.Context(), m, m, nil, 2)
		testmodel.OK(t, err)
		for _, k := range all {
			if !reflect.DeepEqual(&k.Before, k.After) {
				t.Errorf("%s: %s: the same model differs from itself", q.Name, k.Kind)
			}
			if !(k.Before.PerValue() > 0) && k.Before.DType != "mixed" || math.IsNaN(k.Before.Zeros) {
				t.Errorf("%s: %s: %+v", q.Name, k.Kind, k.Before)
			}
		}
	}
}
