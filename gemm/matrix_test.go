package gemm

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/lowtoggle/lowtoggle/cost/pattern"
	"github.com/lowtoggle/lowtoggle/weights"
)

func bf16(shape []int, values ...float32) weights.Tensor {
	t := weights.Tensor{Info: weights.Info{Name: "w", DType: weights.BF16, Shape: shape}, File: "f"}
	for _, v := range values {
		t.Data = binary.LittleEndian.AppendUint16(t.Data, uint16(math.Float32bits(v)>>16))
	}
	return t
}

func TestFromTensor(t *testing.T) {
	want := []float32{1, 2, 3, 4, 5, 6}
	for outAxis, tensor := range []weights.Tensor{
		bf16([]int{2, 3}, 1, 2, 3, 4, 5, 6),
		bf16([]int{3, 2}, 1, 4, 2, 5, 3, 6),
	} {
		m, err := FromTensor(tensor, outAxis)
		if err != nil {
			t.Fatal(err)
		}
		if m.Rows != 2 || m.Cols != 3 || !slices.Equal(m.floats(), want) {
			t.Errorf("outputs on axis %d: %d×%d %v, want 2×3 %v", outAxis, m.Rows, m.Cols, m.floats(), want)
		}
	}
}

func TestFromTensorRefuses(t *testing.T) {
	for name, bad := range map[string]weights.Tensor{
		"vector":  bf16([]int{2}, 1, 2),
		"integer": {Info: weights.Info{Name: "w", DType: weights.I64, Shape: []int{1, 1}}, Data: make([]byte, 8), File: "f"},
		"empty":   bf16([]int{0, 4}),
	} {
		if _, err := FromTensor(bad, 0); err == nil || !strings.Contains(err.Error(), `f: tensor "w"`) {
			t.Errorf("%s: error %v does not name file and tensor", name, err)
		}
	}
}

func TestTransposeTwiceIsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SampledFrom([]weights.DType{weights.F32, weights.BF16, weights.I8}).Draw(t, "type")
		m := normal(d, rapid.IntRange(1, 9).Draw(t, "rows"), rapid.IntRange(1, 9).Draw(t, "cols"), 0, 3, rapid.Uint64().Draw(t, "seed"))
		if back := m.Transposed().Transposed(); !bytes.Equal(back.Data, m.Data) {
			t.Errorf("%v became %v", m, back)
		}
	})
}

func TestCastGoesBack(t *testing.T) {
	m := normal(weights.F8E4M3, 7, 9, 0, 1, 3)
	if back := m.cast(weights.F32, 0).cast(weights.F8E4M3, 0); !bytes.Equal(back.Data, m.Data) {
		t.Error("E4M3 through float32 came back different")
	}
}

// normal draws a matrix of normally distributed elements.
func normal(d weights.DType, rows, cols int, mean, sigma float64, seed uint64) Matrix {
	p := pattern.MustParse(fmt.Sprintf("normal(%g,%g)", mean, sigma))
	data, err := p.Generate(context.Background(), pattern.Spec{DType: d, Rows: rows, Cols: cols, Seed: seed}, 1)
	if err != nil {
		panic(err)
	}
	return Matrix{DType: d, Rows: rows, Cols: cols, Data: data}
}
