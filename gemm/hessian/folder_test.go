package hessian_test

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/gemm/hessian"
	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
)

// again collects with weights that fail at every read.
func (s subject) again(dir, key string) (*hessian.Store, error) {
	return hessian.Collect(context.Background(), s.decoder, &dies{Weights: s.weights}, s.tokens, dir, hessian.Options{Key: key})
}

func TestFinishedFolderIsTaken(t *testing.T) {
	s, dir := tiny(t, "llama-tiny"), filepath.Join(t.TempDir(), "made", "on the way")
	var progress []int
	first := s.collect(t, dir, hessian.Options{Key: "a", Progress: func(done, total int) { progress = append(progress, done, total) }})
	if diff := cmp.Diff([]int{1, 3, 2, 3, 3, 3}, progress); diff != "" { // two blocks and the head
		t.Errorf("progress (-want +got)\n%s", diff)
	}
	before := contents(t, dir)
	second, err := s.again(dir, "a")
	if err != nil {
		t.Fatal(err)
	}
	same(t, first, second)
	if !cmp.Equal(before, contents(t, dir)) {
		t.Error("the folder has changed")
	}
}

// same compares all statistics of two stores.
func same(t *testing.T, a, b *hessian.Store) {
	t.Helper()
	described(t, a, b)
	for _, layer := range a.Layers() {
		if !cmp.Equal(read(t, a, layer), read(t, b, layer)) {
			t.Errorf("moments of %s differ", layer)
		}
	}
}

// described compares the layers and ranges of two stores.
func described(t *testing.T, a, b *hessian.Store) {
	t.Helper()
	if diff := cmp.Diff(a.Layers(), b.Layers()); diff != "" {
		t.Fatalf("layers\n%s", diff)
	}
	for _, layer := range a.Layers() {
		x, _ := a.Range(layer)
		if y, ok := b.Range(layer); !ok || x != y {
			t.Errorf("range of %s: %v and %v", layer, x, y)
		}
	}
}

func TestAnotherKeyIsComputedAnew(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and nothing in it is shared by goroutines")
	}
	s, dir := tiny(t, "llama-tiny"), t.TempDir()
	beside := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(beside, []byte("mine"), 0o666); err != nil {
		t.Fatal(err)
	}
	gpt2 := tiny(t, "gpt2-tiny")
	old := gpt2.collect(t, dir, hessian.Options{Key: "a"})
	if _, err := s.again(dir, "b"); !errors.Is(err, errDied) {
		t.Fatalf("error %v, want that of the weights that are needed", err)
	}
	if _, err := s.again(dir, "a"); !errors.Is(err, errDied) {
		t.Fatalf("error %v: the folder is still taken for finished", err)
	}
	other := s.collect(t, dir, hessian.Options{Key: "b"})
	clean := t.TempDir()
	same(t, s.collect(t, clean, hessian.Options{Key: "b"}), other)
	if _, err := old.Read(t.Context(), old.Layers()[0]); err == nil {
		t.Error("the store of the first key still reads")
	}
	if err := os.Remove(beside); err != nil {
		t.Errorf("another file is gone: %v", err)
	}
	if !cmp.Equal(contents(t, clean), contents(t, dir)) {
		t.Error("the folder is not what a new one would be")
	}
}

// TestBrokenOffAnywhere interrupts the pass at each tensor that it reads, and continues.
func TestBrokenOffAnywhere(t *testing.T) {
	s, clean := tiny(t, "llama-tiny"), t.TempDir()
	s.collect(t, clean, hessian.Options{Key: "a"})
	want := contents(t, clean)
	dir, kept := "", 0
	layers := s.decoder.Layers()
	if testing.Short() {
		layers = layers[len(layers)-3:]
	}
	for _, layer := range layers {
		dir = t.TempDir()
		_, err := hessian.Collect(t.Context(), s.decoder, &dies{Weights: s.weights, tensor: layer.Tensor}, s.tokens, dir, hessian.Options{Key: "a"})
		if !errors.Is(err, errDied) {
			t.Fatalf("%s: error %v, want that of the weights", layer.Tensor, err)
		}
		before := infos(t, dir)
		kept = max(kept, len(before))
		s.collect(t, dir, hessian.Options{Key: "a"})
		if !cmp.Equal(want, contents(t, dir)) {
			t.Errorf("%s: the files differ from those of an uninterrupted run", layer.Tensor)
		}
		after := infos(t, dir)
		for path, info := range before {
			if !os.SameFile(info, after[path]) {
				t.Errorf("%s: %s was there and has been written again", layer.Tensor, path)
			}
		}
	}
	if all := len(infos(t, dir)); kept != all-1 {
		t.Errorf("at most %d of %d files were kept, want all but the head's", kept, all)
	}
}

func infos(t *testing.T, dir string) map[string]fs.FileInfo {
	t.Helper()
	all := map[string]fs.FileInfo{}
	for _, path := range moments(t, dir) {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		all[path] = info
	}
	return all
}

// TestUnfinishedFolder: collecting continues with the files of a killed process.
func TestUnfinishedFolder(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and nothing in it is shared by goroutines")
	}
	s, clean := tiny(t, "llama-tiny"), t.TempDir()
	want := s.collect(t, clean, hessian.Options{Key: "a"})
	for name, spoil := range map[string]func(files []string) error{
		"no index": func([]string) error { return nil },
		"a file that was being written": func(files []string) error {
			return os.WriteFile(filepath.Join(filepath.Dir(files[3]), "."+filepath.Base(files[3])+"123"), []byte("{"), 0o666)
		},
		"a file is missing":     func(files []string) error { return os.Remove(files[4]) },
		"a file is cut short":   func(files []string) error { return os.Truncate(files[2], 1000) },
		"a file is empty":       func(files []string) error { return os.Truncate(files[2], 0) },
		"a file has other bits": func(files []string) error { return flip(files[5], 2000, 1) },
		"a file is another's":   func(files []string) error { return os.Rename(files[6], files[7]) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(clean)); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(filepath.Join(dir, "index.json")); err != nil {
				t.Fatal(err)
			}
			if err := spoil(moments(t, dir)); err != nil {
				t.Fatal(err)
			}
			if whole := name == "no index" || strings.HasSuffix(name, "written"); whole {
				store, err := s.again(dir, "a") // all is there, so no weights are needed
				if err != nil {
					t.Fatal(err)
				}
				same(t, want, store)
			} else {
				same(t, want, s.collect(t, dir, hessian.Options{Key: "a"}))
			}
			if !cmp.Equal(contents(t, clean), contents(t, dir)) {
				t.Error("the folder is not what one run makes")
			}
		})
	}
}

// TestUnfinishedFolderOfOthers: complete files of the same key and other tokens, and of another key, are not used.
func TestUnfinishedFolderOfOthers(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and nothing in it is shared by goroutines")
	}
	s := tiny(t, "llama-tiny")
	fewer := subject{s.decoder, s.weights, s.tokens[1:]}
	changed := subject{s.decoder, scaled{s.weights, "model.norm.weight", 2}, s.tokens}
	for name, other := range map[string]subject{"a": fewer, "b": changed} {
		dir := t.TempDir()
		s.collect(t, dir, hessian.Options{Key: "a"})
		if err := os.Remove(filepath.Join(dir, "index.json")); err != nil {
			t.Fatal(err)
		}
		same(t, other.collect(t, t.TempDir(), hessian.Options{Key: name}), other.collect(t, dir, hessian.Options{Key: name}))
	}
}

func flip(path string, at int, mask byte) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	data[at] ^= mask
	return os.WriteFile(path, data, 0o666)
}

// TestEveryByteOfAFileCounts changes each byte of a file.
func TestEveryByteOfAFileCounts(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and nothing in it is shared by goroutines")
	}
	s, dir := tiny(t, "llama-tiny"), t.TempDir()
	store := s.collect(t, dir, hessian.Options{Key: "a"})
	layer := store.Layers()[0]
	path := filepath.Join(dir, layer+".moments")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := read(t, store, layer)
	r := rand.New(rand.NewPCG(1, 2))
	for at := range data {
		wrong := slices.Clone(data)
		wrong[at] ^= byte(1 + r.IntN(255))
		if err := os.WriteFile(path, wrong, 0o666); err != nil {
			t.Fatal(err)
		}
		holds(t, store, layer, path, want)
	}
	for _, wrong := range [][]byte{nil, data[:1], data[:len(data)-1], append(slices.Clone(data), 0), make([]byte, 1<<21)} {
		if err := os.WriteFile(path, wrong, 0o666); err != nil {
			t.Fatal(err)
		}
		holds(t, store, layer, path, want)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	holds(t, store, layer, path, want)
}

// TestFilesOfOthers replaces files by complete files of another layer, and of another key.
func TestFilesOfOthers(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and nothing in it is shared by goroutines")
	}
	s, dir, other := tiny(t, "llama-tiny"), t.TempDir(), t.TempDir()
	store := s.collect(t, dir, hessian.Options{Key: "a"})
	s.collect(t, other, hessian.Options{Key: "b"})
	layer := "model.layers.0.self_attn.q_proj.weight"
	path := filepath.Join(dir, layer+".moments")
	want := read(t, store, layer)
	for _, from := range []string{filepath.Join(dir, "model.layers.1.self_attn.q_proj.weight.moments"), filepath.Join(other, layer+".moments")} {
		data, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := store.Read(t.Context(), layer); err == nil {
			t.Errorf("%s was taken for %s", from, path)
		}
		holds(t, store, layer, path, want)
	}
}

// holds fails unless a layer's moments are as they were, or an error says what to do.
func holds(t *testing.T, s *hessian.Store, layer, path string, want sgemm.Matrix) {
	t.Helper()
	m, err := s.Read(t.Context(), layer)
	if err == nil && cmp.Equal(want, m) {
		return
	}
	if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "remove the folder "+filepath.Dir(path)) {
		t.Fatalf("error %v, want one that names the file and says to remove the folder", err)
	}
}

// TestEveryByteOfTheIndexCounts changes each byte of the index.
func TestEveryByteOfTheIndexCounts(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and nothing in it is shared by goroutines")
	}
	s, dir := tiny(t, "llama-tiny"), t.TempDir()
	want := s.collect(t, dir, hessian.Options{Key: "a"})
	path := filepath.Join(dir, "index.json")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(3, 4))
	taken := 0
	for at := range data {
		wrong := slices.Clone(data)
		wrong[at] ^= byte(1 + r.IntN(255))
		if at%2 == 0 { // of the same case, or another: names of fields are read without regard to it
			wrong[at] = data[at] ^ 0x20
		}
		if err := os.WriteFile(path, wrong, 0o666); err != nil {
			t.Fatal(err)
		}
		store, err := s.again(dir, "a")
		if err == nil {
			taken++
			described(t, want, store)
		} else if !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "choose another folder, or remove this one") {
			t.Fatalf("byte %d: error %v, want one that names the index and says what to do", at, err)
		}
	}
	if taken == len(data) {
		t.Error("no change was seen")
	}
}

func TestAnotherIndexIsLeftAlone(t *testing.T) {
	s, dir := tiny(t, "llama-tiny"), t.TempDir()
	path := filepath.Join(dir, "index.json")
	if err := os.WriteFile(path, []byte(`{"pages": 12}`), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := s.again(dir, "a"); err == nil || !strings.Contains(err.Error(), "is not an index of calibration statistics: choose another folder, or remove this one if it holds only calibration statistics") {
		t.Errorf("error %v, want one that says what to do", err)
	}
	if got := contents(t, dir); len(got) != 1 || got["index.json"] != `{"pages": 12}` {
		t.Errorf("the folder has changed: %q", got)
	}
}

func TestFolderThatCannotBeWritten(t *testing.T) {
	s := tiny(t, "llama-tiny")
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := s.again(file, "a"); err == nil {
		t.Error("a file was taken for a folder")
	}
	// If a file is to be written, there is a folder.
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "lm_head.weight.moments"), 0o777); err != nil {
		t.Fatal(err)
	}
	_, err := hessian.Collect(t.Context(), s.decoder, s.weights, s.tokens, dir, hessian.Options{Key: "a"})
	if err == nil || !strings.Contains(err.Error(), "lm_head") || !strings.Contains(err.Error(), "run again; finished statistics stay in "+dir) {
		t.Errorf("error %v, want one that names the file and says what to do", err)
	}
}

func TestKeyIsNeeded(t *testing.T) {
	s, dir := tiny(t, "llama-tiny"), filepath.Join(t.TempDir(), "new")
	if _, err := s.again(dir, ""); err == nil || !strings.Contains(err.Error(), "give one that identifies the model and the tokens") {
		t.Errorf("error %v, want one that asks for a key", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the folder was made")
	}
}

// cancels ends a context when its weights are asked for a tensor.
type cancels struct {
	forward.Weights
	tensor string
	cancel func()
}

func (c cancels) Tensor(ctx context.Context, name string) ([]float32, error) {
	if name == c.tensor {
		c.cancel()
	}
	return c.Weights.Tensor(context.WithoutCancel(ctx), name)
}

func TestContext(t *testing.T) {
	s := tiny(t, "llama-tiny")
	for _, layer := range []string{"model.embed_tokens.weight", "model.layers.1.mlp.down_proj.weight", "lm_head.weight"} {
		dir := t.TempDir()
		ctx, cancel := context.WithCancel(t.Context())
		w := cancels{s.weights, layer, cancel}
		if _, err := hessian.Collect(ctx, s.decoder, w, s.tokens, dir, hessian.Options{Key: "a"}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: error %v, want the context's", layer, err)
		}
		if _, ok := contents(t, dir)["index.json"]; ok {
			t.Errorf("%s: there is an index", layer)
		}
		store := s.collect(t, dir, hessian.Options{Key: "a"})
		if _, err := store.Read(ctx, store.Layers()[0]); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: reading: error %v, want the context's", layer, err)
		}
		if err := os.Remove(filepath.Join(dir, "index.json")); err != nil {
			t.Fatal(err)
		}
		if _, err := hessian.Collect(ctx, s.decoder, s.weights, s.tokens, dir, hessian.Options{Key: "a"}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: taking up: error %v, want the context's", layer, err)
		}
		if n := len(moments(t, dir)); n != 9 { // four in each of two blocks, and the head's
			t.Errorf("%s: taking up left %d files", layer, n)
		}
	}
}
