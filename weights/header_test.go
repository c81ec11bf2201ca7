package weights

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// entry returns a header whose only tensor a is an F32 of two elements, with one member replaced.
func entry(member, value string) string {
	members := []string{`"dtype":"F32"`, `"shape":[2]`, `"data_offsets":[0,8]`}
	for i, m := range members {
		if strings.HasPrefix(m, `"`+member+`"`) {
			members[i] = fmt.Sprintf("%q:%s", member, value)
		}
	}
	return `{"a":{` + strings.Join(members, ",") + `}}`
}

// bytesAB returns a header with two U8 tensors.
func bytesAB(shapeA, offsetsA, shapeB, offsetsB string) string {
	return fmt.Sprintf(`{"a":{"dtype":"U8","shape":%s,"data_offsets":%s},"b":{"dtype":"U8","shape":%s,"data_offsets":%s}}`,
		shapeA, offsetsA, shapeB, offsetsB)
}

func TestMalformedFiles(t *testing.T) {
	var (
		eight = make([]byte, 8)
		long  = binary.LittleEndian.AppendUint64(nil, 100_000_001)
		large = binary.LittleEndian.AppendUint64(nil, 1<<63+5)
		whole = file(entry("", ""), eight...)
	)
	for _, test := range []struct {
		name string
		file []byte
		want string // after the file's path
	}{
		// the file
		{"empty", nil, `: the file is empty: download, copy or make it again`},
		{"truncated length", whole[:7], `: the file has 7 bytes, and a safetensors file has more than 8: the file is damaged, or is no safetensors file: download or copy it again`},
		{"truncated header", whole[:30],
			`: byte 0: the header needs a file of more than 62 bytes, and this file has 30: the file is truncated: download, copy or make it again`},
		{"truncated data", whole[:len(whole)-3], `: tensor "a": byte 62: the header needs a file of 70 bytes, and this file has 67: the file is truncated: download, copy or make it again`},
		{"no data", whole[:len(whole)-8], `: tensor "a": byte 62: the header needs a file of 70 bytes, and this file has 62: the file is truncated: download, copy or make it again`},
		{"header of more than 100 MB", append(long, '{'),
			`: byte 0: the header has 100000001 bytes, but the format allows at most 100000000: the file is damaged, or is no safetensors file: download or copy it again`},
		{"header length beyond int64", append(large, '{'),
			`: byte 0: the header has 9223372036854775813 bytes, but the format allows at most 100000000: the file is damaged, or is no safetensors file: download or copy it again`},
		{"another format", []byte("GGUF\x03\x00\x00\x00 and so on"),
			`: byte 0: the header has 14064895815 bytes, but the format allows at most 100000000: the file is damaged, or is no safetensors file: download or copy it again`},
		{"bytes after the last tensor", append(whole, 1, 2, 3), `: byte 70: 3 bytes follow the last tensor: the file is damaged: download, copy or make it again`},
		{"data without tensors", file(`{}`, 1), `: byte 10: 1 bytes follow the last tensor: the file is damaged: download, copy or make it again`},

		// JSON
		{"no header", file(``), `: byte 8: the header does not start with '{': the file is damaged, or is no safetensors file: download or copy it again`},
		{"leading space", file(` {}`), `: byte 8: the header does not start with '{': the file is damaged, or is no safetensors file: download or copy it again`},
		{"a list", file(`[]`), `: byte 8: the header does not start with '{': the file is damaged, or is no safetensors file: download or copy it again`},
		{"unclosed", file(`{`), `: byte 9: invalid JSON: it ends too early: copy the file again`},
		{"unclosed entry", file(`{"a":{"dtype":"F32"`), `: tensor "a": byte 27: invalid JSON: it ends too early: copy the file again`},
		{"unclosed string", file(`{"a":{"dty`), `: tensor "a": byte 14: invalid JSON: it ends too early: copy the file again`},
		{"no colon", file(`{"a" 5}`), `: tensor "a": byte 13: invalid JSON: invalid character '5' after object key`},
		{"no comma", file(`{"a":{"dtype":"F32" "shape":[]}}`), `: tensor "a": byte 28: invalid JSON: invalid character '"' after object key:value pair`},
		{"comma at the end", file(`{"__metadata__":{},}`), `: byte 27: invalid JSON: invalid character '}' looking for beginning of object key string`},
		{"key without quotes", file(`{a:1}`), `: byte 9: invalid JSON: invalid character 'a'`},
		{"misspelt literal", file(`{"a":{"dtype":nulL}}`), `: tensor "a": byte 22: invalid JSON: invalid character 'L' in literal null (expecting 'l')`},
		{"wrong bracket", file(`{"a":{"dtype":"F32","shape":[2}`), `: tensor "a": byte 38: invalid JSON: invalid character '}' after array element`},
		{"newline in a string", file("{\"a\n\":{}}"), `: byte 9: invalid JSON: invalid character '\n' in string literal`},
		{"invalid JSON in an unknown member", file(`{"a":{"note":[1,}}`), `: tensor "a": byte 21: invalid JSON: invalid character '}' looking for beginning of value`},
		{"garbage after the JSON", file(`{} x`), `: byte 11: "x" follows the closing brace`},
		{"zero after the JSON", file("{}\x00"), `: byte 10: "\x00" follows the closing brace`},
		{"second object", file(`{} {}`), `: byte 11: "{" follows the closing brace`},
		{"comma after the JSON", file(`{},`), `: byte 10: "," follows the closing brace`},
		{"invalid UTF-8", file("{\"a\xff\":{}}"), `: byte 11: invalid UTF-8: 0xff`},
		{"UTF-8 cut short", file("{\"a\xe2\x82\":{}}"), `: byte 11: invalid UTF-8: 0xe2`},
		{"UTF-16 surrogate", file("{\"\xed\xa0\x80\":{}}"), `: byte 10: invalid UTF-8: 0xed`},

		// keys
		{"tensor twice", file(strings.Replace(entry("", ""), `}}`, `},"a":{}}`, 1), eight...), `: byte 62: key "a" appears twice`},
		{"tensor twice, spelt differently", file(`{"__metadata__":{},"__metadata\u005f_":{}}`), `: byte 27: key "__metadata__" appears twice`},
		{"dtype twice", file(`{"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, eight...),
			`: tensor "a": byte 28: key "dtype" appears twice`},
		{"offsets twice", file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"data_offsets":[0,8]}}`, eight...),
			`: tensor "a": byte 61: key "data_offsets" appears twice`},
		{"metadata key twice", file(`{"__metadata__":{"k":"1","k":"2"}}`), `: byte 33: key "k" appears twice`},
		{"no dtype", file(`{"a":{"shape":[2],"data_offsets":[0,8]}}`, eight...), `: tensor "a": byte 46: has no "dtype"`},
		{"no shape", file(`{"a":{"dtype":"F32","data_offsets":[0,8]}}`, eight...), `: tensor "a": byte 48: has no "shape"`},
		{"no offsets", file(`{"a":{"dtype":"F32","shape":[2]}}`, eight...), `: tensor "a": byte 39: has no "data_offsets"`},
		{"empty entry", file(`{"a":{}}`), `: tensor "a": byte 14: has no "dtype"`},
		{"member in other letters", file(`{"a":{"DType":"F32","shape":[2],"data_offsets":[0,8]}}`, eight...),
			`: tensor "a": byte 60: has no "dtype"`},

		// types
		{"entry is a number", file(`{"a":5}`), `: tensor "a": byte 13: the entry: expected {, found 5`},
		{"entry is null", file(`{"a":null}`), `: tensor "a": byte 13: the entry: expected {, found null`},
		{"entry is a list", file(`{"a":[]}`), `: tensor "a": byte 13: the entry: expected {, found [`},
		{"metadata is a string", file(`{"__metadata__":"pt"}`), `: byte 24: __metadata__: expected {, found "pt"`},
		{"metadata is null", file(`{"__metadata__":null}`), `: byte 24: __metadata__: expected {, found null`},
		{"metadata of numbers", file(`{"__metadata__":{"k":1}}`), `: byte 29: __metadata__: the value of "k" is 1, not a string`},
		{"metadata of objects", file(`{"__metadata__":{"k":{}}}`), `: byte 29: __metadata__: the value of "k" is {, not a string`},
		{"unknown dtype", file(entry("dtype", `"F33"`), eight...), `: tensor "a": byte 22: unknown dtype "F33"`},
		{"dtype in small letters", file(entry("dtype", `"f32"`), eight...), `: tensor "a": byte 22: unknown dtype "f32"`},
		{"empty dtype", file(entry("dtype", `""`), eight...), `: tensor "a": byte 22: unknown dtype ""`},
		{"dtype is a number", file(entry("dtype", `32`), eight...), `: tensor "a": byte 22: dtype: expected a string, found 32`},
		{"dtype is an object", file(entry("dtype", `{}`), eight...), `: tensor "a": byte 22: dtype: expected a string, found {`},
		{"shape is a number", file(entry("shape", `2`), eight...), `: tensor "a": byte 36: shape: expected [, found 2`},
		{"shape is null", file(entry("shape", `null`), eight...), `: tensor "a": byte 36: shape: expected [, found null`},
		{"shape of strings", file(entry("shape", `["2"]`), eight...), `: tensor "a": byte 37: shape: expected a number, found "2"`},
		{"shape of shapes", file(entry("shape", `[[2]]`), eight...), `: tensor "a": byte 37: shape: expected a number, found [`},
		{"negative dimension", file(entry("shape", `[-1,-2]`), eight...), `: tensor "a": byte 37: shape: -1 is not a whole number from 0 to 2^62-1`},
		{"fractional dimension", file(entry("shape", `[1,2.0]`), eight...), `: tensor "a": byte 39: shape: 2.0 is not a whole number from 0 to 2^62-1`},
		{"exponent in a dimension", file(entry("shape", `[2e0]`), eight...), `: tensor "a": byte 37: shape: 2e0 is not a whole number from 0 to 2^62-1`},
		{"leading zero", file(entry("shape", `[02]`), eight...), `: tensor "a": byte 38: invalid JSON: invalid character '2' after array element`},
		{"dimension of 2^62", file(entry("shape", `[4611686018427387904]`), eight...),
			`: tensor "a": byte 37: shape: 4611686018427387904 is not a whole number from 0 to 2^62-1`},

		// offsets
		{"offsets are an object", file(entry("data_offsets", `{}`), eight...), `: tensor "a": byte 55: data_offsets: expected [, found {`},
		{"no offsets in the list", file(entry("data_offsets", `[]`), eight...), `: tensor "a": byte 56: data_offsets is [], but must be two numbers: where the tensor begins and ends`},
		{"one offset", file(entry("data_offsets", `[0]`), eight...), `: tensor "a": byte 57: data_offsets is [0], but must be two numbers: where the tensor begins and ends`},
		{"three offsets", file(entry("data_offsets", `[0,8,8]`), eight...), `: tensor "a": byte 61: data_offsets is [0 8 8], but must be two numbers: where the tensor begins and ends`},
		{"end before begin", file(entry("data_offsets", `[8,0]`), eight...), `: tensor "a": byte 59: data_offsets is [8 0], but must be two numbers: where the tensor begins and ends`},
		{"negative offset", file(entry("data_offsets", `[-8,0]`), eight...), `: tensor "a": byte 56: data_offsets: -8 is not a whole number from 0 to 2^62-1`},
		{"negative zero", file(entry("data_offsets", `[-0,8]`), eight...), `: tensor "a": byte 56: data_offsets: -0 is not a whole number from 0 to 2^62-1`},
		{"fractional offset", file(entry("data_offsets", `[0,8.5]`), eight...), `: tensor "a": byte 58: data_offsets: 8.5 is not a whole number from 0 to 2^62-1`},
		{"exponent in an offset", file(entry("data_offsets", `[0,8e0]`), eight...), `: tensor "a": byte 58: data_offsets: 8e0 is not a whole number from 0 to 2^62-1`},
		{"offset beyond int64", file(entry("data_offsets", `[0,99999999999999999999]`), eight...),
			`: tensor "a": byte 58: data_offsets: 99999999999999999999 is not a whole number from 0 to 2^62-1`},
		{"offsets far away", file(`{"a":{"dtype":"U8","shape":[4611686018427387903],"data_offsets":[0,4611686018427387903]}}`, eight...),
			`: tensor "a": byte 97: U8[4611686018427387903] is more than a file can hold: the file is damaged: download, copy or make it again`},
		{"end beyond the file", file(bytesAB(`[4]`, `[0,4]`, `[5]`, `[4,9]`), eight...),
			`: tensor "b": byte 117: the header needs a file of 122 bytes, and this file has 121: the file is truncated: download, copy or make it again`},
		{"overlap", file(bytesAB(`[4]`, `[0,4]`, `[5]`, `[3,8]`), eight...),
			`: tensor "b": byte 116: begins 1 bytes before the end of tensor "a": the file is damaged: download, copy or make it again`},
		{"same bytes twice", file(bytesAB(`[8]`, `[0,8]`, `[8]`, `[0,8]`), eight...),
			`: tensor "b": byte 113: begins 8 bytes before the end of tensor "a": the file is damaged: download, copy or make it again`},
		{"empty tensor inside another", file(bytesAB(`[8]`, `[0,8]`, `[0]`, `[4,4]`), eight...),
			`: tensor "b": byte 117: begins 4 bytes before the end of tensor "a": the file is damaged: download, copy or make it again`},
		{"gap", file(bytesAB(`[4]`, `[0,4]`, `[3]`, `[5,8]`), eight...), `: tensor "b": byte 118: 1 unused bytes lie before the tensor: the file is damaged: download, copy or make it again`},
		{"gap at the start", file(entry("data_offsets", `[8,16]`), make([]byte, 16)...), `: tensor "a": byte 71: 8 unused bytes lie before the tensor: the file is damaged: download, copy or make it again`},
		{"gap before an empty tensor", file(bytesAB(`[8]`, `[0,8]`, `[0]`, `[9,9]`), eight...), `: tensor "b": byte 122: 1 unused bytes lie before the tensor: the file is damaged: download, copy or make it again`},

		// byte length against shape
		{"fewer bytes than the shape", file(entry("shape", `[3]`), eight...), `: tensor "a": byte 62: F32[3] needs 12 bytes, but data_offsets span 8: the file is damaged: download, copy or make it again`},
		{"more bytes than the shape", file(entry("shape", `[]`), eight...), `: tensor "a": byte 61: F32[] needs 4 bytes, but data_offsets span 8: the file is damaged: download, copy or make it again`},
		{"bytes in an empty tensor", file(entry("shape", `[0,2]`), eight...), `: tensor "a": byte 64: F32[0 2] needs 0 bytes, but data_offsets span 8: the file is damaged: download, copy or make it again`},
		{"bits that fill no byte", file(`{"a":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}}`, 1, 2),
			`: tensor "a": byte 61: F4[3] takes 12 bits, which do not fill whole bytes: the file is damaged: download, copy or make it again`},
		{"six bits", file(`{"a":{"dtype":"F6_E2M3","shape":[],"data_offsets":[0,1]}}`, 1),
			`: tensor "a": byte 65: F6_E2M3[] takes 6 bits, which do not fill whole bytes: the file is damaged: download, copy or make it again`},
		{"shape overflow", file(entry("shape", `[2147483648,2147483648,8]`), eight...),
			`: tensor "a": byte 84: F32[2147483648 2147483648 8] is more than a file can hold: the file is damaged: download, copy or make it again`},
		{"shape overflow to the right length", file(entry("shape", `[4611686018427387903,4611686018427387903,2]`), eight...),
			`: tensor "a": byte 102: F32[4611686018427387903 4611686018427387903 2] is more than a file can hold: the file is damaged: download, copy or make it again`},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := put(t, t.TempDir(), "m.safetensors", test.file)
			f, err := OpenFile(path)
			if f != nil {
				f.Close()
			}
			wantError(t, err, path+test.want)
			if _, ok := errors.AsType[*FormatError](err); !ok {
				t.Errorf("%T is not a *FormatError", err)
			}
		})
	}
}

func TestLegalFiles(t *testing.T) {
	for _, test := range []struct {
		name     string
		file     []byte
		tensors  []Info
		metadata map[string]string
	}{
		{"no tensors", file(`{}`), nil, nil},
		{"spaces after the JSON", file("{} \n\t\r "), nil, nil},
		{"metadata alone", file(`{"__metadata__":{"format":"pt","":"é"}}`), nil, map[string]string{"format": "pt", "": "é"}},
		{"empty metadata", file(`{"__metadata__":{}}`), nil, map[string]string{}},
		{"scalar", file(`{"s":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}`, 1, 2, 3, 4),
			[]Info{{"s", F32, []int{}, 0, 4}}, nil},
		{"empty name", file(`{"":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 1),
			[]Info{{"", U8, []int{1}, 0, 1}}, nil},
		{"members in any order, unknown ones among them",
			file(`{"a":{"data_offsets":[0,2],"note":{"x":[1,{}],"x":null},"shape":[2],"dtype":"U8"}}`, 1, 2),
			[]Info{{"a", U8, []int{2}, 0, 2}}, nil},
		{"tensors in another order than their data", file(bytesAB(`[1]`, `[2,3]`, `[2]`, `[0,2]`), 1, 2, 3),
			[]Info{{"b", U8, []int{2}, 0, 2}, {"a", U8, []int{1}, 2, 3}}, nil},
		{"empty tensors at one offset, before a full one", file(
			`{"full":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},`+
				`"x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},`+
				`"y":{"dtype":"F64","shape":[3,0],"data_offsets":[0,0]},`+
				`"z":{"dtype":"F4","shape":[3,0],"data_offsets":[1,1]}}`, 7),
			[]Info{{"x", U8, []int{0}, 0, 0}, {"y", F64, []int{3, 0}, 0, 0}, {"full", U8, []int{1}, 0, 1}, {"z", F4, []int{3, 0}, 1, 1}}, nil},
		{"no elements, huge dimensions", file(`{"a":{"dtype":"F32","shape":[4611686018427387903,3,0],"data_offsets":[0,0]}}`),
			[]Info{{"a", F32, []int{1<<62 - 1, 3, 0}, 0, 0}}, nil},
		{"four bits that fill a byte", file(`{"a":{"dtype":"F4","shape":[3,2],"data_offsets":[0,3]}}`, 1, 2, 3),
			[]Info{{"a", F4, []int{3, 2}, 0, 3}}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			f, err := OpenFile(put(t, t.TempDir(), "m.safetensors", test.file))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if diff := cmp.Diff(test.tensors, f.Tensors); diff != "" {
				t.Errorf("tensors (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.metadata, f.Metadata); diff != "" {
				t.Errorf("metadata (-want +got):\n%s", diff)
			}
			if f.Size() != int64(len(test.file)) || !bytes.Equal(append(bytes.Clone(f.Head()), f.Data()...), test.file) {
				t.Error("head and data together are not the file")
			}
			for _, info := range f.Tensors {
				got, ok := f.Tensor(info.Name)
				if !ok || !bytes.Equal(got.Data, f.Data()[info.Begin:info.End]) {
					t.Errorf("tensor %q: %v, data %v", info.Name, ok, got.Data)
				}
			}
			if _, ok := f.Tensor("no such tensor"); ok {
				t.Error("found a tensor that is not there")
			}
		})
	}
}

func TestEveryDType(t *testing.T) {
	var infos []Info
	for d := Bool; d <= U64; d++ {
		infos = append(infos, Info{Name: d.String(), DType: d, Shape: []int{2, 4}})
	}
	head, placed, err := EncodeHeader(infos, nil)
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, placed[len(placed)-1].End)
	f, err := OpenFile(put(t, t.TempDir(), "m.safetensors", append(head, data...)))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if diff := cmp.Diff(placed, f.Tensors); diff != "" {
		t.Error(diff)
	}
	sizes := map[string]int64{
		"BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8,
		"F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16,
		"I32": 32, "U32": 32, "F32": 32, "C64": 64, "F64": 64, "I64": 64, "U64": 64,
	}
	if len(sizes) != len(f.Tensors) {
		t.Errorf("%d types, want %d", len(f.Tensors), len(sizes))
	}
	for _, info := range f.Tensors {
		if info.Size() != sizes[info.Name] {
			t.Errorf("8 elements of %s: %d bytes, want %d", info.Name, info.Size(), sizes[info.Name])
		}
		text, _ := info.DType.MarshalText()
		var back DType
		if err := back.UnmarshalText(text); err != nil || back != info.DType {
			t.Errorf("%s reads back as %v, %v", text, back, err)
		}
	}
	var none DType
	wantError(t, none.UnmarshalText([]byte("DType(0)")), `unknown dtype "DType(0)"`)
	if none.String() != "DType(0)" {
		t.Errorf("no type is spelt %q", none)
	}
}

func TestEncodeHeaderRefuses(t *testing.T) {
	for _, test := range []struct {
		infos []Info
		want  string
	}{
		{[]Info{{Name: "a", DType: F4, Shape: []int{1}}}, `tensor "a": F4[1] takes 4 bits, which do not fill whole bytes`},
		{[]Info{{Name: "a", DType: U8, Shape: []int{2, -1}}}, `tensor "a": U8[2 -1] is more than a file can hold`},
		{[]Info{{Name: "a", DType: U8, Shape: []int{1 << 61}}}, `tensor "a": U8[2305843009213693952] is more than a file can hold`},
	} {
		_, _, err := EncodeHeader(test.infos, nil)
		wantError(t, err, test.want)
	}
	if !testing.Short() {
		_, _, err := EncodeHeader(nil, map[string]string{"k": strings.Repeat("x", MaxHeader)})
		wantError(t, err, `the header has 100000032 bytes, but the format allows at most 100000000`)
	}
}

func TestMatrix(t *testing.T) {
	for _, test := range []struct {
		shape      []int
		rows, cols int
	}{
		{nil, 1, 1},
		{[]int{5}, 5, 1},
		{[]int{2, 3}, 2, 3},
		{[]int{2, 3, 5}, 6, 5},
		{[]int{0}, 0, 0},
		{[]int{3, 0}, 0, 0},
		{[]int{1<<62 - 1, 3, 0}, 0, 0},
		{[]int{0, 1<<62 - 1}, 0, 0},
	} {
		info := Info{Shape: test.shape}
		if rows, cols := info.Matrix(); rows != test.rows || cols != test.cols || rows*cols != info.Len() {
			t.Errorf("%v is %d by %d with %d elements, want %d by %d", test.shape, rows, cols, info.Len(), test.rows, test.cols)
		}
	}
}

// A file with a header of EncodeHeader has the same tensors when it is opened, without gaps and in order.
func TestHeaderRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.safetensors")
	rapid.Check(t, func(t *rapid.T) { headerRoundTrip(t, path) })
}

func FuzzHeaderRoundTrip(f *testing.F) {
	path := filepath.Join(f.TempDir(), "m.safetensors")
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) { headerRoundTrip(t, path) }))
}

func headerRoundTrip(t *rapid.T, path string) {
	names := rapid.SliceOfNDistinct(rapid.String().Filter(func(s string) bool { return s != "__metadata__" }), 0, 6, rapid.ID)
	tensor := rapid.Custom(func(t *rapid.T) Info {
		info := Info{
			DType: DType(rapid.IntRange(int(Bool), int(U64)).Draw(t, "dtype")),
			Shape: rapid.SliceOfN(rapid.IntRange(0, 5), 0, 3).Draw(t, "shape"),
		}
		if info.DType.Bits() < 8 {
			info.Shape = append(info.Shape, 4) // whole bytes
		}
		return info
	})
	var infos []Info
	for _, name := range names.Draw(t, "names") {
		info := tensor.Draw(t, "tensor")
		info.Name = name
		infos = append(infos, info)
	}
	metadata := rapid.MapOfN(rapid.String(), rapid.String(), 0, 3).Draw(t, "metadata")

	head, placed, err := EncodeHeader(infos, metadata)
	if err != nil {
		t.Fatal(err)
	}
	if len(head)%8 != 0 {
		t.Fatalf("data would start at byte %d", len(head))
	}
	var end int64
	for i, p := range placed {
		want := infos[i]
		want.Begin, want.End = end, end+int64(want.Len()*want.DType.Bits()/8)
		if diff := cmp.Diff(want, p); diff != "" {
			t.Fatalf("placed (-want +got):\n%s", diff)
		}
		end = p.End
	}
	if err := os.WriteFile(path, append(head, make([]byte, end)...), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// Empty tensors may stand before or after the nonempty tensor that begins at the same offset.
	byName := cmpopts.SortSlices(func(a, b Info) bool { return a.Name < b.Name })
	if diff := cmp.Diff(placed, f.Tensors, byName, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("tensors (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(metadata, f.Metadata, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("metadata (-want +got):\n%s", diff)
	}
}
