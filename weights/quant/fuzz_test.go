package quant_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// FuzzDescribe: a folder with any config, the tensors of any layout, and one tensor of another shape and type, is described
// or refused. A description names tensors of the model, each once.
func FuzzDescribe(f *testing.F) {
	for i, q := range testmodel.Quantisations {
		f.Add([]byte(q.Config), byte(i), byte(0), byte(8), 128, 256)
		f.Add([]byte(q.Config), byte(i), byte(1), byte(12), 3, 0)
	}
	f.Add([]byte("A"), byte(27), byte(1), byte(17), 3, 0) // a shape without data
	f.Add([]byte(`{"quant_method": "gptq", "bits": 3, "dynamic": {"+:x": {}}}`), byte(10), byte(9), byte(1), 1, 1)
	f.Fuzz(func(t *testing.T, config []byte, layout, changed, dtype byte, n, k int) {
		q := testmodel.Quantisations[int(layout)%len(testmodel.Quantisations)]
		var infos []weights.Info
		for i, x := range q.Tensors(128, 256) {
			if i == int(changed) {
				x.DType, x.Shape = weights.DType(1+dtype%22), []int{n & 0xffff, k & 0xffff}
			}
			x.Name = "m.up_proj." + x.Name
			infos = append(infos, x)
		}
		infos = append(infos, weights.Info{Name: "m.norm.weight", DType: weights.BF16, Shape: []int{256}})
		js := append(append([]byte(`{"quantization_config": `), config...), '}')
		d, err := quant.Describe(&weights.Model{Config: js, Shards: []*weights.File{{Path: "model.safetensors", Tensors: infos}}})
		if err != nil {
			return
		}
		described := map[string]int{}
		for _, w := range d.Weights {
			for _, x := range w.Tensors {
				described[x.Name]++
			}
		}
		for _, x := range d.Others {
			described[x.Name]++
		}
		total := 0
		for _, x := range infos {
			total += described[x.Name]
			if described[x.Name] > 1 || d.Holds(x.Name) != (described[x.Name] == 1) {
				t.Errorf("%s is described %d times", x.Name, described[x.Name])
			}
		}
		if total != len(described) {
			t.Errorf("%v are described", described)
		}
	})
}

// FuzzRead: tensors of any layout with any bytes are read or refused. A matrix that is read is encoded to the same bytes, and its
// rows equal the rows of the matrix.
func FuzzRead(f *testing.F) {
	for i, q := range testmodel.Quantisations {
		f.Add(byte(i), byte(8), byte(16), []byte{0x11, 0x3C, 0x77}, byte(0), byte(0), byte(0))
		f.Add(byte(i), byte(1), byte(3), []byte{255}, byte(1), byte(7), byte(len(q.Tensors(8, 8))))
	}
	f.Fuzz(func(t *testing.T, layout, n, k byte, data []byte, changed, size, dtype byte) {
		q := testmodel.Quantisations[int(layout)%len(testmodel.Quantisations)]
		var infos []weights.Info
		for i, x := range q.Tensors(8*int(n%9), 16*int(k%9)) {
			if i+1 == int(changed) {
				x.DType = weights.DType(1 + dtype%22)
				if len(x.Shape) > 0 {
					x.Shape[len(x.Shape)-1] = int(size)
				}
			}
			x.Name = "m." + x.Name
			if x.Len()*x.DType.Bits()%8 != 0 || x.Len() > 1<<16 {
				return
			}
			infos = append(infos, x)
		}
		if len(data) == 0 || len(infos) == 0 {
			return
		}
		file, err := weights.Arrange("model.safetensors", infos, nil, func(x weights.Info) []byte {
			return slices.Repeat(data, int(x.Size())/len(data)+2)[int(x.Begin)%len(data):][:x.Size()]
		})
		if err != nil {
			return
		}
		defer file.Close()
		m := &weights.Model{Config: []byte(`{"quantization_config": ` + q.Config + `}`), Shards: []*weights.File{file}}
		d, err := quant.Describe(m)
		if err != nil {
			return
		}
		for _, w := range quant.Group(m, d).All {
			if w.Quantised != nil {
				read(t, w, w.Quantised)
			}
		}
	})
}

// read reads a weight in both ways and encodes it.
func read(t *testing.T, whole *quant.Weight, w *quant.Quantised) {
	checked := w.Check()
	rows := whole.ReadRows(nil, 0, whole.Rows)
	for expert := range w.Experts() {
		m, err := w.Read(expert)
		if err != nil {
			if checked == nil {
				t.Errorf("%s: Check finds nothing, and Read %v", w.Name, err)
			}
			return
		}
		err = w.Encode(m, expert, func(part int, at int64, b []byte) error {
			if !bytes.Equal(w.Tensors[part].Data[at:at+int64(len(b))], b) {
				t.Errorf("%s: part %d has other bytes", w.Name, part)
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: what was read cannot be encoded: %v", w.Name, err)
		}
		row := make([]float32, m.K)
		for n := range m.N {
			m.Row(row, n)
			for k, v := range row {
				at := (expert*m.N+n)*m.K + k
				if got := binary.LittleEndian.Uint32(rows[4*at:]); got != math.Float32bits(v) && v == v {
					t.Errorf("%s: element %d, %d is %v in the matrix and %v in its rows", w.Name, n, k, v, math.Float32frombits(got))
					return
				}
			}
		}
	}
	if checked != nil {
		t.Errorf("%s: Read finds nothing, and Check %v", w.Name, checked)
	}
}
