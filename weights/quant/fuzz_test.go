package quant_test

import (
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// FuzzDescribe: any config beside the tensors of any layout, one of another shape and type, is described or refused.
// What is described are tensors of the model, each once.
func FuzzDescribe(f *testing.F) {
	for i, q := range testmodel.Quantisations {
		f.Add([]byte(q.Config), byte(i), byte(0), byte(8), 128, 256)
		f.Add([]byte(q.Config), byte(i), byte(1), byte(12), 3, 0)
	}
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
