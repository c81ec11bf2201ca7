package program

import (
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// TestScaleOfZero: under a scale of zero, which NVFP4 may have, targets get code 0, because codes do not affect the
// value.
func TestScaleOfZero(t *testing.T) {
	for _, rules := range []Recoding{{}, {Rescale: true, Bits: 1}, {Zeroed: 1}} {
		tried := 0
		for _, q := range testmodel.Quantisations {
			m := weightOf(t, q)
			if m == nil || m.Book.Codes != "nvfp4" {
				continue
			}
			tried++
			m.Scales[1] = 0
			c := newRecoder(rules, weights.BF16, m, m.Codes)
			c.target = func(dst []float32, n int) {
				for k := range dst {
					dst[k] = 1e30 * float32(n-k)
				}
			}
			if err := c.rescale(t.Context(), 2); err != nil {
				t.Fatal(err)
			}
			if err := c.choose(t.Context(), nil, 2); err != nil {
				t.Fatal(err)
			}
			other := false
			for k := range m.K {
				v := m.Book.Values[c.out.Codes[k]]
				if m.Place(0, k) == 1 && v != 0 {
					t.Errorf("%s, %+v: column %d has code %d", q.Name, rules, k, c.out.Codes[k])
				}
				other = other || v != 0
			}
			if !other {
				t.Errorf("%s, %+v: codes under other scales are zero, too", q.Name, rules)
			}
		}
		if tried == 0 {
			t.Error("no format was tried")
		}
	}
}

// weightOf reads the first weight of a small model; nil if its layout cannot be read.
func weightOf(t *testing.T, q testmodel.Quantisation) *quant.Matrix {
	t.Helper()
	model, err := weights.Open(testmodel.Quantised(t, q, testmodel.With{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { model.Close() })
	d, err := quant.Describe(model)
	if err != nil {
		t.Fatal(err)
	}
	if d.Weights[0].CanRead() != nil {
		return nil
	}
	m, err := d.Weights[0].Read(0)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
