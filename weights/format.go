package weights

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"github.com/x448/float16"
)

// Format describes the bits of one element of a type whose values can be transformed; see [Formats]. Methods take an element as
// the low Bits bits of a uint32.
type Format struct {
	DType    DType
	Bits     int // whole element
	ExpBits  int // 0 for I8
	MantBits int // stored mantissa bits; for I8 the seven bits below the sign
	Bias     int // exponent bias
	// MaxFinite is the largest magnitude (bits without sign) that is neither infinity nor NaN.
	MaxFinite uint32
}

// formats are the types whose values can be transformed, in the order in which messages list them.
var formats = []Format{
	{BF16, 16, 8, 7, 127, 0x7F7F},
	{F16, 16, 5, 10, 15, 0x7BFF},
	{F32, 32, 8, 23, 127, 0x7F7FFFFF},
	{F8E4M3, 8, 4, 3, 7, 0x7E}, // no infinity, one NaN
	{F8E5M2, 8, 5, 2, 15, 0x7B},
	{I8, 8, 0, 7, 0, 0x7F},
}

// byDType has the formats by type; a zero Format for types whose values are not transformed.
var byDType = func() (all [len(dtypes)]Format) {
	for _, f := range formats {
		all[f.DType] = f
	}
	return all
}()

// Formats lists the formats of all types whose values can be transformed.
func Formats() []Format { return slices.Clone(formats) }

// FormatNames lists the types of [Formats] for messages: "BF16, F16, F32, F8_E4M3, F8_E5M2 and I8", with word in place of
// "and".
func FormatNames(word string) string {
	var names []string
	for _, f := range formats {
		names = append(names, f.DType.String())
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " " + word + " " + names[last]
}

// Format returns the layout of d's bits. The bool is false if lowtoggle does not transform values of this type; tensors of such
// types are copied unchanged.
func (d DType) Format() (Format, bool) {
	if int(d) >= len(byDType) {
		return Format{}, false
	}
	f := byDType[d]
	return f, f.DType == d && d > 0
}

// IsFloat reports whether the elements are sign-magnitude floating point (all formats but I8).
func (f Format) IsFloat() bool { return f.ExpBits > 0 }

// SignMask has the sign bit set.
func (f Format) SignMask() uint32 { return 1 << (f.Bits - 1) }

// ExpMask has the exponent bits set; 0 for I8.
func (f Format) ExpMask() uint32 { return (1<<f.ExpBits - 1) << f.MantBits }

// MantMask has the mantissa bits set.
func (f Format) MantMask() uint32 { return 1<<f.MantBits - 1 }

// HasInf reports whether the format can represent infinity.
func (f Format) HasInf() bool { return f.IsFloat() && f.MaxFinite+1 == f.ExpMask() }

// Finite reports whether b is neither NaN nor infinite. Every I8 is finite.
func (f Format) Finite(b uint32) bool { return !f.IsFloat() || b&^f.SignMask() <= f.MaxFinite }

// Subnormal reports whether b is a nonzero value below the smallest normal one.
func (f Format) Subnormal(b uint32) bool {
	return f.IsFloat() && b&f.ExpMask() == 0 && b&f.MantMask() != 0
}

// Value returns the number that b represents. Every value of every format is exact in float32.
func (f Format) Value(b uint32) float32 {
	switch f.DType {
	case F32:
		return math.Float32frombits(b)
	case BF16:
		return math.Float32frombits(b << 16)
	case F16:
		return float16.Frombits(uint16(b)).Float32()
	case I8:
		return float32(int8(b))
	}
	if v := values8[f.DType]; v != nil {
		return v[uint8(b)]
	}
	return f.value(b)
}

// values8 has the values of floats of 8 bits.
var values8 = func() (all [len(dtypes)]*[256]float32) {
	for _, f := range formats {
		if f.Bits == 8 && f.IsFloat() {
			all[f.DType] = new([256]float32)
			for b := range all[f.DType] {
				all[f.DType][b] = f.value(uint32(b))
			}
		}
	}
	return all
}()

// value computes Value for the table of an 8-bit float.
func (f Format) value(b uint32) float32 {
	if !f.Finite(b) {
		if f.HasInf() && b&f.MantMask() == 0 {
			return float32(math.Inf(1 - 2*int(b>>(f.Bits-1))))
		}
		return float32(math.NaN())
	}
	exp, mant := int(b&f.ExpMask())>>f.MantBits, int(b&f.MantMask())
	if exp == 0 {
		exp = 1
	} else {
		mant |= 1 << f.MantBits
	}
	v := math.Ldexp(float64(mant), exp-f.Bias-f.MantBits)
	if b&f.SignMask() != 0 {
		v = -v
	}
	return float32(v)
}

// FromValue rounds v to the nearest representable element, ties to even. Values beyond the
// largest finite magnitude become that magnitude; NaN becomes a NaN (0 in I8).
func (f Format) FromValue(v float32) uint32 {
	if f.DType == F32 {
		if math.IsInf(float64(v), 0) {
			return math.Float32bits(v)&f.SignMask() | f.MaxFinite
		}
		return math.Float32bits(v)
	}
	if f.DType == I8 {
		if v != v {
			return 0
		}
		return uint32(uint8(int8(math.RoundToEven(math.Max(-128, math.Min(127, float64(v)))))))
	}
	if f.DType == BF16 {
		return bf16(math.Float32bits(v))
	}
	sign := math.Float32bits(v) >> 31 << (f.Bits - 1)
	if v != v {
		return sign | f.ExpMask() | f.MantMask()
	}
	a := math.Abs(float64(v))
	if a == 0 {
		return sign
	}
	// The spacing of representable values at a; below the smallest normal it stays constant.
	_, e := math.Frexp(a)
	e = max(e-1, 1-f.Bias)
	q := math.RoundToEven(math.Ldexp(a, f.MantBits-e))
	// q is the distance from the binade's start in spacings. If rounding reached the next binade, the addition carries into
	// the exponent.
	start := uint64(e+f.Bias-1) << f.MantBits
	return sign | uint32(min(start+uint64(min(q, 1<<62)), uint64(f.MaxFinite)))
}

// bf16 rounds the bits of a float32 to BF16, ties to even. It adds just below half of the last kept place. The addition
// carries into the exponent if rounding reaches the next binade.
func bf16(b uint32) uint32 {
	sign, mag := b>>16&0x8000, b&0x7FFFFFFF
	switch {
	case mag > 0x7F800000: // NaN
		return sign | 0x7FFF
	case mag >= 0x7F7F8000: // would round to infinity
		return sign | 0x7F7F
	}
	return sign | (mag+0x7FFF+mag>>16&1)>>16
}

// Elem returns the bits of element i of data.
func (f Format) Elem(data []byte, i int) uint32 {
	switch f.Bits {
	case 8:
		return uint32(data[i])
	case 16:
		return uint32(binary.LittleEndian.Uint16(data[2*i:]))
	default:
		return binary.LittleEndian.Uint32(data[4*i:])
	}
}

// SetElem writes the bits b to element i of data.
func (f Format) SetElem(data []byte, i int, b uint32) {
	switch f.Bits {
	case 8:
		data[i] = byte(b)
	case 16:
		binary.LittleEndian.PutUint16(data[2*i:], uint16(b))
	default:
		binary.LittleEndian.PutUint32(data[4*i:], b)
	}
}

// Decode writes the values of len(dst) elements of data into dst.
func (f Format) Decode(dst []float32, data []byte) {
	switch f.DType {
	case BF16:
		data = data[:2*len(dst)]
		for i := range dst {
			dst[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(data[2*i:])) << 16)
		}
	case F32:
		data = data[:4*len(dst)]
		for i := range dst {
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
		}
	default:
		for i := range dst {
			dst[i] = f.Value(f.Elem(data, i))
		}
	}
}
