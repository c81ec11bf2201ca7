package transform

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
	"pgregory.net/rapid"
)

// modes are all roundings of a format.
func modes(f weights.Format) []Bits {
	var list []Bits
	for bits := range f.MantBits + 1 {
		list = append(list, Bits{bits, false}, Bits{bits, true})
	}
	return list
}

// patterns is every bit pattern of a format of at most 16 bits.
func patterns(f weights.Format) []byte {
	data := make([]byte, f.Bits/8<<f.Bits)
	for b := range 1 << f.Bits {
		f.SetElem(data, b, uint32(b))
	}
	return data
}

func TestRoundKernelEqualsPlainTwin(t *testing.T) {
	for _, d := range []weights.DType{weights.BF16, weights.F16, weights.F8E4M3, weights.F8E5M2, weights.I8} {
		f := formatOf(d)
		for _, bits := range modes(f) {
			// At every offset in a word, so that each pattern stands in each lane.
			for skip := range 8 / (f.Bits / 8) {
				data := patterns(f)[skip*f.Bits/8:]
				roundBlock(f, data, bits)
				for i := range len(data) / (f.Bits / 8) {
					if want := roundElem(f, uint32(i+skip), bits); f.Elem(data, i) != want {
						t.Fatalf("%s %+v: %#x became %#x, want %#x", d, bits, i+skip, f.Elem(data, i), want)
					}
				}
			}
		}
	}
}

// lawOfRounding is what every rounding of one value keeps.
func lawOfRounding(t tb, f weights.Format, b uint32, bits Bits) {
	t.Helper()
	r := roundElem(f, b, bits)
	bad := func(what string) { t.Fatalf("%s %+v: %#x became %#x: %s", f.DType, bits, b, r, what) }
	if !f.Finite(b) {
		if r != b {
			bad("NaN or infinity changed")
		}
		return
	}
	v, w := float64(f.Value(b)), float64(f.Value(r))
	unit := float64(int(1) << bits.Zeroed)
	if f.IsFloat() {
		unit = math.Ldexp(unit, max(int(b&f.ExpMask()>>f.MantBits), 1)-f.Bias-f.MantBits)
	}
	saturated := math.Abs(v)+unit > float64(f.Value(f.MaxFinite))
	switch {
	case !f.Finite(r):
		bad("NaN or infinity made")
	case r&(1<<bits.Zeroed-1) != 0:
		bad("low bits left")
	case roundElem(f, r, bits) != r:
		bad("not idempotent")
	case bits.Truncate && (math.Abs(w) > math.Abs(v) || math.Abs(w-v) >= unit):
		bad("not truncated")
	case !bits.Truncate && math.Abs(w-v) > unit/2 && !saturated:
		bad("more than half a unit away")
	case math.Abs(w-v) >= unit:
		bad("a unit away")
	case f.IsFloat() && roundElem(f, b^f.SignMask(), bits) != r^f.SignMask():
		bad("not odd")
	case !f.IsFloat() && !saturated && int8(roundElem(f, uint32(uint8(-int8(b))), bits)) != -int8(r):
		bad("not odd")
	case bits.Zeroed == 0 && r != b:
		bad("changed by nothing")
	}
}

func TestRoundLaws(t *testing.T) {
	for _, d := range []weights.DType{weights.BF16, weights.F16, weights.F8E4M3, weights.F8E5M2, weights.I8} {
		f := formatOf(d)
		for _, bits := range modes(f) {
			for b := range uint32(1) << f.Bits {
				lawOfRounding(t, f, b, bits)
			}
		}
	}
}

func TestRoundTiesGoToEven(t *testing.T) {
	f := formatOf(weights.BF16)
	for b, want := range map[uint32]uint32{0x3F82: 0x3F80, 0x3F86: 0x3F88, 0x3F83: 0x3F84, 0x3FFF: 0x4000, 0x7F7F: 0x7F7C} {
		if got := roundElem(f, b, Bits{Zeroed: 2}); got != want {
			t.Errorf("%#x became %#x, want %#x", b, got, want)
		}
	}
}

func FuzzRoundF32(f *testing.F) {
	for _, v := range []float32{0, 1, -1.5, math.MaxFloat32, math.SmallestNonzeroFloat32, float32(math.Inf(1)), float32(math.NaN())} {
		f.Add(math.Float32bits(v), uint8(12), false)
	}
	form := formatOf(weights.F32)
	f.Fuzz(func(t *testing.T, b uint32, zeroed uint8, truncate bool) {
		bits := Bits{int(zeroed % 24), truncate}
		lawOfRounding(t, form, b, bits)
		data := binary.LittleEndian.AppendUint32(nil, b)
		roundBlock(form, data, bits)
		if got, want := binary.LittleEndian.Uint32(data), roundElem(form, b, bits); got != want {
			t.Fatalf("%#x became %#x, want %#x", b, got, want)
		}
	})
}

func TestRoundF32(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bits := Bits{rapid.IntRange(0, 23).Draw(t, "zeroed"), rapid.Bool().Draw(t, "truncate")}
		lawOfRounding(t, formatOf(weights.F32), rapid.Uint32().Draw(t, "bits"), bits)
	})
}

func TestRoundWritesNowhereElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := formatOf(rapid.SampledFrom(kinds).Draw(t, "type"))
		size := f.Bits / 8
		n := rapid.IntRange(0, 40).Draw(t, "elements")
		before, after := rapid.IntRange(0, 16).Draw(t, "before"), rapid.IntRange(0, 16).Draw(t, "after")
		data := drawBytes(t, before+n*size+after, "data")
		want := bytes.Clone(data)
		bits := Bits{rapid.IntRange(0, f.MantBits).Draw(t, "zeroed"), rapid.Bool().Draw(t, "truncate")}
		for i := range n {
			f.SetElem(want[before:], i, roundElem(f, f.Elem(want[before:], i), bits))
		}
		roundBlock(f, data[before:before+n*size], bits)
		if !bytes.Equal(data, want) {
			t.Fatalf("%x, want %x", data, want)
		}
	})
}
