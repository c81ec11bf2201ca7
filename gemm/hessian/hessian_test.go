package hessian_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowtoggle/lowtoggle/gemm/hessian"
	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
)

// seen keeps all inputs.
type seen struct {
	groups [][]string
	x      map[string][][]float32 // rows, by the first layer's name
}

func (s *seen) Input(names []string, x sgemm.Matrix) error {
	if s.x[names[0]] == nil {
		s.groups = append(s.groups, slices.Clone(names))
	}
	for i := range x.Rows {
		s.x[names[0]] = append(s.x[names[0]], slices.Clone(x.Row(i)))
	}
	return nil
}

// reference is H, from the diagonal on, and the range of an input, in float64.
func reference(x [][]float32) ([][]float64, hessian.Range) {
	width := len(x[0])
	h := make([][]float64, width)
	for i := range h {
		h[i] = make([]float64, width)
	}
	r := hessian.Range{Min: math.Inf(1), Max: math.Inf(-1)}
	squares := 0.0
	for _, row := range x {
		for i, v := range row {
			r.Min, r.Max = min(r.Min, float64(v)), max(r.Max, float64(v))
			squares += float64(v) * float64(v)
			for j := i; j < width; j++ {
				h[i][j] += float64(v) * float64(row[j]) / float64(len(x))
			}
		}
	}
	r.RMS = math.Sqrt(squares / float64(len(x)*width))
	return h, r
}

func TestHessiansAreThoseInFloat64(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and the tests of workers share as much")
	}
	subjects := map[string]subject{"gpt2": tiny(t, "gpt2-tiny"), "experts": tiny(t, "mixtral-tiny"), "demo": trained(t)}
	for name, s := range subjects {
		if s.length() < 2100 {
			t.Fatalf("%s: %d tokens are one batch", name, s.length())
		}
		store := s.collect(t, t.TempDir(), hessian.Options{Key: "a"})
		widest := 0
		for first, x := range s.observe(t).x {
			want, wantRange := reference(x)
			widest = max(widest, len(want))
			h, err := store.Read(t.Context(), first)
			if err != nil {
				t.Fatal(err)
			}
			if h.Rows != len(want) || h.Cols != len(want) {
				t.Fatalf("%s: %s: moments are %dx%d, want %d", name, first, h.Rows, h.Cols, len(want))
			}
			for i := range want {
				for j := i; j < len(want); j++ {
					// A batch's 2048 roundings, by Cauchy and Schwarz.
					bound := 2050 * 0x1p-24 * math.Sqrt(want[i][i]*want[j][j])
					if got := float64(h.Row(i)[j]); !(math.Abs(got-want[i][j]) <= bound) {
						t.Fatalf("%s: %s: H[%d][%d] is %g, want %g within %g", name, first, i, j, got, want[i][j], bound)
					}
					if h.Row(i)[j] != h.Row(j)[i] {
						t.Fatalf("%s: %s: H[%d][%d] is %g, and mirrored %g", name, first, i, j, h.Row(i)[j], h.Row(j)[i])
					}
				}
			}
			r, ok := store.Range(first)
			if !ok || r.Min != wantRange.Min || r.Max != wantRange.Max || !(math.Abs(r.RMS-wantRange.RMS) <= 1e-6*wantRange.RMS) {
				t.Errorf("%s: %s: range %v, want %v", name, first, r, wantRange)
			}
		}
		if name == "demo" && widest <= 256 {
			t.Errorf("the widest input of the demo model has %d channels: no second stripe", widest)
		}
	}
}

func TestLayersThatShareAnInputShareAFile(t *testing.T) {
	for _, name := range []string{"llama-tiny", "gpt2-tiny"} {
		s := tiny(t, name)
		dir := t.TempDir()
		store := s.collect(t, dir, hessian.Options{Key: "a"})
		groups := s.groups(t)
		if files := moments(t, dir); len(files) != len(groups) {
			t.Errorf("%s: %d files for %d inputs: %v", name, len(files), len(groups), files)
		}
		var all []string
		for _, l := range s.decoder.Layers() {
			all = append(all, l.Tensor)
		}
		if diff := cmp.Diff(all, store.Layers()); diff != "" {
			t.Errorf("%s: layers (-decoder +store)\n%s", name, diff)
		}
		shared := 0
		for _, group := range groups {
			first := read(t, store, group[0])
			for _, other := range group[1:] {
				shared++
				if diff := cmp.Diff(first, read(t, store, other)); diff != "" {
					t.Errorf("%s: %s and %s differ\n%s", name, group[0], other, diff)
				}
			}
		}
		if name == "llama-tiny" && shared != 3*s.decoder.Blocks() {
			t.Errorf("%d layers share an input, want k, v and up in %d blocks", shared, s.decoder.Blocks())
		}
	}
}

func TestUnknownLayer(t *testing.T) {
	s := tiny(t, "llama-tiny")
	store := s.collect(t, t.TempDir(), hessian.Options{Key: "a"})
	if _, err := store.Read(t.Context(), "model.norm.weight"); err == nil || !strings.Contains(err.Error(), `"model.norm.weight": has no statistics`) {
		t.Errorf("error %v, want one that names the tensor", err)
	}
	if _, ok := store.Range("model.norm.weight"); ok {
		t.Error("there is a range of a tensor that is no linear layer's")
	}
}

func TestSameBytesWithAnyNumberOfWorkers(t *testing.T) {
	numbers := []int{1, 5, 2, 0}
	if testing.Short() {
		numbers = numbers[:2]
	}
	for name, s := range map[string]subject{"demo": trained(t), "llama": tiny(t, "llama-tiny")} {
		var want map[string]string
		for _, workers := range numbers {
			dir := t.TempDir()
			s.decoder.Workers = workers
			s.collect(t, dir, hessian.Options{Key: "a", Workers: workers})
			got := contents(t, dir)
			if want == nil {
				want = got
			}
			if !cmp.Equal(want, got) {
				t.Errorf("%s: %d workers give other files than one", name, workers)
			}
		}
	}
}

func TestInputsThatAreNotFinite(t *testing.T) {
	s := tiny(t, "llama-tiny")
	for _, test := range []struct {
		tensor string
		factor float32
		want   string
	}{
		{"model.layers.1.input_layernorm.weight", float32(math.Inf(1)), `block 1: the inputs of "model.layers.1.self_attn.q_proj.weight" are not finite`},
		{"model.layers.0.self_attn.v_proj.weight", float32(math.NaN()), `block 0: the inputs of "model.layers.0.self_attn.o_proj.weight" are not finite`},
		{"model.layers.0.mlp.up_proj.weight", 1e30, `block 0: the inputs of "model.layers.0.mlp.down_proj.weight" reach a magnitude of`},
		{"model.norm.weight", float32(math.NaN()), `the inputs of "lm_head.weight" are not finite`},
	} {
		dir := t.TempDir()
		_, err := hessian.Collect(t.Context(), s.decoder, scaled{s.weights, test.tensor, test.factor}, s.tokens, dir, hessian.Options{Key: "a"})
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "very large weights in earlier layers") {
			t.Errorf("%s: error %v, want one with %q", test.tensor, err, test.want)
		}
		if partial, _ := filepath.Glob(filepath.Join(dir, ".*")); len(partial) > 0 {
			t.Errorf("%s: %v is left", test.tensor, partial)
		}
		if _, err := os.Stat(filepath.Join(dir, "index.json")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: there is an index", test.tensor)
		}
	}
}

// moments returns the files' paths.
func moments(t testing.TB, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.moments"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// contents returns the bytes of all files.
func contents(t testing.TB, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[e.Name()] = string(data)
	}
	return all
}

func read(t testing.TB, s *hessian.Store, tensor string) sgemm.Matrix {
	t.Helper()
	m, err := s.Read(t.Context(), tensor)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
