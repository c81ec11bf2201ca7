package quant_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// Every weight is read in pieces and stored unchanged, for every family and for types of other sizes.
func TestReadingAndStoringGivesTheSameBytes(t *testing.T) {
	for _, name := range synth.Names() {
		if strings.HasSuffix(name, "-tiny") {
			t.Run(name, func(t *testing.T) { checkRoundTrip(t, synthesize(t, name, synth.Options{Seed: 3, ShardBytes: 40_000})) })
		}
	}
	for _, d := range []weights.DType{weights.F32, weights.F16, weights.F8E4M3, weights.F8E5M2, weights.I8} {
		t.Run(d.String(), func(t *testing.T) { checkRoundTrip(t, synthesize(t, "llama-tiny", synth.Options{DType: d})) })
	}
}

func TestAdapterRoundTrip(t *testing.T) {
	dir := synthesize(t, "llama-tiny", synth.Options{ShardBytes: 40_000})
	writeFile(t, filepath.Join(dir, weights.AdapterName),
		tensor{"base_model.model.model.layers.0.mlp.up_proj.lora_A.weight", weights.F32, []int{2, 3}})
	checkRoundTrip(t, dir)
	m := open(t, dir)
	set := quant.Group(m, nil)
	for i, w := range set.All {
		last := i == len(set.All)-1
		if got := m.Files()[w.Parts[0].Shard] == m.Adapter; got != last || w.Adapter != last {
			t.Errorf("weight %d of %d, %s: lies in the adapter: %v, and says %v", i+1, len(set.All), w.Name, got, w.Adapter)
		}
	}
}

// Types without a format, scalars, empty tensors, and rows that do not end on a byte.
func TestOddShapesRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.safetensors")
	writeFile(t, path,
		tensor{"scalar", weights.I64, nil},
		tensor{"empty", weights.F32, []int{3, 0, 2}},
		tensor{"vector", weights.BF16, []int{5}},
		tensor{"cube", weights.F16, []int{2, 3, 4}},
		tensor{"halves", weights.F4, []int{4, 3}},
		tensor{"sixths", weights.F6E2M3, []int{8}},
		tensor{"nibbles", weights.F4, []int{3, 4}},
		tensor{"flags", weights.Bool, []int{7}})
	checkRoundTrip(t, path)

	want := map[string][3]int{"scalar": {1, 1, 8}, "empty": {0, 0, 0}, "vector": {5, 1, 2}, "cube": {6, 4, 8},
		"halves": {1, 12, 6}, "sixths": {1, 8, 6}, "nibbles": {3, 4, 2}, "flags": {7, 1, 1}}
	got := map[string][3]int{}
	for _, w := range quant.Group(open(t, path), nil).All {
		got[w.Name] = [3]int{w.Rows, w.Cols, w.RowBytes()}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows, columns and bytes of a row: (-want +got)\n%s", diff)
	}
}

func TestGroupKeepsTheModelsOrder(t *testing.T) {
	m := open(t, synthesize(t, "gpt2-tiny", synth.Options{ShardBytes: 40_000}))
	if len(m.Shards) < 2 {
		t.Fatal("one shard only")
	}
	set := quant.Group(m, nil)
	var got []weights.Info
	for _, w := range set.All {
		info := w.Info()
		got = append(got, weights.Info{Name: info.Name, DType: info.DType, Shape: info.Shape})
		if info.Size() != w.Parts[0].Size() {
			t.Errorf("%s: %d bytes of values, want %d", w.Name, info.Size(), w.Parts[0].Size())
		}
		if named, ok := set.Weight(w.Name); !ok || named != w {
			t.Errorf("%s is not found by its name", w.Name)
		}
	}
	var want []weights.Info
	for _, info := range m.Infos() {
		want = append(want, weights.Info{Name: info.Name, DType: info.DType, Shape: info.Shape})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("weights: (-want +got)\n%s", diff)
	}
	if _, ok := set.Weight("none"); ok {
		t.Error("a weight that is not there was found")
	}
}

// Rows of a plain weight are the mapped file itself: nothing is copied.
func TestPlainRowsAreTheFile(t *testing.T) {
	m := open(t, synthesize(t, "llama-tiny", synth.Options{}))
	for _, w := range quant.Group(m, nil).All {
		rows := w.ReadRows(nil, w.Rows-1, 1)
		if len(rows) != w.RowBytes() || &rows[0] != &w.Parts[0].Data[(w.Rows-1)*w.RowBytes()] {
			t.Errorf("%s: rows were copied", w.Name)
		}
		if cap(rows) != len(rows) {
			t.Errorf("%s: appending to rows would write into the file", w.Name)
		}
	}
}

// checkRoundTrip reads every weight in pieces of a few rows, stores the pieces, and compares the result with the data of
// every file. Each byte must be stored exactly once.
func checkRoundTrip(t *testing.T, path string) {
	t.Helper()
	m := open(t, path)
	set := quant.Group(m, nil)
	files := m.Files()
	data, times := make([][]byte, len(files)), make([][]byte, len(files))
	for i, f := range files {
		data[i], times[i] = make([]byte, len(f.Data())), make([]byte, len(f.Data()))
		var names []string
		for _, p := range set.Tensors(i) {
			names = append(names, p.Tensor().Name)
			if part := p.Weight.Parts[p.Part]; part.Shard != i {
				t.Errorf("%s: is in file %d, its part says %d", p.Tensor().Name, i, part.Shard)
			}
		}
		if want := slices.Collect(func(yield func(string) bool) {
			for _, info := range f.Tensors {
				if !yield(info.Name) {
					return
				}
			}
		}); !slices.Equal(names, want) {
			t.Errorf("%s: tensors %q, want %q", f.Path, names, want)
		}
	}
	for _, w := range set.All {
		step := 3 * w.Unit
		for first := 0; first < w.Rows; first += step {
			rows := w.ReadRows(nil, first, min(step, w.Rows-first))
			err := w.StoreRows(first, rows, func(part int, at int64, b []byte) error {
				p := w.Parts[part]
				at += p.Begin
				copy(data[p.Shard][at:], b)
				for i := range b {
					times[p.Shard][at+int64(i)]++
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, f := range files {
		if !bytes.Equal(data[i], f.Data()) {
			t.Errorf("%s: other bytes", f.Path)
		}
		if slices.ContainsFunc(times[i], func(n byte) bool { return n != 1 }) {
			t.Errorf("%s: a byte was not stored exactly once", f.Path)
		}
	}
}

func synthesize(t *testing.T, config string, o synth.Options) string {
	t.Helper()
	js, err := synth.Config(config)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "model")
	if err := synth.Folder(t.Context(), js, dir, o); err != nil {
		t.Fatal(err)
	}
	return dir
}

func open(t *testing.T, path string) *weights.Model {
	t.Helper()
	m, err := weights.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

type tensor struct {
	name  string
	dtype weights.DType
	shape []int
}

// writeFile writes tensors whose bytes all differ from their neighbours'.
func writeFile(t *testing.T, path string, tensors ...tensor) {
	t.Helper()
	var infos []weights.Info
	for _, x := range tensors {
		infos = append(infos, weights.Info{Name: x.name, DType: x.dtype, Shape: x.shape})
	}
	head, placed, err := weights.EncodeHeader(infos, nil)
	if err != nil {
		t.Fatal(err)
	}
	file := slices.Clone(head)
	for i := range placed[len(placed)-1].End {
		file = append(file, byte(1+i%251))
	}
	if err := os.WriteFile(path, file, 0o666); err != nil {
		t.Fatal(err)
	}
}
