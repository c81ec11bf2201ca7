// Package testmodel makes small models and cost models for tests of several packages.
package testmodel

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/demo"
	"github.com/lowtoggle/lowtoggle/weights/synth"
	"github.com/lowtoggle/lowtoggle/weights/tokens"
)

// TB has the common methods of *testing.T and *rapid.T.
type TB interface {
	Helper()
	Cleanup(func())
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// OK ends a test at an error.
func OK(t TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// DTypes are the types that passes transform.
var DTypes = []weights.DType{weights.BF16, weights.F16, weights.F32, weights.F8E4M3, weights.F8E5M2, weights.I8}

// FormatOf returns the format of a type that has one.
func FormatOf(d weights.DType) weights.Format {
	f, _ := d.Format()
	return f
}

// Config returns a named configuration, with fields changed by JSON such as `{"tie_word_embeddings": true}`.
func Config(t TB, name, changes string) []byte {
	t.Helper()
	js, err := synth.Config(name)
	OK(t, err)
	var fields map[string]any
	OK(t, json.Unmarshal(js, &fields))
	if changes != "" {
		OK(t, json.Unmarshal([]byte(changes), &fields))
	}
	js, err = json.Marshal(fields)
	OK(t, err)
	return js
}

// Folder writes a synthetic model and some other files, and returns its path.
func Folder(t testing.TB, config []byte, o synth.Options) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "model")
	OK(t, synth.Folder(t.Context(), config, dir, o))
	OK(t, os.WriteFile(filepath.Join(dir, "tokenizer.json"), []byte(`{"a": 1}`), 0o666))
	OK(t, os.Mkdir(filepath.Join(dir, "onnx"), 0o777))
	OK(t, os.WriteFile(filepath.Join(dir, "onnx", "note.txt"), []byte("kept"), 0o666))
	return dir
}

// Open opens a model. The test closes it at its end.
func Open(t testing.TB, dir string) *weights.Model {
	t.Helper()
	m, err := weights.Open(dir)
	OK(t, err)
	t.Cleanup(func() { m.Close() })
	return m
}

// Random returns a small random model in one file.
func Random(t testing.TB, name string, seed uint64) *weights.Model {
	t.Helper()
	return Open(t, Folder(t, Config(t, name, ""), synth.Options{Seed: seed}))
}

// Pair returns two random models for an example, which has no TB, and a function that removes them.
func Pair(name string) (before, after *weights.Model, remove func()) {
	dir, err := os.MkdirTemp("", "testmodel")
	must(err)
	config, err := synth.Config(name)
	must(err)
	var models [2]*weights.Model
	for i := range models {
		folder := filepath.Join(dir, fmt.Sprint("model", i))
		must(synth.Folder(context.Background(), config, folder, synth.Options{Seed: uint64(i)}))
		models[i], err = weights.Open(folder)
		must(err)
	}
	return models[0], models[1], func() {
		models[0].Close()
		models[1].Close()
		os.RemoveAll(dir)
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// Trained returns the demo model with its calibration and evaluation tokens.
func Trained(t testing.TB) (m *weights.Model, calibration, evaluation tokens.Part) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "model")
	OK(t, demo.Write(dir))
	file, err := tokens.Open(tokens.Path(dir))
	OK(t, err)
	calibration, evaluation, _, err = file.Split()
	OK(t, err)
	return Open(t, dir), calibration, evaluation
}

// Tiny returns a small random model in two shards.
func Tiny(t testing.TB, name string, d weights.DType) *weights.Model {
	t.Helper()
	return Open(t, Folder(t, Config(t, name, ""), synth.Options{Seed: 1, DType: d, ShardBytes: 60_000}))
}

// Edit rewrites tensors of a folder in place. fn gets each tensor's data.
func Edit(t testing.TB, dir string, fn func(info weights.Info, data []byte)) {
	t.Helper()
	m, err := weights.Open(dir)
	OK(t, err)
	defer m.Close()
	for _, shard := range m.Shards {
		file := append(slices.Clone(shard.Head()), shard.Data()...)
		for _, info := range shard.Tensors {
			at := len(shard.Head()) + int(info.Begin)
			fn(info, file[at:at+int(info.Size())])
		}
		OK(t, os.Remove(shard.Path))
		OK(t, os.WriteFile(shard.Path, file, 0o666))
	}
}

// Alter adds tensors to a one-file model, or changes the types of its tensors.
func Alter(t *testing.T, dir string, change func(infos []weights.Info, data map[string][]byte) []weights.Info) {
	t.Helper()
	m := Open(t, dir)
	path := m.Shards[0].Path
	data := map[string][]byte{}
	for _, info := range m.Infos() {
		data[info.Name] = bytes.Clone(TensorOf(t, m, info.Name).Data)
	}
	infos := change(m.Infos(), data)
	head, placed, err := weights.EncodeHeader(infos, nil)
	OK(t, err)
	for _, info := range placed {
		head = append(head, data[info.Name]...)
	}
	OK(t, os.Remove(path))
	OK(t, os.WriteFile(path, head, 0o666))
}

// Files reads all files under dir.
func Files(t TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	OK(t, fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, path))
		all[path] = string(data)
		return err
	}))
	return all
}

// SameFiles fails the test if two folders' files differ.
func SameFiles(t TB, got, want map[string]string) {
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

// LayoutOf returns the layout of a model; nil for an unknown family.
func LayoutOf(t TB, m *weights.Model) *arch.Layout {
	t.Helper()
	l, err := arch.ResolveIfKnown(m, nil)
	OK(t, err)
	return l
}

// TensorOf returns a tensor of a model. If there is none, the test fails.
func TensorOf(t TB, m *weights.Model, name string) weights.Tensor {
	t.Helper()
	x, found := m.Tensor(name)
	if !found {
		t.Fatalf("no tensor %q", name)
	}
	return x
}

// Values returns the values of a tensor.
func Values(x weights.Tensor) []float64 {
	list := make([]float64, x.Len())
	f := FormatOf(x.DType)
	for i := range list {
		list[i] = float64(f.Value(f.Elem(x.Data, i)))
	}
	return list
}

// Memory returns a tensor in memory.
func Memory(d weights.DType, shape []int, data []byte) weights.Tensor {
	return weights.Tensor{Info: weights.Info{Name: "w", DType: d, Shape: shape, End: int64(len(data))}, Data: data, File: "memory"}
}

// Matrix encodes values as a tensor in memory.
func Matrix(d weights.DType, cols int, v []float32) weights.Tensor {
	f := FormatOf(d)
	data := make([]byte, len(v)*f.Bits/8)
	for i, x := range v {
		f.SetElem(data, i, f.FromValue(x))
	}
	return Memory(d, []int{len(v) / cols, cols}, data)
}

// DrawBytes draws n random bytes.
func DrawBytes(t *rapid.T, n int, label string) []byte {
	rng := rapid.Uint64().Draw(t, label)
	data := make([]byte, n)
	for i := range data {
		rng = rng*6364136223846793005 + 1442695040888963407
		data[i] = byte(rng >> 56)
	}
	return data
}

// WantError fails the test if an error is nil or its text lacks one of the parts.
func WantError(t TB, err error, parts ...string) {
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

// TogglesCost is a cost model for tests. Energy is proportional to the bits that differ between neighbours in memory.
// Coarse values therefore save energy, and contiguous zeros save more than scattered ones.
type TogglesCost struct{}

func (TogglesCost) Energy(_ context.Context, w cost.Weights, _ cost.Role, _ cost.Workload) (cost.Estimate, error) {
	size := w.DType.Bits() / 8
	toggles, all := 0, 0
	for _, band := range w.Bands {
		a, b := band.Data[:max(0, len(band.Data)-size)], band.Data[min(size, len(band.Data)):]
		all += 8 * len(a)
		for ; len(a) >= 8; a, b = a[8:], b[8:] {
			toggles += bits.OnesCount64(binary.LittleEndian.Uint64(a) ^ binary.LittleEndian.Uint64(b))
		}
		for i := range a {
			toggles += bits.OnesCount8(a[i] ^ b[i])
		}
	}
	e := 2 * float64(toggles) / float64(max(1, all))
	return cost.Estimate{Relative: e, Interval: [2]float64{e - 0.01, e + 0.01}, Calibration: "toggles"}, nil
}

// CostFunc is a cost model of one function.
type CostFunc func(ctx context.Context, w cost.Weights, role cost.Role, l cost.Workload) (cost.Estimate, error)

func (f CostFunc) Energy(ctx context.Context, w cost.Weights, role cost.Role, l cost.Workload) (cost.Estimate, error) {
	return f(ctx, w, role, l)
}

// Lags returns the H200's lags, with streaming outputs in the streaming role.
func (TogglesCost) Lags(_ context.Context, w cost.Weights, axis int, role cost.Role, l cost.Workload) ([]cost.Lag, error) {
	c, err := cost.FindCalibration("h200")
	if err != nil {
		return nil, err
	}
	return c.Facts.Lags(w, axis, role == cost.Streaming, l), nil
}

// Lags returns the lags of TogglesCost.
func (f CostFunc) Lags(ctx context.Context, w cost.Weights, axis int, role cost.Role, l cost.Workload) ([]cost.Lag, error) {
	return TogglesCost{}.Lags(ctx, w, axis, role, l)
}
