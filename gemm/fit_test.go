package gemm

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
)

// filled returns a BF16 matrix of one row.
func filled(values ...float32) Matrix {
	m := NewMatrix(weights.BF16, 1, len(values))
	f := m.format()
	for i, v := range values {
		f.SetElem(m.Data, i, f.FromValue(v))
	}
	return m
}

// TestFit: 8-bit types hold a matrix times a power of two, the same for matrices that are compared.
func TestFit(t *testing.T) {
	m := filled(0.1, -0.75, 0)
	for d, want := range map[weights.DType]struct {
		exponent int
		values   []float32
	}{
		weights.I8:     {7, []float32{13, -96, 0}},
		weights.F8E4M3: {9, []float32{52, -384, 0}},
		weights.F32:    {0, []float32{0.10009765625, -0.75, 0}},
	} {
		e := m.Exponent(d)
		got, err := m.Fit(d, e)
		if err != nil || e != want.exponent {
			t.Fatalf("%v: exponent %d, %v; want %d", d, e, err, want.exponent)
		}
		for i, v := range got.floats() {
			if v != want.values[i] {
				t.Errorf("%v: element %d is %v, want %v", d, i, v, want.values[i])
			}
		}
	}
	// A little larger, the exponent of its own would be another.
	rounded := filled(1.0)
	if own := rounded.Exponent(weights.I8); own != 6 {
		t.Errorf("exponent %d", own)
	}
	if got, err := rounded.Fit(weights.I8, 7); err != nil || got.floats()[0] != 127 {
		t.Errorf("%v, %v", got.floats(), err)
	}
}

func TestFitRefuses(t *testing.T) {
	if _, err := filled(1, float32(math.NaN())).Fit(weights.I8, 0); !errors.Is(err, ErrNotFinite) {
		t.Error(err)
	}
	if _, err := filled(1e30).Fit(weights.F16, 0); err == nil || !strings.Contains(err.Error(), "exceeds the range of F16") {
		t.Error(err)
	}
	if e := filled(1e-38, 0).Exponent(weights.F8E4M3); e != 100 {
		t.Errorf("exponent %d", e)
	}
	same := filled(3)
	if got, err := same.Fit(weights.BF16, 5); err != nil || &got.Data[0] != &same.Data[0] {
		t.Error("a matrix of the type itself was changed")
	}
}
