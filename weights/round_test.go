package weights

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// lawOfRounding checks the laws of rounding one value.
func lawOfRounding(t rapid.TB, f Format, b uint32, bits int, truncate bool) {
	t.Helper()
	r := f.Round(b, bits, truncate)
	bad := func(what string) {
		t.Fatalf("%s %d bits, truncate %v: %#x became %#x: %s", f.DType, bits, truncate, b, r, what)
	}
	if !f.Finite(b) {
		if r != b {
			bad("NaN or infinity changed")
		}
		return
	}
	v, w := float64(f.Value(b)), float64(f.Value(r))
	unit := float64(int(1) << bits)
	if f.IsFloat() {
		unit = math.Ldexp(unit, max(int(b&f.ExpMask()>>f.MantBits), 1)-f.Bias-f.MantBits)
	}
	saturated := math.Abs(v)+unit > float64(f.Value(f.MaxFinite))
	switch {
	case !f.Finite(r):
		bad("NaN or infinity made")
	case r&(1<<bits-1) != 0:
		bad("low bits left")
	case f.Round(r, bits, truncate) != r:
		bad("not idempotent")
	case truncate && (math.Abs(w) > math.Abs(v) || math.Abs(w-v) >= unit):
		bad("not truncated")
	case !truncate && math.Abs(w-v) > unit/2 && !saturated:
		bad("more than half a unit away")
	case math.Abs(w-v) >= unit:
		bad("a unit away")
	case f.IsFloat() && f.Round(b^f.SignMask(), bits, truncate) != r^f.SignMask():
		bad("not odd")
	case !f.IsFloat() && !saturated && int8(f.Round(uint32(uint8(-int8(b))), bits, truncate)) != -int8(r):
		bad("not odd")
	case bits == 0 && r != b:
		bad("changed by nothing")
	}
}

func TestRoundLaws(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and nothing in it is shared by goroutines")
	}
	for _, d := range []DType{BF16, F16, F8E4M3, F8E5M2, I8} {
		f := formatOf(d)
		for bits := range f.MantBits + 1 {
			for b := range uint32(1) << f.Bits {
				lawOfRounding(t, f, b, bits, false)
				lawOfRounding(t, f, b, bits, true)
			}
		}
	}
}

func TestRoundTiesGoToEven(t *testing.T) {
	f := formatOf(BF16)
	for b, want := range map[uint32]uint32{0x3F82: 0x3F80, 0x3F86: 0x3F88, 0x3F83: 0x3F84, 0x3FFF: 0x4000, 0x7F7F: 0x7F7C} {
		if got := f.Round(b, 2, false); got != want {
			t.Errorf("%#x became %#x, want %#x", b, got, want)
		}
	}
}

func TestRoundF32(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bits, truncate := rapid.IntRange(0, 23).Draw(t, "bits"), rapid.Bool().Draw(t, "truncate")
		lawOfRounding(t, formatOf(F32), rapid.Uint32().Draw(t, "element"), bits, truncate)
	})
}

// TestZeroable: rounding away Zeroable bits keeps the value 64.
func TestZeroable(t *testing.T) {
	for _, f := range formats {
		b := f.Round(f.FromValue(64), f.Zeroable(), false)
		if v := f.Value(b); v != 64 {
			t.Errorf("%s: 64 became %g", f.DType, v)
		}
	}
}

// TestEncodeEqualsFromValue compares both for every element, its neighbours in float32, the ties between two elements, and random
// values of float32. The short test takes every 61st element.
func TestEncodeEqualsFromValue(t *testing.T) {
	step := uint32(1)
	if testing.Short() {
		step = 61
	}
	check := func(t rapid.TB, f Format, v float32) {
		t.Helper()
		data := []byte{0xA5, 0xA5, 0xA5, 0xA5, 0xA5}
		f.Encode(data, []float32{v})
		if got, want := f.Elem(data, 0), f.FromValue(v); got != want {
			t.Fatalf("%s: %g (%#x) became %#x, want %#x", f.DType, v, math.Float32bits(v), got, want)
		}
		if data[f.Bits/8] != 0xA5 {
			t.Fatalf("%s: wrote beyond the element", f.DType)
		}
	}
	for _, f := range formats {
		for i := uint32(0); i < 1<<16; i += step {
			b := i << (max(f.Bits, 16) - 16)
			v, next := f.Value(b), f.Value(b+1)
			for _, v := range []float32{v, v/2 + next/2} {
				for _, ulp := range []uint32{0, 1, 2, 16} {
					check(t, f, math.Float32frombits(math.Float32bits(v)+ulp-1))
				}
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SampledFrom([]DType{F32, F16, BF16, F8E4M3, F8E5M2, I8}).Draw(t, "type")
		check(t, formatOf(d), math.Float32frombits(rapid.Uint32().Draw(t, "bits")))
	})
}

func formatOf(d DType) Format {
	f, _ := d.Format()
	return f
}
