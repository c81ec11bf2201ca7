package program

import (
	"reflect"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform/rounding"
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

// TestEqualScales: of equally good scales, the smallest is chosen.
func TestEqualScales(t *testing.T) {
	values := make([]float32, 16)
	for c := range values {
		values[c] = float32(c)
	}
	m := &quant.Matrix{N: 1, K: 2, Block: [2]int{1, 2}, Global: 1, Scales: []float32{1}, Codes: []byte{8, 8},
		Book: quant.Book{Codes: "int4", Values: values, Zero: 8, ScaleType: weights.F16}}
	c := newRecoder(Recoding{Rescale: true, Bits: 1}, weights.BF16, m, m.Codes)
	testmodel.OK(t, c.rescale(t.Context(), 1))
	if got := c.out.Scales[0]; got != 0.75 {
		t.Errorf("the scale of zeros becomes %g, want 0.75, which is the smallest near 1", got)
	}
}

// TestLargestScale: if the next power of two is above the largest scale, the new scale is at least half of the old one.
func TestLargestScale(t *testing.T) {
	values := make([]float32, 16)
	for c := range values {
		values[c] = float32(c)
	}
	for old, want := range map[float32]float32{65504: 32768, 40000: 32768, 32768: 32768, 30000: 32768} {
		m := &quant.Matrix{N: 1, K: 4, Block: [2]int{1, 4}, Global: 1, Scales: []float32{old}, Codes: []byte{7, 8, 9, 8},
			Book: quant.Book{Codes: "int4", Values: values, Zero: 8, ScaleType: weights.F16}}
		c := newRecoder(Recoding{Rescale: true}, weights.BF16, m, m.Codes)
		testmodel.OK(t, c.rescale(t.Context(), 1))
		if got := c.out.Scales[0]; got != want {
			t.Errorf("scale %g becomes %g, want %g", old, got, want)
		}
	}
}

// TestMergedRules: a rule without an energy term keeps the energy term of another.
func TestMergedRules(t *testing.T) {
	rates := rounding.Rates{Significant: []float64{1, 2}}
	a, b := Recoding{Lambda: 0.3, Rates: rates, Rescale: true, Bits: 3}, Recoding{Zeroed: 2, Grid: 4, PositiveZero: true}
	want := Recoding{PositiveZero: true, Rescale: true, Bits: 3, Zeroed: 2, Grid: 4, Lambda: 0.3, Rates: rates}
	for _, got := range []Recoding{a.merge(b), b.merge(a)} {
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}
