package quant

import (
	"math"

	"github.com/lowtoggle/lowtoggle/weights"
)

// byteScales has the values of scales that take one byte.
var byteScales = map[weights.DType]*[256]float32{
	weights.U8:     (*[256]float32)(powerValues),
	weights.F8E8M0: (*[256]float32)(powerValues),
	weights.F8E4M3: (*[256]float32)(fp8Values[weights.F8E4M3]),
}

// decodeFloats reads len(dst) elements of a type of scales.
func decodeFloats(dst []float32, data []byte, d weights.DType) {
	if values := byteScales[d]; values != nil {
		data = data[:len(dst)]
		for i, b := range data {
			dst[i] = values[b]
		}
		return
	}
	if d == weights.F16 {
		data = data[:2*len(dst)]
		for i := range dst {
			dst[i] = half(little.Uint16(data[2*i:]))
		}
		return
	}
	f, _ := d.Format()
	f.Decode(dst, data)
}

// half returns the value of an F16.
func half(h uint16) float32 {
	v := uint32(h&0x7FFF) << 13
	if h&0x7C00 == 0x7C00 {
		v += 112 << 23 // infinity or NaN
	} else {
		return math.Float32frombits(math.Float32bits(math.Float32frombits(v)*0x1p112) | uint32(h&0x8000)<<16)
	}
	return math.Float32frombits(v + 112<<23 | uint32(h&0x8000)<<16)
}

// encodeFloats writes values as elements of a type of scales. It returns the index of a value that the type does not hold
// exactly; −1 if there is none.
func encodeFloats(dst []byte, values []float32, d weights.DType) (bad int) {
	bad = -1
	switch d {
	case weights.F32:
		for i, v := range values {
			little.PutUint32(dst[4*i:], math.Float32bits(v))
		}
	case weights.BF16:
		for i, v := range values {
			b := math.Float32bits(v)
			little.PutUint16(dst[2*i:], uint16(b>>16))
			if b<<16 != 0 {
				bad = i
			}
		}
	case weights.F16:
		for i, v := range values {
			c := halfBits(v)
			little.PutUint16(dst[2*i:], c)
			if math.Float32bits(half(c)) != math.Float32bits(v) {
				bad = i
			}
		}
	case weights.F8E4M3:
		known, dst := byteScales[d], dst[:len(values)]
		for i, v := range values {
			c := fineBits(v)
			dst[i] = c
			if math.Float32bits(known[c]) != math.Float32bits(v) {
				bad = i
			}
		}
	default:
		known, dst := byteScales[d], dst[:len(values)]
		for i, v := range values {
			c := powerBits(v)
			dst[i] = c
			if math.Float32bits(known[c]) != math.Float32bits(v) {
				bad = i
			}
		}
	}
	return bad
}

// powerBits returns the F8_E8M0 bits of a value that F8_E8M0 holds exactly. For any other value the bits mean another value.
func powerBits(v float32) byte { return byte(math.Float32bits(v) >> 23) }

// halfBits returns the F16 bits of a value that F16 holds exactly. For any other value the bits mean another value.
func halfBits(v float32) uint16 {
	b := math.Float32bits(v)
	sign := uint16(b >> 16 & 0x8000)
	switch exp := int(b>>23&0xFF) - 112; {
	case exp >= 31:
		return sign | 0x7C00
	case exp > 0:
		return sign | uint16(b>>13&0x3FF) | uint16(exp)<<10
	}
	return sign | uint16(math.Abs(float64(v))*0x1p24)
}

// fineBits returns the F8_E4M3 bits of a value that F8_E4M3 holds exactly. For any other value the bits mean another value.
func fineBits(v float32) byte {
	b := math.Float32bits(v)
	sign := byte(b >> 24 & 0x80)
	switch exp := int(b>>23&0xFF) - 120; {
	case exp > 15:
		return sign | 0x7F
	case exp > 0:
		return sign | byte(b>>20&7) | byte(exp)<<3
	}
	return sign | byte(math.Abs(float64(v))*512)
}
