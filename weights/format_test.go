package weights

import (
	"encoding/binary"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/x448/float16"
	"pgregory.net/rapid"
)

// form returns d's format, which must exist.
func form(t testing.TB, d DType) Format {
	t.Helper()
	f, ok := d.Format()
	if !ok {
		t.Fatalf("no format for %s", d)
	}
	return f
}

func TestFormats(t *testing.T) {
	transformed := map[DType]bool{BF16: true, F16: true, F32: true, F8E4M3: true, F8E5M2: true, I8: true}
	for d := Bool; d <= U64; d++ {
		f, ok := d.Format()
		if ok != transformed[d] {
			t.Errorf("%s is transformed: %v", d, ok)
		}
		if !ok {
			continue
		}
		all := uint64(1)<<f.Bits - 1
		if f.Bits != d.Bits() || uint64(f.SignMask()|f.ExpMask()|f.MantMask()) != all ||
			f.SignMask()&f.ExpMask()|f.ExpMask()&f.MantMask()|f.SignMask()&f.MantMask() != 0 {
			t.Errorf("%s: masks %x, %x and %x do not part %d bits", d, f.SignMask(), f.ExpMask(), f.MantMask(), d.Bits())
		}
	}
}

// small are the types with so few bit patterns that tests try all of them.
var small = []DType{BF16, F16, F8E4M3, F8E5M2, I8}

func TestEveryPatternReturns(t *testing.T) {
	for _, d := range small {
		f := form(t, d)
		for b := range uint32(1) << f.Bits {
			v := f.Value(b)
			back := f.FromValue(v)
			special := math.IsNaN(float64(v)) || math.IsInf(float64(v), 0)
			switch {
			case f.Finite(b) == special:
				t.Errorf("%s %#x: value %v, finite %v", d, b, v, f.Finite(b))
			case !special && back != b:
				t.Errorf("%s %#x: value %v comes back as %#x", d, b, v, back)
			case math.IsInf(float64(v), 0) && back != b&f.SignMask()|f.MaxFinite:
				t.Errorf("%s %#x: %v becomes %#x, want the largest finite", d, b, v, back)
			case math.IsNaN(float64(v)) && (f.Finite(back) || !math.IsNaN(float64(f.Value(back)))):
				t.Errorf("%s %#x: NaN becomes %#x", d, b, back)
			}
			smallest := math.Ldexp(1, 1-f.Bias)
			if want := f.IsFloat() && v != 0 && math.Abs(float64(v)) < smallest; f.Subnormal(b) != want {
				t.Errorf("%s %#x: value %v, subnormal %v", d, b, v, f.Subnormal(b))
			}
		}
	}
}

// The 8-bit floats by their definition (OCP 8-bit floating point, 1.0): E4M3 has no infinity and
// one NaN per sign, E5M2 is as IEEE 754.
func TestFloat8Definition(t *testing.T) {
	for _, test := range []struct {
		d              DType
		exp, mant      int
		bias           int
		special        func(magnitude uint32) (v float64, ok bool)
		largest, least float64
	}{
		{F8E4M3, 4, 3, 7, func(m uint32) (float64, bool) { return math.NaN(), m == 0x7f }, 448, math.Ldexp(1, -9)},
		{F8E5M2, 5, 2, 15, func(m uint32) (float64, bool) {
			if m == 0x7c {
				return math.Inf(1), true
			}
			return math.NaN(), m > 0x7c
		}, 57344, math.Ldexp(1, -16)},
	} {
		f := form(t, test.d)
		for b := range uint32(256) {
			m := b & 0x7f
			e, frac := int(m>>test.mant), float64(m&(1<<test.mant-1))/float64(int(1)<<test.mant)
			want := math.Ldexp(1+frac, e-test.bias)
			if e == 0 {
				want = math.Ldexp(frac, 1-test.bias)
			}
			if v, ok := test.special(m); ok {
				want = v
			}
			if b >= 128 {
				want = -want
			}
			if got := f.Value(b); math.Float32bits(got) != math.Float32bits(float32(want)) && (got == got || want == want) {
				t.Errorf("%s %#02x is %v, want %v", test.d, b, got, want)
			}
		}
		if f.Value(f.MaxFinite) != float32(test.largest) || f.Value(1) != float32(test.least) {
			t.Errorf("%s: from %v to %v, want %v to %v", test.d, f.Value(1), f.Value(f.MaxFinite), test.least, test.largest)
		}
	}
}

func TestFloat16AgainstReference(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and nothing in it is shared by goroutines")
	}
	f := form(t, F16)
	for b := range uint32(1 << 16) {
		want := float16.Frombits(uint16(b)).Float32()
		if got := f.Value(b); math.Float32bits(got) != math.Float32bits(want) {
			t.Errorf("%#04x is %v, want %v", b, got, want)
		}
		// Rounding changes at the halfway points beside each value, so these points and their neighbours are tested.
		next := float16.Frombits(uint16(b + 1)).Float32()
		for _, v := range []float32{want, want + (next-want)/2, want + (next-want)/4} {
			for _, near := range []float32{v, math.Nextafter32(v, -math.MaxFloat32), math.Nextafter32(v, math.MaxFloat32)} {
				wantAsReference(t, f, near)
			}
		}
	}
	// Every exponent of float32, with mantissas spread over the range.
	for i := range uint32(1 << 20) {
		wantAsReference(t, f, math.Float32frombits(i*4093))
	}
}

// wantAsReference compares with the reference. The reference rounds to infinity where this package rounds to the largest finite
// value, and keeps a NaN's payload.
func wantAsReference(t *testing.T, f Format, v float32) {
	t.Helper()
	got, want := f.FromValue(v), float16.Fromfloat32(v)
	switch {
	case want.IsNaN():
		if !float16.Frombits(uint16(got)).IsNaN() || got>>15 != uint32(want)>>15 {
			t.Errorf("NaN %#x became %#04x", math.Float32bits(v), got)
		}
	case want.IsInf(0):
		if got != uint32(want)&0x8000|0x7bff {
			t.Errorf("%v became %#04x, want the largest finite value", v, got)
		}
	case got != uint32(want):
		t.Errorf("%v became %#04x, want %#04x", v, got, uint32(want))
	}
}

// nearest rounds by the definition, in rational arithmetic. It returns the finite element closest to v, and the even one of
// two equally close elements.
func nearest(f Format, v float32) uint32 {
	exact := new(big.Rat).SetFloat64(float64(v))
	sign := math.Float32bits(v) >> 31 << (f.Bits - 1)
	lo, hi := uint32(0), f.MaxFinite // magnitudes grow with their bits
	magnitude := func(b uint32) *big.Rat { return new(big.Rat).SetFloat64(float64(f.Value(b))) }
	exact.Abs(exact)
	for lo < hi { // the largest one that is not above v
		mid := (lo + hi + 1) / 2
		if magnitude(mid).Cmp(exact) <= 0 {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	if lo == f.MaxFinite {
		return sign | lo
	}
	below := new(big.Rat).Sub(exact, magnitude(lo))
	above := new(big.Rat).Sub(magnitude(lo+1), exact)
	if c := below.Cmp(above); c > 0 || c == 0 && lo%2 == 1 {
		lo++
	}
	return sign | lo
}

// midpoint draws a float32 at the middle of two neighbouring elements, or a few units beside it.
func midpoint(t *rapid.T, f Format) float32 {
	b := rapid.Uint32Range(0, f.MaxFinite-1).Draw(t, "element")
	mid := float32((float64(f.Value(b)) + float64(f.Value(b+1))) / 2)
	v := math.Float32frombits(math.Float32bits(mid) + uint32(rapid.IntRange(-2, 2).Draw(t, "beside")))
	if mid == 0 { // a step below would leave the range
		v = mid
	}
	if rapid.Bool().Draw(t, "negative") {
		v = -v
	}
	return v
}

func TestRoundsToNearestEven(t *testing.T) {
	for _, d := range []DType{BF16, F16, F8E4M3, F8E5M2} {
		f := form(t, d)
		t.Run(d.String(), rapid.MakeCheck(func(t *rapid.T) {
			v := rapid.Float32().Draw(t, "v")
			if rapid.Bool().Draw(t, "near a midpoint") {
				v = midpoint(t, f)
			}
			if got, want := f.FromValue(v), nearest(f, v); got != want {
				t.Fatalf("%v became %#x (%v), want %#x (%v)", v, got, f.Value(got), want, f.Value(want))
			}
		}))
	}
}

// Every halfway point between neighbours rounds to the even neighbour. A value one step beside it rounds to the closer
// neighbour.
func TestTies(t *testing.T) {
	for _, d := range []DType{BF16, F16, F8E4M3, F8E5M2} {
		f := form(t, d)
		for b := range f.MaxFinite {
			mid := float32((float64(f.Value(b)) + float64(f.Value(b+1))) / 2)
			for _, test := range []struct {
				v    float32
				want uint32
			}{
				{mid, b + b&1},
				{math.Nextafter32(mid, 0), b},
				{math.Nextafter32(mid, math.MaxFloat32), b + 1},
			} {
				if got := f.FromValue(test.v); got != test.want {
					t.Fatalf("%s: %v became %#x, want %#x", d, test.v, got, test.want)
				}
				if got := f.FromValue(-test.v); got != test.want|f.SignMask() {
					t.Fatalf("%s: %v became %#x, want %#x", d, -test.v, got, test.want|f.SignMask())
				}
			}
		}
	}
}

func TestSpecialValues(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	negative := float32(math.Copysign(0, -1))
	for _, test := range []struct {
		d    DType
		v    float32
		want uint32
	}{
		{BF16, inf, 0x7f7f}, {BF16, -inf, 0xff7f}, {BF16, math.MaxFloat32, 0x7f7f}, {BF16, math.Float32frombits(0x7f7f8000), 0x7f7f}, {BF16, negative, 0x8000}, {BF16, nan, 0x7fff},
		{F16, inf, 0x7bff}, {F16, -inf, 0xfbff}, {F16, 65520, 0x7bff}, {F16, -1e9, 0xfbff}, {F16, negative, 0x8000}, {F16, nan, 0x7fff},
		{F16, math.SmallestNonzeroFloat32, 0}, {F16, -math.SmallestNonzeroFloat32, 0x8000},
		{F8E4M3, inf, 0x7e}, {F8E4M3, -inf, 0xfe}, {F8E4M3, 464, 0x7e}, {F8E4M3, 1e9, 0x7e}, {F8E4M3, negative, 0x80}, {F8E4M3, nan, 0x7f},
		{F8E5M2, inf, 0x7b}, {F8E5M2, -inf, 0xfb}, {F8E5M2, 61440, 0x7b}, {F8E5M2, negative, 0x80}, {F8E5M2, nan, 0x7f},
		{F32, inf, 0x7f7fffff}, {F32, -inf, 0xff7fffff}, {F32, negative, 0x80000000},
		{F32, math.Float32frombits(0x7fc12345), 0x7fc12345},
		{I8, 127.5, 127}, {I8, 1e9, 127}, {I8, inf, 127}, {I8, -128.5, 0x80}, {I8, -inf, 0x80}, {I8, nan, 0}, {I8, negative, 0},
		{I8, 0.5, 0}, {I8, 1.5, 2}, {I8, 2.5, 2}, {I8, -0.5, 0}, {I8, -1.5, 0xfe}, {I8, 2.5000002, 3},
	} {
		if got := form(t, test.d).FromValue(test.v); got != test.want {
			t.Errorf("%s: %v became %#x, want %#x", test.d, test.v, got, test.want)
		}
	}
}

func TestFloat32IsItself(t *testing.T) {
	f := form(t, F32)
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.Uint32().Draw(t, "bits")
		v := f.Value(b)
		if math.Float32bits(v) != b {
			t.Fatalf("%#x has the value %#x", b, math.Float32bits(v))
		}
		if f.Finite(b) == (math.IsNaN(float64(v)) || math.IsInf(float64(v), 0)) {
			t.Fatalf("%v: finite %v", v, f.Finite(b))
		}
		if !math.IsInf(float64(v), 0) && f.FromValue(v) != b {
			t.Fatalf("%#x became %#x", b, f.FromValue(v))
		}
	})
}

func TestInt8IsTwosComplement(t *testing.T) {
	f := form(t, I8)
	for b := range uint32(256) {
		if f.Value(b) != float32(int8(b)) || !f.Finite(b) || f.Subnormal(b) {
			t.Errorf("%#02x: value %v, finite %v, subnormal %v", b, f.Value(b), f.Finite(b), f.Subnormal(b))
		}
	}
}

// Elements are little-endian, one after the other. Writing an element does not change its neighbours.
func TestElements(t *testing.T) {
	for _, d := range append([]DType{F32}, small...) {
		f := form(t, d)
		t.Run(d.String(), rapid.MakeCheck(func(t *rapid.T) {
			size := f.Bits / 8
			n := rapid.IntRange(1, 9).Draw(t, "n")
			data := rapid.SliceOfN(rapid.Byte(), n*size, n*size).Draw(t, "data")
			values := make([]float32, n)
			f.Decode(values, data)
			for i := range n {
				var le [4]byte
				copy(le[:], data[i*size:(i+1)*size])
				b := f.Elem(data, i)
				if b != binary.LittleEndian.Uint32(le[:]) {
					t.Fatalf("element %d of %x is %#x", i, data, b)
				}
				if math.Float32bits(values[i]) != math.Float32bits(f.Value(b)) && f.Finite(b) {
					t.Fatalf("element %d of %x decodes to %v, is %v", i, data, values[i], f.Value(b))
				}
			}
			i := rapid.IntRange(0, n-1).Draw(t, "i")
			b := rapid.Uint32Max(uint32(uint64(1)<<f.Bits-1)).Draw(t, "b")
			changed := append([]byte{}, data...)
			f.SetElem(changed, i, b)
			for j := range n {
				want := f.Elem(data, j)
				if j == i {
					want = b
				}
				if got := f.Elem(changed, j); got != want {
					t.Fatalf("element %d is %#x after element %d was set, want %#x", j, got, i, want)
				}
			}
		}))
	}
}

func TestTorchNames(t *testing.T) {
	for name, want := range map[string]DType{"bfloat16": BF16, "torch.float16": F16, "half": F16, "float": F32,
		"float32": F32, "float64": F64, "float8_e4m3fn": F8E4M3, "float8_e5m2": F8E5M2, "torch.int8": I8} {
		if d, ok := ParseTorch(name); !ok || d != want {
			t.Errorf("%s: %v, %v", name, d, ok)
		}
	}
	for _, name := range []string{"", "torch.", "BF16", "float16 half", "int64", "uint8"} {
		if d, ok := ParseTorch(name); ok {
			t.Errorf("%q: %v", name, d)
		}
	}
	for _, f := range Formats() { // a model may be stored in each of them
		if d, ok := ParseTorch(f.DType.Torch()); !ok || d != f.DType {
			t.Errorf("%s: called %q, which is read as %v", f.DType, f.DType.Torch(), d)
		}
	}
}

func TestListOfFormats(t *testing.T) {
	for _, f := range Formats() {
		if got, ok := f.DType.Format(); !ok || got != f {
			t.Errorf("%s: %+v, want %+v", f.DType, got, f)
		}
		inf := math.IsInf(float64(f.Value(f.MaxFinite+1)), 1)
		if f.HasInf() != inf {
			t.Errorf("%s: the pattern after the largest finite one is %v", f.DType, f.Value(f.MaxFinite+1))
		}
	}
	for _, d := range []DType{0, U8, F8E8M0, F64, U64, U64 + 1} {
		if _, ok := d.Format(); ok {
			t.Errorf("%s has a format", d)
		}
	}
	got := FormatNames("and")
	if !strings.HasPrefix(got, "BF16, F16, F32, ") || !strings.HasSuffix(got, " and I8") || strings.Count(got, ",") != len(Formats())-2 {
		t.Errorf("the formats are listed as %s", got)
	}
}
