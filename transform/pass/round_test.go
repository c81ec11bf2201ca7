package pass_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/weights"
)

// modes returns all roundings of a format.
func modes(f weights.Format) []pass.Bits {
	var list []pass.Bits
	for bits := range f.MantBits + 1 {
		list = append(list, pass.Bits{bits, false}, pass.Bits{bits, true})
	}
	return list
}

// patterns returns every bit pattern of a format of at most 16 bits.
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
			// Every offset in a word, so that each pattern is in each lane.
			for skip := range 8 / (f.Bits / 8) {
				data := patterns(f)[skip*f.Bits/8:]
				pass.RoundBlock(f, data, bits)
				for i := range len(data) / (f.Bits / 8) {
					if want := f.Round(uint32(i+skip), bits.Zeroed, bits.Truncate); f.Elem(data, i) != want {
						t.Fatalf("%s %+v: %#x became %#x, want %#x", d, bits, i+skip, f.Elem(data, i), want)
					}
				}
			}
		}
	}
}

func FuzzRoundF32(f *testing.F) {
	for _, v := range []float32{0, 1, -1.5, math.MaxFloat32, math.SmallestNonzeroFloat32, float32(math.Inf(1)), float32(math.NaN())} {
		f.Add(math.Float32bits(v), uint8(12), false)
	}
	form := formatOf(weights.F32)
	f.Fuzz(func(t *testing.T, b uint32, zeroed uint8, truncate bool) {
		bits := pass.Bits{int(zeroed % 24), truncate}
		data := binary.LittleEndian.AppendUint32(nil, b)
		pass.RoundBlock(form, data, bits)
		if got, want := binary.LittleEndian.Uint32(data), form.Round(b, bits.Zeroed, bits.Truncate); got != want {
			t.Fatalf("%#x became %#x, want %#x", b, got, want)
		}
	})
}

func TestRoundWritesNowhereElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := formatOf(rapid.SampledFrom(testmodel.DTypes).Draw(t, "type"))
		size := f.Bits / 8
		n := rapid.IntRange(0, 40).Draw(t, "elements")
		before, after := rapid.IntRange(0, 16).Draw(t, "before"), rapid.IntRange(0, 16).Draw(t, "after")
		data := testmodel.DrawBytes(t, before+n*size+after, "data")
		want := bytes.Clone(data)
		bits := pass.Bits{rapid.IntRange(0, f.MantBits).Draw(t, "zeroed"), rapid.Bool().Draw(t, "truncate")}
		for i := range n {
			f.SetElem(want[before:], i, f.Round(f.Elem(want[before:], i), bits.Zeroed, bits.Truncate))
		}
		pass.RoundBlock(f, data[before:before+n*size], bits)
		if !bytes.Equal(data, want) {
			t.Fatalf("%x, want %x", data, want)
		}
	})
}
