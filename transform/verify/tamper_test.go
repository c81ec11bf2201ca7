package verify_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/verify"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// TestHalfAFoldIsSeen: only the fills of a fold are kept, and every layer is the source's again.
func TestHalfAFoldIsSeen(t *testing.T) {
	src := source(t, "gpt2-tiny", weights.F32)
	out := convert(t, src, "shift", 0)
	m := open(t, src)
	editManifest(t, out, func(man map[string]any) {
		var fills []any
		for _, s := range steps(man, "shift") {
			if s["shift"].(map[string]any)["fill"] != nil {
				fills = append(fills, s)
				continue
			}
			original, _ := m.Tensor(s["tensor"].(string))
			edit(t, out, original.Name, func(data []byte) { copy(data, original.Data) })
		}
		man["plan"].(map[string]any)["steps"] = fills
	})
	vouch(t, out)
	wantProblem(t, report(t, src, out), "is folded only in part: the plan has 2 of ")
}

// TestOtherFilesAreSeen: a result that all runtimes can use must have the source's index and config.json. A config.json that does not
// describe a quantisation is one problem.
func TestOtherFilesAreSeen(t *testing.T) {
	src := source(t, "llama-tiny", weights.BF16)
	for name, change := range map[string]func(text string) string{
		weights.IndexName:  func(text string) string { return text + "\n" },
		weights.ConfigName: func(text string) string { return strings.Replace(text, "{", `{"quantization_config": 3, `, 1) },
	} {
		out := convert(t, src, "", 0)
		wantOK(t, report(t, src, out))
		path := filepath.Join(out, name)
		text, err := os.ReadFile(path)
		ok(t, err)
		replace(t, path, []byte(change(string(text))))
		if got, want := problems(report(t, src, out)), "file "+name+" differs from the source's"; got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestWrongExtrasAreSeen(t *testing.T) {
	const extra = "model.layers.0.self_attn.q_proj.weight" + weights.ShiftSuffix
	src := source(t, "llama-tiny", 0)
	out := convert(t, src, "shift=4/epilogue", 0)
	edit(t, out, extra, func(data []byte) { data[6] ^= 0x80 })
	vouch(t, out)
	wantProblem(t, report(t, src, out), `"`+extra+`" holds`)

	out = convert(t, src, "shift=4/epilogue", 0)
	gone := ""
	rebuilt(t, out, func(infos []weights.Info) []weights.Info {
		i := slices.IndexFunc(infos, func(x weights.Info) bool { return strings.HasSuffix(x.Name, weights.ShiftSuffix) })
		gone = infos[i].Name
		return slices.Delete(infos, i, i+1)
	})
	wantProblem(t, report(t, src, out), `tensor "`+gone+`" is missing from the output: a runtime needs it`)

	out = convert(t, src, "shift=4/epilogue", 0)
	rebuilt(t, out, func(infos []weights.Info) []weights.Info {
		i := slices.IndexFunc(infos, func(x weights.Info) bool { return x.Name == gone })
		infos[i].Shape = []int{1, infos[i].Shape[0]}
		return infos
	})
	wantProblem(t, report(t, src, out), `, not F32[`)
}

func TestOtherHeadersAreSeen(t *testing.T) {
	src := source(t, "llama-tiny", 0)
	out := convert(t, src, "round=2", 0)
	shard := open(t, out).Shards[0]
	head, _, err := weights.EncodeHeader(shard.Tensors, map[string]string{"format": "other"})
	ok(t, err)
	replace(t, shard.Path, append(head, shard.Data()...))
	vouch(t, out)
	wantProblem(t, report(t, src, out), "the metadata differ")

	out = convert(t, src, "round=2", 0)
	rebuilt(t, out, func(infos []weights.Info) []weights.Info { slices.Reverse(infos); return infos })
	wantProblem(t, report(t, src, out), shard.Path[len(filepath.Dir(shard.Path)):])
}

func TestATensorInAnotherShardIsSeen(t *testing.T) {
	src := source(t, "llama-tiny", 0)
	out := convert(t, src, "round=2", 0)
	m := open(t, out)
	first, second := filepath.Base(m.Shards[0].Path), filepath.Base(m.Shards[1].Path)
	contents := map[string][]byte{}
	for i, name := range []string{second, first} { // exchange the two shards
		contents[name] = append(slices.Clone(m.Shards[i].Head()), m.Shards[i].Data()...)
	}
	weightMap := map[string]string{}
	for i, name := range []string{second, first} {
		for _, x := range m.Shards[i].Tensors {
			weightMap[x.Name] = name
		}
	}
	for name, data := range contents {
		replace(t, filepath.Join(out, name), data)
	}
	ok(t, os.WriteFile(m.Index, weights.EncodeIndex(weightMap, 0), 0o666))
	vouch(t, out)
	wantProblem(t, report(t, src, out), "is in the shard "+second+", and the source's is in "+first)
}

func TestThreeDimensions(t *testing.T) {
	family, err := arch.Parse([]byte(`{
		"family": "stacks", "doc": "Two stacked layers.", "model_types": ["stacks"],
		"dims": [{"name": "hidden", "fields": ["hidden_size"]}, {"name": "neurons", "value": "8"}, {"name": "experts", "value": "3"}],
		"indices": [
			{"name": "residual", "length": "hidden", "permute": "always", "sign": "always"},
			{"name": "ffn", "length": "neurons", "permute": "always", "sign": "always"},
			{"name": "stacked", "length": "experts", "permute": "always"}],
		"tensors": [
			{"name": "up", "role": "linear", "axes": ["stacked", "+ffn", "+residual"]},
			{"name": "down", "role": "linear", "axes": ["stacked", "+residual", "+ffn"]}]}`))
	ok(t, err)
	dir := filepath.Join(t.TempDir(), "model")
	ok(t, os.Mkdir(dir, 0o777))
	ok(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"model_type": "stacks", "hidden_size": 6}`), 0o666))
	head, placed, err := weights.EncodeHeader([]weights.Info{
		{Name: "up", DType: weights.F32, Shape: []int{3, 8, 6}}, {Name: "down", DType: weights.F32, Shape: []int{3, 6, 8}}}, nil)
	ok(t, err)
	data := make([]byte, placed[1].End)
	f, _ := weights.F32.Format()
	for i := range len(data) / 4 {
		f.SetElem(data, i, f.FromValue(float32(i+1)*0.37))
	}
	ok(t, os.WriteFile(filepath.Join(dir, "model.safetensors"), append(head, data...), 0o666))
	m := open(t, dir)
	p := &plan.Plan{Version: plan.Version, DropIn: true, Steps: []*plan.Step{
		{Pass: "reorder", Index: "ffn", Data: []int{3, 1, 0, 2, 7, 6, 5, 4}}, {Pass: "reorder", Index: "stacked", Data: []int{2, 0, 1}},
		{Pass: "reorder", Index: "residual", Data: []int{5, 4, 0, 1, 3, 2}},
		{Pass: "signs", Index: "ffn", Data: []int{2, 3}}, {Pass: "signs", Index: "residual", Data: []int{0}},
		{Pass: "sparsify", Tensor: "up", Data: pass.Zeros{Block: &[2]int{2, 2}, Threshold: 60}}}}
	p.Request.Workload.Prefill = 1
	p.Model, err = plan.Fingerprint(m)
	ok(t, err)
	p.Model.Family = "stacks"
	out := filepath.Join(t.TempDir(), "out")
	_, err = transform.Apply(t.Context(), m, p, out, transform.ApplyOptions{Family: family})
	ok(t, err)
	look := func() *verify.Report {
		r, err := transform.Verify(t.Context(), open(t, dir), open(t, out), transform.VerifyOptions{Family: family})
		ok(t, err)
		return r
	}
	wantOK(t, look())
	edit(t, out, "down", func(data []byte) { data[100] ^= 1 })
	vouch(t, out)
	wantProblem(t, look(), "down: ")
}

func TestBitsZeroedInJSON(t *testing.T) {
	for dtype, want := range map[string]bool{"BF16": true, "I8": true, "I64": false, "BOOL": false} {
		js, err := json.Marshal(verify.Tensor{Name: "x", DType: dtype})
		ok(t, err)
		if got := strings.Contains(string(js), `"bits_zeroed":0`); got != want || !strings.Contains(string(js), `"name":"x"`) {
			t.Errorf("%s: %s", dtype, js)
		}
	}
}

func TestZerosElsewhereAreSeen(t *testing.T) {
	if testing.Short() {
		t.Skip("slow, and without shared data for the race detector")
	}
	const up = "model.layers.1.mlp.up_proj.weight"
	f, _ := weights.BF16.Format()
	src := source(t, "llama-tiny", 0)
	original, _ := open(t, src).Tensor(up)
	for _, passes := range []string{"sparsify=0.3/element", "sparsify=0.3/8x4", "sparsify=0.3/runs", "sparsify=2:4", "sparsify=0.3/element,grid=16"} {
		for name, change := range map[string]func(data []byte, i int) bool{
			"one more": func(data []byte, i int) bool {
				if v := f.Value(f.Elem(data, i)); math.Abs(float64(v)) < 0.02 {
					return false
				}
				f.SetElem(data, i, 0)
				return true
			},
			"one less": func(data []byte, i int) bool {
				if f.Value(f.Elem(data, i)) != 0 || f.Value(f.Elem(original.Data, i)) == 0 {
					return false
				}
				f.SetElem(data, i, f.Elem(original.Data, i))
				return true
			},
		} {
			t.Run(passes+" "+name, func(t *testing.T) {
				out := convert(t, src, passes, 0)
				wantOK(t, report(t, src, out))
				edit(t, out, up, func(data []byte) {
					for i := range len(data) / 2 {
						if change(data, i) {
							return
						}
					}
					t.Fatal("no value to change")
				})
				vouch(t, out)
				wantProblem(t, report(t, src, out), up+": ")
			})
		}
	}
}
