package synth

import (
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

func TestEveryNamedConfigOpens(t *testing.T) {
	for _, name := range Names() {
		config := named(t, name)
		family, err := arch.Detect(config)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want, err := family.Expect(config)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !strings.HasSuffix(name, "-tiny") {
			continue
		}
		dir := filepath.Join(t.TempDir(), name)
		if err := Folder(context.Background(), config, dir, Options{ShardBytes: 40_000}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		sizes := sizeByTensor(t, dir)
		if len(sizes) != len(want) {
			t.Errorf("%s: %d tensors written, %d expected", name, len(sizes), len(want))
		}
		if n := total(sizes); n > 200_000 {
			t.Errorf("%s: %d bytes of weights are too many for tests", name, n)
		}
	}
}

func TestSameBytesAtAnyNumberOfWorkers(t *testing.T) {
	var want map[string][32]byte
	for _, workers := range []int{1, 2, 7} {
		got := sums(t, write(t, "llama-tiny", Options{Seed: 5, ShardBytes: 40_000, Workers: workers}))
		if len(got) < 4 {
			t.Fatalf("files %v, want several shards, an index and a config", got)
		}
		if want == nil {
			want = got
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d workers: (-1 worker +this)\n%s", workers, diff)
		}
	}
	if other := sums(t, write(t, "llama-tiny", Options{Seed: 6, ShardBytes: 40_000})); cmp.Equal(want, other) {
		t.Error("another seed gave the same files")
	}
}

func TestSingleFileHasNoIndex(t *testing.T) {
	var names []string
	for name := range sums(t, write(t, "gpt2-tiny", Options{})) {
		names = append(names, name)
	}
	if len(names) != 2 {
		t.Errorf("files %v, want config.json and model.safetensors", names)
	}
}

func TestDType(t *testing.T) {
	base := total(sizeByTensor(t, write(t, "gpt2-tiny", Options{})))
	for d, ratio := range map[weights.DType]float64{weights.F32: 2, weights.F16: 1, weights.I8: 0.5, weights.F8E4M3: 0.5} {
		dir := write(t, "gpt2-tiny", Options{DType: d})
		if got := float64(total(sizeByTensor(t, dir))) / float64(base); got < ratio || got > ratio*1.1 {
			t.Errorf("%s: %.2f times the bytes of BF16, want %.2f and a little for vectors", d, got, ratio)
		}
		config, err := os.ReadFile(filepath.Join(dir, "config.json"))
		if err != nil {
			t.Fatal(err)
		}
		name := d.Torch()
		if d.Bits() == 8 {
			name = "bfloat16" // vectors keep the config's type
		}
		if !strings.Contains(string(config), `"dtype": "`+name+`"`) {
			t.Errorf("%s: config.json does not say %s:\n%s", d, name, config)
		}
	}
}

func TestProgressReachesTotal(t *testing.T) {
	var last, all int64
	dir := write(t, "llama-tiny", Options{ShardBytes: 40_000, Progress: func(done, total int64) {
		if done < last || done > total {
			t.Errorf("progress went from %d to %d of %d", last, done, total)
		}
		last, all = done, total
	}})
	if want := total(sizeByTensor(t, dir)); last != want || all != want {
		t.Errorf("progress ended at %d of %d, %d bytes were written", last, all, want)
	}
}

func TestCancelLeavesNothing(t *testing.T) {
	for _, stopAfter := range []int{0, 1, 5, 20, 21} { // blocks; 21 are all
		parent := t.TempDir()
		ctx, cancel := context.WithCancel(context.Background())
		calls := 0
		if stopAfter == 0 {
			cancel()
		}
		err := Folder(ctx, named(t, "llama-tiny"), filepath.Join(parent, "out"), Options{
			ShardBytes: 40_000,
			Progress: func(_, _ int64) {
				if calls++; calls == stopAfter {
					cancel()
				}
			},
		})
		cancel()
		if calls != stopAfter || !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled after %d blocks: error %v after %d", stopAfter, err, calls)
		}
		empty(t, parent)
	}
}

func TestErrors(t *testing.T) {
	existing := t.TempDir()
	tests := []struct {
		name, config, dir string
		dtype             weights.DType
		want              string
	}{
		{"folder exists", string(named(t, "llama-tiny")), existing, 0, ": file already exists: choose another folder"},
		{"no parent", string(named(t, "llama-tiny")), filepath.Join(existing, "a", "b"), 0, "no such file or directory"},
		{"not JSON", `{"model_type"`, filepath.Join(existing, "out"), 0, "JSON"},
		{"no object", `null`, filepath.Join(existing, "out"), weights.F32, ""},
		{"unknown family", `{"model_type": "abacus"}`, filepath.Join(existing, "out"), 0, "abacus"},
		{"dtype", string(named(t, "llama-tiny")), filepath.Join(existing, "out"), weights.U8, "values of type U8 cannot be generated"},
	}
	for _, test := range tests {
		err := Folder(context.Background(), []byte(test.config), test.dir, Options{DType: test.dtype})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want one with %q", test.name, err, test.want)
		}
		empty(t, existing)
	}
}

func TestFolderMadeMeanwhileIsKept(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "out")
	err := Folder(context.Background(), named(t, "gpt2-tiny"), dir, Options{Progress: func(done, total int64) {
		if done == total {
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Error(err)
			}
		}
	}})
	if !errors.Is(err, fs.ErrExist) {
		t.Errorf("error %v, want one that says the folder exists", err)
	}
	empty(t, dir)
}

func TestUnknownName(t *testing.T) {
	_, err := Config("llama-9000")
	want := `no configuration is named "llama-9000"; there are ` + strings.Join(Names(), ", ")
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// write makes a folder of a named configuration.
func write(t *testing.T, name string, o Options) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), name)
	if err := Folder(context.Background(), named(t, name), dir, o); err != nil {
		t.Fatal(err)
	}
	return dir
}

func named(t *testing.T, name string) []byte {
	t.Helper()
	config, err := Config(name)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// sums hashes every file of dir.
func sums(t *testing.T, dir string) map[string][32]byte {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][32]byte{}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[e.Name()] = sha256.Sum256(data)
	}
	return all
}

// sizeByTensor opens the folder and lists its tensors' bytes.
func sizeByTensor(t *testing.T, dir string) map[string]int64 {
	t.Helper()
	m, err := weights.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	sizes := map[string]int64{}
	for _, s := range m.Shards {
		for _, info := range s.Tensors {
			sizes[info.Name] = info.Size()
		}
	}
	return sizes
}

func total(sizes map[string]int64) (n int64) {
	for _, size := range sizes {
		n += size
	}
	return n
}

func empty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		t.Errorf("%s is left in %s", e.Name(), dir)
	}
}
