package weights

import (
	"fmt"
	"strings"
)

// DType is a safetensors element type. The zero value is no type.
type DType uint8

// The element types of safetensors 0.6 and later.
const (
	_ DType = iota
	Bool
	F4
	F6E2M3
	F6E3M2
	U8
	I8
	F8E5M2
	F8E4M3
	F8E8M0
	F8E4M3FNUZ
	F8E5M2FNUZ
	I16
	U16
	F16
	BF16
	I32
	U32
	F32
	C64
	F64
	I64
	U64
)

var dtypes = [...]struct {
	name  string
	bits  int
	torch string // PyTorch's names, the usual one first; empty if config.json has no name for the type
}{
	Bool:       {"BOOL", 8, ""},
	F4:         {"F4", 4, ""},
	F6E2M3:     {"F6_E2M3", 6, ""},
	F6E3M2:     {"F6_E3M2", 6, ""},
	U8:         {"U8", 8, ""},
	I8:         {"I8", 8, "int8"},
	F8E5M2:     {"F8_E5M2", 8, "float8_e5m2"},
	F8E4M3:     {"F8_E4M3", 8, "float8_e4m3fn"},
	F8E8M0:     {"F8_E8M0", 8, ""},
	F8E4M3FNUZ: {"F8_E4M3FNUZ", 8, ""},
	F8E5M2FNUZ: {"F8_E5M2FNUZ", 8, ""},
	I16:        {"I16", 16, ""},
	U16:        {"U16", 16, ""},
	F16:        {"F16", 16, "float16 half"},
	BF16:       {"BF16", 16, "bfloat16"},
	I32:        {"I32", 32, ""},
	U32:        {"U32", 32, ""},
	F32:        {"F32", 32, "float32 float"},
	C64:        {"C64", 64, ""},
	F64:        {"F64", 64, "float64"},
	I64:        {"I64", 64, ""},
	U64:        {"U64", 64, ""},
}

// ParseDType returns the type that a name in a safetensors header means, such as "BF16". An unknown name is an error.
func ParseDType(name string) (DType, error) {
	for d, t := range dtypes {
		if d > 0 && t.name == name {
			return DType(d), nil
		}
	}
	return 0, fmt.Errorf("unknown dtype %q", name)
}

// ParseTorch returns the type that a name in PyTorch or config.json means, such as "bfloat16" or "torch.bfloat16". The bool
// is false for every name that config.json may not give as the type of a model's weights.
func ParseTorch(name string) (DType, bool) {
	name = strings.TrimPrefix(name, "torch.")
	for d, t := range dtypes {
		for other := range strings.FieldsSeq(t.torch) {
			if other == name {
				return DType(d), true
			}
		}
	}
	return 0, false
}

// Torch returns PyTorch's name of the type, such as "bfloat16"; empty if [ParseTorch] knows no name.
func (d DType) Torch() string {
	name, _, _ := strings.Cut(dtypes[d].torch, " ")
	return name
}

// String returns the name used in safetensors headers.
func (d DType) String() string {
	if d == 0 || int(d) >= len(dtypes) {
		return fmt.Sprintf("DType(%d)", uint8(d))
	}
	return dtypes[d].name
}

// Bits returns the size of one element in bits.
func (d DType) Bits() int { return dtypes[d].bits }

// MarshalText returns the name used in safetensors headers.
func (d DType) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads the output of MarshalText.
func (d *DType) UnmarshalText(b []byte) (err error) {
	*d, err = ParseDType(string(b))
	return err
}
