package tokens

import (
	"encoding/binary"
	"math"

	"github.com/lowtoggle/lowtoggle/weights"
)

// integers has the decoder of each integer type, from little-endian data to dst. A decoder returns the index of the first value
// that is negative or above the largest int32; -1 if there is none.
var integers = map[weights.DType]func(dst []int32, data []byte) int{
	weights.U8:  decoder(1, func(b []byte) uint64 { return uint64(b[0]) }),
	weights.I8:  decoder(1, func(b []byte) uint64 { return uint64(int8(b[0])) }),
	weights.U16: decoder(2, func(b []byte) uint64 { return uint64(binary.LittleEndian.Uint16(b)) }),
	weights.I16: decoder(2, func(b []byte) uint64 { return uint64(int16(binary.LittleEndian.Uint16(b))) }),
	weights.U32: decoder(4, func(b []byte) uint64 { return uint64(binary.LittleEndian.Uint32(b)) }),
	weights.I32: decoder(4, func(b []byte) uint64 { return uint64(int32(binary.LittleEndian.Uint32(b))) }),
	weights.U64: decoder(8, binary.LittleEndian.Uint64),
	weights.I64: decoder(8, binary.LittleEndian.Uint64),
}

// decoder returns a decoder of elements of size bytes. Read as unsigned numbers, negative values are too large, too.
func decoder(size int, element func([]byte) uint64) func([]int32, []byte) int {
	return func(dst []int32, data []byte) int {
		for i := range dst {
			v := element(data[i*size : (i+1)*size])
			if v > math.MaxInt32 {
				return i
			}
			dst[i] = int32(v)
		}
		return -1
	}
}
