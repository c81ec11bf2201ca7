package transform

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/synth"
	"pgregory.net/rapid"
)

// tb is what *testing.T and *rapid.T share.
type tb interface {
	Helper()
	Cleanup(func())
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func ok(t tb, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// kinds are the types that are transformed.
var kinds = []weights.DType{weights.BF16, weights.F16, weights.F32, weights.F8E4M3, weights.F8E5M2, weights.I8}

func formatOf(d weights.DType) weights.Format {
	f, _ := d.Format()
	return f
}

// config is a named configuration with fields changed by JSON such as `{"tie_word_embeddings": true}`.
func config(t tb, name, changes string) []byte {
	t.Helper()
	js, err := synth.Config(name)
	ok(t, err)
	var fields map[string]any
	ok(t, json.Unmarshal(js, &fields))
	if changes != "" {
		ok(t, json.Unmarshal([]byte(changes), &fields))
	}
	js, err = json.Marshal(fields)
	ok(t, err)
	return js
}

// folder writes a synthetic model and some other files, and returns its path.
func folder(t *testing.T, config []byte, o synth.Options) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "model")
	ok(t, synth.Folder(t.Context(), config, dir, o))
	ok(t, os.WriteFile(filepath.Join(dir, "tokenizer.json"), []byte(`{"a": 1}`), 0o666))
	ok(t, os.Mkdir(filepath.Join(dir, "onnx"), 0o777))
	ok(t, os.WriteFile(filepath.Join(dir, "onnx", "note.txt"), []byte("kept"), 0o666))
	return dir
}

func open(t *testing.T, dir string) *weights.Model {
	t.Helper()
	m, err := weights.Open(dir)
	ok(t, err)
	t.Cleanup(func() { m.Close() })
	return m
}

// tiny is a small model in two shards.
func tiny(t *testing.T, name string, d weights.DType) *weights.Model {
	t.Helper()
	return open(t, folder(t, config(t, name, ""), synth.Options{Seed: 1, DType: d, ShardBytes: 60_000}))
}

// edit rewrites tensors of the folder in place; fn gets each tensor's data.
func edit(t *testing.T, dir string, fn func(info weights.Info, data []byte)) {
	t.Helper()
	m, err := weights.Open(dir)
	ok(t, err)
	defer m.Close()
	for _, shard := range m.Shards {
		file := append(slices.Clone(shard.Head()), shard.Data()...)
		for _, info := range shard.Tensors {
			at := len(shard.Head()) + int(info.Begin)
			fn(info, file[at:at+int(info.Size())])
		}
		ok(t, os.Remove(shard.Path))
		ok(t, os.WriteFile(shard.Path, file, 0o666))
	}
}

// files reads all files under dir.
func files(t tb, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	ok(t, fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, path))
		all[path] = string(data)
		return err
	}))
	return all
}

func sameFiles(t tb, got, want map[string]string) {
	t.Helper()
	if g, w := slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)); !slices.Equal(g, w) {
		t.Fatalf("files are %v, want %v", g, w)
	}
	for name := range want {
		if got[name] != want[name] {
			t.Fatalf("file %s differs", name)
		}
	}
}

func choices(t tb, list string) []Choice {
	t.Helper()
	c, err := ParsePasses(list)
	ok(t, err)
	return c
}

// options for passes, with a budget where least is above 0.
func options(t tb, passes string, least float64) Options {
	t.Helper()
	o := Options{Cost: togglesCost{}, Workload: cost.Workload{Prefill: 0.5, Decode: 0.5}, Version: "test"}
	if passes != "" {
		o.Passes = choices(t, passes)
	}
	if least > 0 {
		o.MinSNR = &least
	}
	return o
}

func makePlan(t *testing.T, m *weights.Model, passes string, least float64) *Plan {
	t.Helper()
	p, err := Make(t.Context(), m, options(t, passes, least))
	ok(t, err)
	return p
}

// applied carries a plan out and returns the new folder.
func applied(t *testing.T, m *weights.Model, p *Plan) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	_, err := Apply(t.Context(), m, p, out, ApplyOptions{})
	ok(t, err)
	return out
}

// planOf is a plan of given steps for a model.
func planOf(t tb, m *weights.Model, steps ...*Step) *Plan {
	t.Helper()
	p := &Plan{Version: PlanVersion, Tool: "test", DropIn: true, Steps: steps}
	p.Request.Workload.Prefill = 1
	var err error
	p.Model, err = Fingerprint(m)
	ok(t, err)
	if l := layoutOf(t, m); l != nil {
		p.Model.Family = l.Family
	}
	for _, s := range steps {
		p.DropIn = p.DropIn && (s.Shift == nil || !s.Shift.Epilogue)
	}
	return p
}

func layoutOf(t tb, m *weights.Model) *arch.Layout {
	t.Helper()
	l, err := arch.ResolveIfKnown(m, nil)
	ok(t, err)
	return l
}

func tensorOf(t tb, m *weights.Model, name string) weights.Tensor {
	t.Helper()
	x, found := m.Tensor(name)
	if !found {
		t.Fatalf("no tensor %q", name)
	}
	return x
}

func values(x weights.Tensor) []float64 {
	list := make([]float64, x.Len())
	f := formatOf(x.DType)
	for i := range list {
		list[i] = float64(f.Value(f.Elem(x.Data, i)))
	}
	return list
}

// memory is a tensor that lies in no file.
func memory(d weights.DType, shape []int, data []byte) weights.Tensor {
	return weights.Tensor{Info: weights.Info{Name: "w", DType: d, Shape: shape, End: int64(len(data))}, Data: data, File: "memory"}
}

// matrix encodes values as a tensor in memory.
func matrix(d weights.DType, cols int, v []float32) weights.Tensor {
	f := formatOf(d)
	data := make([]byte, len(v)*f.Bits/8)
	for i, x := range v {
		f.SetElem(data, i, f.FromValue(x))
	}
	return memory(d, []int{len(v) / cols, cols}, data)
}

// alone is a target for one tensor outside any model.
func alone(x weights.Tensor, outAxis int) *target {
	f := formatOf(x.DType)
	p := &planner{ctx: context.Background(), opt: Options{Cost: togglesCost{}, Workload: cost.Workload{Prefill: 1}}}
	p.compiler = &compiler{ctx: p.ctx, syms: symmetries{}}
	t := &target{p: p, tensor: x, format: f, base: &program{src: x, format: f, unit: 1, outAxis: outAxis}}
	t.base.rows, t.base.cols = x.Matrix()
	return t
}

// result runs the steps over a target's tensor.
func (t *target) result(tt tb, steps ...*Step) weights.Tensor {
	tt.Helper()
	p := *t.base
	c := &compiler{ctx: context.Background(), syms: symmetries{}, prog: &p}
	for _, s := range steps {
		pass, _ := Lookup(s.Pass)
		ok(tt, pass.compile(s, c))
	}
	out := make([]byte, len(t.tensor.Data))
	p.run(out, 0, p.rows)
	return memory(t.tensor.DType, t.tensor.Shape, out)
}

func drawBytes(t *rapid.T, n int, label string) []byte {
	rng := rapid.Uint64().Draw(t, label)
	data := make([]byte, n)
	for i := range data {
		rng = rng*6364136223846793005 + 1442695040888963407
		data[i] = byte(rng >> 56)
	}
	return data
}

func wantError(t tb, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error; want one with %q", parts)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Fatalf("error %q lacks %q", err, p)
		}
	}
}

// nothingAt makes sure that neither an output nor its parts exist.
func nothingAt(t tb, out string) {
	t.Helper()
	for _, path := range []string{out, out + partialSuffix} {
		if _, err := os.Lstat(path); err == nil {
			t.Fatalf("%s exists", path)
		}
	}
}

func encoded(t tb, p *Plan) []byte {
	t.Helper()
	js, err := p.Encode()
	ok(t, err)
	return bytes.Clone(js)
}
