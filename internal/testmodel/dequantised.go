package testmodel

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// Dequantised writes an unquantised copy of a quantised model in F32 and returns its folder. Each value is decoded by itself. Weights for which transposed returns true are stored as inputs × outputs.
// transposed may be nil.
func Dequantised(t testing.TB, m *weights.Model, transposed func(name string) bool) string {
	t.Helper()
	q, err := quant.Describe(m)
	OK(t, err)
	data := map[string][]byte{}
	var infos []weights.Info
	for _, i := range m.Infos() {
		if !q.Holds(i.Name) {
			infos = append(infos, weights.Info{Name: i.Name, DType: weights.F32, Shape: i.Shape})
			for _, v := range Values(TensorOf(t, m, i.Name)) {
				data[i.Name] = binary.LittleEndian.AppendUint32(data[i.Name], math.Float32bits(float32(v)))
			}
		}
	}
	for _, w := range q.Weights {
		info := weights.Info{Name: w.Name, DType: weights.F32, Shape: w.Shape}
		for expert := range w.Experts() {
			values, err := w.Read(expert)
			OK(t, err)
			rows, cols, at := values.N, values.K, values.Value
			if transposed != nil && transposed(w.Name) {
				info.Shape = []int{values.K, values.N}
				rows, cols, at = cols, rows, func(k, n int) float32 { return values.Value(n, k) }
			}
			for r := range rows {
				for c := range cols {
					data[w.Name] = binary.LittleEndian.AppendUint32(data[w.Name], math.Float32bits(at(r, c)))
				}
			}
		}
		infos = append(infos, info)
	}
	dir := filepath.Join(t.TempDir(), "dequantised")
	OK(t, os.Mkdir(dir, 0o777))
	head, placed, err := weights.EncodeHeader(infos, nil)
	OK(t, err)
	for _, i := range placed {
		head = append(head, data[i.Name]...)
	}
	OK(t, os.WriteFile(filepath.Join(dir, "model.safetensors"), head, 0o666))
	var fields map[string]any
	OK(t, json.Unmarshal(m.Config, &fields))
	delete(fields, "quantization_config")
	js, err := json.Marshal(fields)
	OK(t, err)
	OK(t, os.WriteFile(filepath.Join(dir, weights.ConfigName), js, 0o666))
	return dir
}
