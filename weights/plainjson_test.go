package weights

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// plainSeeds are headers and indices in the usual form, and others that differ from it slightly.
func plainSeeds(t testing.TB) []string {
	index, err := os.ReadFile("testdata/llama-17m.index.json")
	if err != nil {
		t.Fatal(err)
	}
	return []string{
		string(index),
		string(EncodeIndex(map[string]string{"a": "1.safetensors", "b": "2.safetensors"}, 12)),
		`{"__metadata__":{"format":"pt"},"a":{"dtype":"BF16","shape":[1,2],"data_offsets":[0,4]}} `,
		bytesAB(`[1]`, `[2,3]`, `[2]`, `[0,2]`),
		entry("", ""), `{}`, " {\t} \n", `{"weight_map":{}}`, `{"metadata":{"total_size":1},"weight_map":{"a":"b"}}`,
	}
}

// twoOffsets is a header with a member twice, the first time empty, in place of the shape.
const twoOffsets = `{"a":{"dtype":"F32","data_offsets":[],"data_offsets":[0,4]}}`

// TestPlainJSON: headers and indices in the usual form are read without a walker.
func TestPlainJSON(t *testing.T) {
	for i, js := range plainSeeds(t) {
		_, header := plainHeader([]byte(js))
		_, index := plainIndex([]byte(js))
		if !header && !index {
			t.Errorf("seed %d is not in the usual form", i)
		}
	}
	for _, js := range []string{
		"", "{", "{}}", "{} x", "{}\x00", "{\x00}", `{"a" "b"}`, `{,}`, `{"a\u0041":1}`, "{\"é\":1}", `{"a":1,}`,
		entry("shape", `[-1]`), entry("shape", `[02]`), entry("shape", `[1.5]`), entry("shape", `[1e3]`), entry("shape", `[2,]`), entry("shape", `[`+strings.Repeat("9", 19)+`]`),
		entry("dtype", `"f32"`), entry("dtype", `7`), entry("data_offsets", `[0]`), entry("data_offsets", `[8,0]`), entry("data_offsets", `[0,8,9]`),
		`{"a":{"dtype":"F32","dtype":"F32","shape":[2]}}`, `{"a":{"shape":[2],"shape":[2],"data_offsets":[0,8]}}`, `{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1}}`,
		twoOffsets, `{"a":{"dtype":"F32","data_offsets":[0,4],"data_offsets":[]}}`,
		`{"__metadata__":{},"__metadata__":{}}`, `{"__metadata__":{"k":"1","k":"2"}}`,
		`{"weight_map":{"a":"b"},"weight_map":{"a":"b"}}`, `{"weight_map":{"a":"b","a":"b"}}`, `{"x":1}`, `{"metadata":{"total_size":1.5}}`,
	} {
		if _, ok := plainHeader([]byte(js)); ok {
			t.Errorf("%q was read as a header", js)
		}
		if _, ok := plainIndex([]byte(js)); ok {
			t.Errorf("%q was read as an index", js)
		}
	}
}

// FuzzPlainJSON: if plainJSON reads a text, a walker reads the same from it.
func FuzzPlainJSON(f *testing.F) {
	for _, js := range plainSeeds(f) {
		f.Add([]byte(js))
	}
	f.Add([]byte(twoOffsets))
	f.Fuzz(func(t *testing.T, js []byte) {
		if h, ok := plainHeader(js); ok && h.order() {
			want, err := walkHeader(js)
			if err != nil {
				t.Fatalf("a walker refuses the header: %v", err)
			}
			want.order()
			if diff := cmp.Diff(want, h, cmp.AllowUnexported(header{})); diff != "" {
				t.Errorf("header (-want +got):\n%s", diff)
			}
		}
		if weightMap, ok := plainIndex(js); ok {
			want, err := walkIndex(js)
			if err != nil {
				t.Fatalf("a walker refuses the index: %v", err)
			}
			if diff := cmp.Diff(want, weightMap); diff != "" {
				t.Errorf("index (-want +got):\n%s", diff)
			}
		}
	})
}
