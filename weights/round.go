package weights

import (
	"encoding/binary"
	"math"
)

// Zeroable returns the largest useful number of low bits for [Format.Round]: all mantissa bits, but 6 for I8, because 7 would
// leave only −128 and 0.
func (f Format) Zeroable() int {
	if f.IsFloat() {
		return f.MantBits
	}
	return f.MantBits - 1
}

// Round returns b with its low bits zeroed; bits is 0 to MantBits. It rounds to the nearest such value, ties to even, or with
// truncate towards zero. A value that would round to infinity is rounded down. NaN and infinity do not change.
func (f Format) Round(b uint32, bits int, truncate bool) uint32 {
	if !f.IsFloat() {
		return roundInt8(b, bits, truncate)
	}
	unit := uint32(1) << bits
	mag, sign := b&^f.SignMask(), b&f.SignMask()
	if mag > f.MaxFinite {
		return b
	}
	down := mag &^ (unit - 1)
	if truncate {
		return sign | down
	}
	// Adding just under half a unit plus the unit's own bit rounds ties to even. A carry into the exponent gives the start of the
	// next binade.
	up := (mag + unit/2 - 1 + mag>>bits&1) &^ (unit - 1)
	if bits == 0 || up > f.MaxFinite {
		up = down
	}
	return sign | up
}

func roundInt8(b uint32, bits int, truncate bool) uint32 {
	v, unit := int(int8(b)), 1<<bits
	if truncate {
		return uint32(uint8(int8(v / unit * unit)))
	}
	if bits == 0 {
		return b
	}
	up := (v + unit/2 - 1 + v>>bits&1) &^ (unit - 1)
	if up > 127 {
		up = 127 &^ (unit - 1)
	}
	return uint32(uint8(int8(up)))
}

// Encode rounds values as [Format.FromValue] does and writes them to the first elements of data. It is several times faster
// than FromValue, because it rounds normal values on the bits of float32.
func (f Format) Encode(data []byte, values []float32) {
	switch {
	case !f.IsFloat():
		f.encodeInt8(data, values)
		return
	case f.DType == BF16:
		f.encodeBF16(data, values)
		return
	}
	var (
		shift    = 23 - f.MantBits
		half     = uint32(1)<<shift>>1 - 1 // just under half of the last kept place
		odd      = uint32(1)
		rebias   = uint32(127-f.Bias) << f.MantBits
		smallest = uint32(128-f.Bias) << 23 // the smallest normal magnitude
	)
	if f.Bias == 127 { // with float32's bias, subnormals are spaced like float32's
		smallest = 0
	}
	if shift == 0 {
		half, odd = 0, 0
	}
	for i, v := range values {
		b := math.Float32bits(v)
		mag := b &^ (1 << 31)
		r := (mag+half+mag>>shift&odd)>>shift - rebias
		if mag < smallest || mag >= 0x7F800000 || r > f.MaxFinite {
			f.SetElem(data, i, f.FromValue(v))
			continue
		}
		f.SetElem(data, i, b>>31<<(f.Bits-1)|r)
	}
}

// encodeBF16 is Encode specialised for BF16. Values that overflow or are not finite are rare.
func (f Format) encodeBF16(data []byte, values []float32) {
	data = data[:2*len(values)]
	for i, v := range values {
		b := math.Float32bits(v)
		rounded := (b + 0x7FFF + b>>16&1) >> 16 // a carry moves into the exponent
		if rounded&0x7F80 == 0x7F80 || b&0x7F800000 == 0x7F800000 {
			rounded = f.FromValue(v)
		}
		binary.LittleEndian.PutUint16(data[2*i:], uint16(rounded))
	}
}

// encodeInt8 is Encode for I8. It adds a number whose last place is 1, so the sum is rounded to a whole number.
func (f Format) encodeInt8(data []byte, values []float32) {
	const ones = 3 << 22
	for i, v := range values {
		if v >= -128 && v <= 127 {
			data[i] = byte(math.Float32bits(v + ones))
		} else {
			data[i] = byte(f.FromValue(v))
		}
	}
}
