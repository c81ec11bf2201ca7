package quant_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// recoded reads every weight of a model that can be read and encodes it unchanged. It returns how many there were.
func recoded(t *testing.T, name string, m *weights.Model, d *quant.Description) (n int) {
	t.Helper()
	for _, w := range d.Weights {
		if w.CanRead() != nil {
			continue
		}
		n++
		stored := map[int][]byte{}
		for expert := range w.Experts() {
			matrix, err := w.Read(expert)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			err = w.Encode(matrix, expert, func(part int, at int64, b []byte) error {
				if int64(len(stored[part])) != at {
					t.Fatalf("%s: %s: byte %d of part %d is stored after %d bytes", name, w.Name, at, part, len(stored[part]))
				}
				stored[part] = append(stored[part], b...)
				return nil
			})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		for i, x := range w.Tensors {
			if x.Role == quant.ActivationScale || x.Role == quant.Other {
				continue
			}
			if !bytes.Equal(stored[i], x.Data) {
				t.Errorf("%s: %s: part %d, %s: other bytes", name, w.Name, i, x.Name)
			}
		}
		recodedByRows(t, name, w)
	}
	return n
}

// recodedByRows reads rows of a weight and encodes them unchanged, if its layout allows that.
func recodedByRows(t *testing.T, name string, w *quant.Quantised) {
	t.Helper()
	unit := w.RowUnit()
	if unit == 0 {
		return
	}
	codeSize, scaleSize := w.RowSizes()
	var codes, scales []byte
	for expert := range w.Experts() {
		n := w.Shape[len(w.Shape)-2]
		for first := 0; first < n; first += 3 * unit {
			m := w.Rows(expert, first, min(3*unit, n-first))
			c, s := make([]byte, m.N*codeSize), make([]byte, (m.N-1)/unit*scaleSize+scaleSize)
			if err := w.EncodeRows(m, expert, first, c, s); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			codes, scales = append(codes, c...), append(scales, s...)
		}
	}
	for _, x := range w.Tensors {
		if x.Role == quant.Codes && !bytes.Equal(codes, x.Data) || x.Role == quant.Scales && !bytes.Equal(scales, x.Data) {
			t.Errorf("%s: %s: rows of %s: other bytes", name, w.Name, x.Name)
		}
	}
}

// TestEncodeGivesTheSameBytes: Encode returns the bytes that Read read, for every readable layout, with codes and scales in
// different shards.
func TestEncodeGivesTheSameBytes(t *testing.T) {
	for _, q := range testmodel.Quantisations {
		m := testmodel.Open(t, testmodel.Quantised(t, q, testmodel.With{}))
		d, err := quant.Describe(m)
		testmodel.OK(t, err)
		want := 14
		if strings.HasPrefix(q.Name, "bitsandbytes") || strings.HasPrefix(q.Name, "unknown") {
			want = 0
		}
		if n := recoded(t, q.Name, m, d); n != want {
			t.Errorf("%s: %d weights can be read, want %d: %v", q.Name, n, want, d.Weights[0].CanRead())
		}
	}
}

// TestSignedZeroPoints: zero points of a byte are signed, of as many bits as the codes, and are stored as they were.
func TestSignedZeroPoints(t *testing.T) {
	config, tensors := valid("int4 in bytes")
	for i := range 16 {
		tensors[2].data[i] = byte(i - 8)
	}
	m := checkpoint(t, config, tensors...)
	d, err := quant.Describe(m)
	testmodel.OK(t, err)
	matrix, err := d.Weights[0].Read(0)
	testmodel.OK(t, err)
	for i, z := range matrix.Zeros {
		if int(z) != i {
			t.Errorf("the zero point %d is read as code %d", i-8, z)
		}
	}
	if recoded(t, "int4 in bytes", m, d) != 1 {
		t.Error("the layer is not read")
	}
}

// TestRandomLayers: layers of random shapes and bytes have the values that slow code computes one by one, in any rows.
// Encoding gives their bytes again. Each tensor lies in a shard of its own, in any order.
func TestRandomLayers(t *testing.T) {
	for name, generate := range layers {
		for seed := range uint64(60) {
			r := draw{rand.New(rand.NewPCG(seed, 1))}
			l := generate(r)
			name := fmt.Sprintf("%s, seed %d, %v", name, seed, l.shape)
			r.Shuffle(len(l.tensors), func(i, j int) { l.tensors[i], l.tensors[j] = l.tensors[j], l.tensors[i] })
			m := checkpoint(t, l.config, l.tensors...)
			d, err := quant.Describe(m)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if !slices.Equal(d.Weights[0].Shape, l.shape) {
				t.Errorf("%s: shape is %v", name, d.Weights[0].Shape)
				continue
			}
			if recoded(t, name, m, d) != 1 {
				t.Errorf("%s: %v", name, d.Weights[0].CanRead())
				continue
			}
			checkLayer(t, name, r, l, quant.Group(m, d).All)
		}
	}
}

func checkLayer(t *testing.T, name string, r draw, l *layer, all []*quant.Weight) {
	t.Helper()
	w := all[0]
	if len(all) != 1 || w.Quantised == nil || w.Rows*w.Cols != w.Info().Len() {
		t.Errorf("%s: %d weights, the first %+v", name, len(all), w)
		return
	}
	n, k := l.shape[len(l.shape)-2], w.Cols
	var buf []byte
	for first := 0; first < w.Rows; {
		rows := min(r.between(1, 2*n), w.Rows-first)
		buf = w.ReadRows(buf, first, rows)
		for i := range rows * k {
			at := first*k + i
			e, row, j := at/k/n, at/k%n, at%k
			got, want := math.Float32frombits(binary.LittleEndian.Uint32(buf[4*i:])), l.value(e, row, j)
			if math.Float32bits(got) != math.Float32bits(want) && (got == got || want == want) {
				t.Errorf("%s: element %d, %d of expert %d is %v, want %v", name, row, j, e, got, want)
				return
			}
		}
		first += rows
	}
}

// TestGroupedRowsAreTheMatrix: a weight of several tensors gives, in pieces of any size, the rows of its matrices.
func TestGroupedRowsAreTheMatrix(t *testing.T) {
	for _, q := range testmodel.Quantisations {
		m := testmodel.Open(t, testmodel.Quantised(t, q, testmodel.With{}))
		d, err := quant.Describe(m)
		testmodel.OK(t, err)
		set := quant.Group(m, d)
		for _, stored := range d.Weights {
			w, ok := set.Weight(stored.Name)
			if stored.CanRead() != nil {
				if ok && w.Quantised != nil {
					t.Errorf("%s: %s cannot be read", q.Name, stored.Name)
				}
				continue
			}
			if !ok || w.Quantised != stored || w.DType != weights.F32 || len(w.Parts) != len(stored.Tensors) {
				t.Fatalf("%s: %s is %+v", q.Name, stored.Name, w)
			}
			testmodel.OK(t, stored.Check())
			var want []byte
			for expert := range stored.Experts() {
				matrix, err := stored.Read(expert)
				testmodel.OK(t, err)
				row := make([]float32, matrix.K)
				for n := range matrix.N {
					matrix.Row(row, n)
					for k, v := range row {
						if value := matrix.Value(n, k); math.Float32bits(value) != math.Float32bits(v) {
							t.Fatalf("%s: %s: Row gives %v at %d, %d, and Value %v", q.Name, w.Name, v, n, k, value)
						}
						want = binary.LittleEndian.AppendUint32(want, math.Float32bits(v))
					}
				}
			}
			random := rand.New(rand.NewPCG(1, 2))
			var got, buf []byte
			for first := 0; first < w.Rows; {
				n := min(w.Rows-first, 1+random.IntN(70))
				buf = w.ReadRows(buf, first, n)
				got, first = append(got, buf...), first+n
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s: %s: rows are not the matrix", q.Name, w.Name)
			}
		}
		for shard := range m.Files() {
			for i, p := range set.Tensors(shard) {
				if want := m.Files()[shard].Tensors[i].Name; p.Tensor().Name != want {
					t.Errorf("%s: tensor %d of shard %d is %q, want %q", q.Name, i, shard, p.Tensor().Name, want)
				}
			}
		}
	}
}

// TestValues: numbers worked out by hand.
func TestValues(t *testing.T) {
	bf16 := func(v ...float32) (b []byte) {
		for _, x := range v {
			b = binary.LittleEndian.AppendUint16(b, uint16(math.Float32bits(x)>>16))
		}
		return b
	}
	for _, c := range []struct {
		name, config string
		tensors      []stored
		want         [][]float32
	}{
		{"fp8 channel", testmodel.Quantisations[1].Config, []stored{
			{"weight", weights.F8E4M3, []int{2, 3}, []byte{0x38, 0xB8, 0x01, 0x7E, 0x80, 0x00}},
			{"weight_scale", weights.BF16, []int{2, 1}, bf16(0.5, 2)}},
			[][]float32{{0.5, -0.5, 0.0009765625}, {896, float32(math.Copysign(0, -1)), 0}}},
		{"pack-quantized", `{"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {"g": {"targets": ["Linear"],
			"weights": {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 4}}}}`, []stored{
			{"weight_packed", weights.I32, []int{1, 1}, []byte{0x98, 0x7F, 0x10, 0x8A}},
			{"weight_scale", weights.BF16, []int{1, 2}, bf16(0.5, 2)},
			{"weight_shape", weights.I64, []int{2}, []byte{1, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0}}},
			[][]float32{{0, 0.5, 3.5, -0.5, -16, -14, 4, 0}}},
	} {
		m := checkpoint(t, c.config, c.tensors...)
		d, err := quant.Describe(m)
		testmodel.OK(t, err)
		matrix, err := d.Weights[0].Read(0)
		testmodel.OK(t, err)
		for n, want := range c.want {
			got := make([]float32, matrix.K)
			matrix.Row(got, n)
			for k := range want {
				if math.Float32bits(got[k]) != math.Float32bits(want[k]) {
					t.Errorf("%s: row %d is %v, want %v", c.name, n, got, want)
				}
			}
		}
	}
}

// stored is a tensor with its data.
type stored struct {
	name  string
	dtype weights.DType
	shape []int
	data  []byte
}

// checkpoint writes and opens a checkpoint of one module, "m", with one shard for each tensor.
func checkpoint(t testing.TB, config string, tensors ...stored) *weights.Model {
	t.Helper()
	dir := t.TempDir()
	index := map[string]string{}
	for i, x := range tensors {
		file := string(rune('a'+i)) + ".safetensors"
		head, _, err := weights.EncodeHeader([]weights.Info{{Name: "m." + x.name, DType: x.dtype, Shape: x.shape}}, nil)
		testmodel.OK(t, err)
		testmodel.OK(t, os.WriteFile(filepath.Join(dir, file), append(head, x.data...), 0o666))
		index["m."+x.name] = file
	}
	testmodel.OK(t, os.WriteFile(filepath.Join(dir, weights.IndexName), weights.EncodeIndex(index, 0), 0o666))
	if config != "" {
		testmodel.OK(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"quantization_config": `+config+`}`), 0o666))
	}
	return testmodel.Open(t, dir)
}
