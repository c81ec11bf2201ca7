package synth

import (
	"encoding/binary"
	"math"
	"sync"

	"github.com/x448/float16"

	"github.com/lowtoggle/lowtoggle/weights"
)

// encoder writes the values, rounded to nearest, as elements of one type into dst.
type encoder func(dst []byte, values []float32)

// encoders has the encoder of every type that can be generated.
var encoders = func() map[weights.DType]encoder {
	all := map[weights.DType]encoder{weights.BF16: encodeBF16, weights.F16: encodeF16, weights.F32: encodeF32}
	for _, f := range weights.Formats() {
		if f.Bits == 8 {
			all[f.DType] = encodeByte(f)
		}
	}
	return all
}()

// bf16 returns v rounded to nearest, ties to even, by integer arithmetic. v must be finite and far from overflow.
func bf16(v float32) uint16 {
	b := math.Float32bits(v)
	return uint16((b + 0x7FFF + b>>16&1) >> 16)
}

func encodeBF16(dst []byte, values []float32) {
	for len(values) >= 4 {
		binary.LittleEndian.PutUint64(dst, uint64(bf16(values[0]))|uint64(bf16(values[1]))<<16|
			uint64(bf16(values[2]))<<32|uint64(bf16(values[3]))<<48)
		dst, values = dst[8:], values[4:]
	}
	for i, v := range values {
		binary.LittleEndian.PutUint16(dst[2*i:], bf16(v))
	}
}

func encodeF16(dst []byte, values []float32) {
	for i, v := range values {
		binary.LittleEndian.PutUint16(dst[2*i:], float16.Fromfloat32(v).Bits())
	}
}

func encodeF32(dst []byte, values []float32) {
	for i, v := range values {
		binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(v))
	}
}

// encodeByte returns the encoder of an 8-bit type. It rounds to BF16 and looks the code up in a table. The double rounding
// does not matter for random numbers.
func encodeByte(to weights.Format) encoder {
	table := sync.OnceValue(func() *[1 << 16]byte {
		t := new([1 << 16]byte)
		from, _ := weights.BF16.Format()
		for b := range t {
			t[b] = byte(to.FromValue(from.Value(uint32(b))))
		}
		return t
	})
	return func(dst []byte, values []float32) {
		t := table()
		for i, v := range values {
			dst[i] = t[bf16(v)]
		}
	}
}
