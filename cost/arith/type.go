// Package arith names the arithmetics of matrix products: the formats of operands and result, and the units of a GPU
// that multiply them.
package arith

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"github.com/lowtoggle/lowtoggle/weights"
)

// Type is the arithmetic of a product: the operands' format, the accumulator and the multiplying units. In JSON and
// text it is its name. The zero value is not a type.
type Type uint8

// The types. They accumulate in float32, except FP16CUDA (float16 or float32, depending on the kernel) and INT8
// (int32).
const (
	_        Type = iota
	FP32          // float32 on CUDA cores
	TF32          // float32 operands; tensor cores read 10 bits of the mantissa
	FP16          // float16 on tensor cores
	BF16          // bfloat16 on tensor cores
	FP16CUDA      // float16 without tensor cores
	FP8           // E4M3 on tensor cores, unit scales
	INT8          // int8 on tensor cores
)

var types = [...]struct {
	name            string
	operand, output weights.DType
}{
	FP32:     {"fp32", weights.F32, weights.F32},
	TF32:     {"tf32", weights.F32, weights.F32},
	FP16:     {"fp16", weights.F16, weights.F16},
	BF16:     {"bf16", weights.BF16, weights.BF16},
	FP16CUDA: {"fp16-cuda", weights.F16, weights.F16},
	FP8:      {"fp8", weights.F8E4M3, weights.BF16},
	INT8:     {"int8", weights.I8, weights.I32},
}

// Types lists every type.
func Types() []Type { return []Type{FP32, TF32, FP16, BF16, FP16CUDA, FP8, INT8} }

// ParseType parses a name: fp32, tf32, fp16, bf16, fp16-cuda, fp8 or int8.
func ParseType(name string) (Type, error) {
	for _, t := range Types() {
		if types[t].name == name {
			return t, nil
		}
	}
	return 0, fmt.Errorf("unknown arithmetic %q: use one of %s", name, Names(Types()))
}

// Names lists types for messages, as in "bf16, fp8".
func Names(list []Type) string {
	names := make([]string, len(list))
	for i, t := range list {
		names[i] = t.String()
	}
	return strings.Join(names, ", ")
}

// TypeOf returns the type that multiplies stored tensors of dtype d: on tensor cores if they support d, and on CUDA
// cores for float32. It returns false if neither supports d.
func TypeOf(d weights.DType) (Type, bool) {
	for _, t := range Types() {
		if types[t].operand == d {
			return t, true
		}
	}
	return 0, false
}

// Valid reports whether t is one of the types. The zero value is not.
func (t Type) Valid() bool { return t > 0 && int(t) < len(types) }

// String returns the type's name, in the syntax of ParseType.
func (t Type) String() string {
	if !t.Valid() {
		return fmt.Sprintf("Type(%d)", uint8(t))
	}
	return types[t].name
}

// MarshalText returns the type's name, in the syntax of ParseType. An invalid type is an error.
func (t Type) MarshalText() ([]byte, error) {
	if !t.Valid() {
		return nil, fmt.Errorf("no such arithmetic: %v", t)
	}
	return []byte(t.String()), nil
}

// UnmarshalText parses a name like ParseType.
func (t *Type) UnmarshalText(b []byte) (err error) {
	*t, err = ParseType(string(b))
	return err
}

// Operand returns the element type of x and w.
func (t Type) Operand() weights.DType { return types[t].operand }

// Output returns the element type of y as a GPU stores it.
func (t Type) Output() weights.DType { return types[t].output }

// Decode writes len(dst) output elements, stored little-endian in data, to dst. All values are exact.
func (t Type) Decode(dst []float64, data []byte) {
	switch t.Output() {
	case weights.I32:
		for i := range dst {
			dst[i] = float64(int32(binary.LittleEndian.Uint32(data[4*i:])))
		}
	case weights.F32:
		for i := range dst {
			dst[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:])))
		}
	default:
		f, _ := t.Output().Format()
		for i := range dst {
			dst[i] = float64(f.Value(f.Elem(data, i)))
		}
	}
}
