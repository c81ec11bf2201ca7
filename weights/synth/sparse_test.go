package synth

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
	"github.com/lowtoggle/lowtoggle/weights/quantise"
)

// TestSparse: a sparse model has the headers of the full model. One row in 128 of its matrices has values, and in filled
// files every row.
func TestSparse(t *testing.T) {
	format, err := quantise.Parse("deepseek-fp8")
	if err != nil {
		t.Fatal(err)
	}
	config := wide(t, "deepseek_v3-tiny", `{"moe_intermediate_size": 160}`)
	for name, o := range map[string]Options{
		"unquantised": {Seed: 3, ShardBytes: 40_000, Sparse: true, Filled: []int{2, 3}},
		"fp8":         {Seed: 3, ShardBytes: 40_000, Sparse: true, Filled: []int{2, 3}, Format: format},
	} {
		plain := o
		plain.Sparse, plain.Filled = false, nil
		whole, sparse := folderOf(t, config, plain), folderOf(t, config, o)
		d, err := quant.Describe(sparse)
		if err != nil {
			t.Fatal(err)
		}
		holes := 0
		for i, s := range sparse.Shards {
			if !bytes.Equal(s.Head(), whole.Shards[i].Head()) {
				t.Errorf("%s: file %d has another header", name, i+1)
			}
			filled := i == 1 || i == 2
			for _, info := range s.Tensors {
				x, _ := s.Tensor(info.Name)
				rows, cols := 1, info.Len()
				if _, role, ok := d.Tensor(info.Name); len(info.Shape) == 2 && !(ok && role == quant.Scales) {
					rows, cols = info.Matrix()
				}
				for r := range rows {
					row := x.Data[r*cols*info.DType.Bits()/8:][:cols*info.DType.Bits()/8]
					empty := len(bytes.Trim(row, "\x00")) == 0
					if want := !filled && r%sparseRows != 0; empty != want {
						t.Fatalf("%s: file %d, %s: row %d is empty: %v, want %v", name, i+1, info.Name, r, empty, want)
					}
					if empty {
						holes++
					}
				}
			}
		}
		if holes == 0 {
			t.Errorf("%s: there are no holes", name)
		}
	}
}

func TestSparseRefuses(t *testing.T) {
	int4, err := quantise.Parse("int4")
	if err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]Options{
		"only a sparse model":     {Filled: []int{1}},
		"not int4":                {Sparse: true, Format: int4},
		"there is no file 2":      {Sparse: true, Filled: []int{2}},
		"there is no file 0 to f": {Sparse: true, Filled: []int{0}},
	} {
		err := Folder(context.Background(), wide(t, "llama-tiny", wideLlama), filepath.Join(t.TempDir(), "out"), o)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// TestSparseCodesAreFinite: codes are drawn within their type's range.
func TestSparseCodesAreFinite(t *testing.T) {
	format, err := quantise.Parse("deepseek-fp8")
	if err != nil {
		t.Fatal(err)
	}
	m := folderOf(t, wide(t, "llama-tiny", wideLlama), Options{Sparse: true, Filled: []int{1}, Format: format})
	f, _ := weights.F8E4M3.Format()
	n := 0
	for _, info := range m.Infos() {
		x, _ := m.Tensor(info.Name)
		for i := range x.Data {
			if info.DType == weights.F8E4M3 {
				n++
				if !f.Finite(uint32(x.Data[i])) {
					t.Fatalf("%s: element %d is not finite", info.Name, i)
				}
			}
		}
	}
	if n == 0 {
		t.Error("the model has no codes")
	}
}
