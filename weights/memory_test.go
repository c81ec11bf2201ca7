//go:build unix

package weights_test

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/evaluate"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/apply"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quantise"
	"github.com/lowtoggle/lowtoggle/weights/synth"
	"github.com/lowtoggle/lowtoggle/weights/tokens"
)

// diskStore is a folder of a disk as a store.
type diskStore struct {
	dir  string
	read atomic.Int64 // bytes
}

func (s *diskStore) URL() string { return "disk://" + s.dir }

func (s *diskStore) List(context.Context) (list []weights.Object, err error) {
	err = filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(s.dir, path)
		list = append(list, weights.Object{Path: name, Size: info.Size(), Version: "1"})
		return err
	})
	return list, err
}

func (s *diskStore) ReadAt(_ context.Context, o weights.Object, p []byte, at int64) error {
	s.read.Add(int64(len(p)))
	f, err := os.Open(filepath.Join(s.dir, o.Path))
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.ReadAt(p, at)
	return err
}

// contents returns the files of a folder.
func contents(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	testmodel.OK(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files[path[len(dir):]], err = os.ReadFile(path)
		}
		return err
	}))
	return files
}

// sizeOf returns the number of bytes of a model's tensors.
func sizeOf(m *weights.Model) (bytes int64) {
	for _, t := range m.Infos() {
		bytes += t.Size()
	}
	return bytes
}

// lossOf returns the losses of some tokens.
func lossOf(t *testing.T, m *weights.Model) []float64 {
	t.Helper()
	set := tokens.Set{Part: tokens.Part{N: 2, T: 4, Sequences: [][]int32{{1, 2, 3, 4}, {9, 8, 7, 6}}}}
	s, err := evaluate.New(m, nil, set, 1)
	testmodel.OK(t, err)
	scores, err := s.Score(t.Context(), m, nil)
	testmodel.OK(t, err)
	return slices.Concat(scores.Nats...)
}

// TestLittleMemory: models in a store that are larger than the memory for their data give the same plans, outputs and losses
// as on a disk. Code that reads data without Need would crash the test, because data has no memory before Need.
func TestLittleMemory(t *testing.T) {
	weights.LittleMemory(t)
	experts := `{"hidden_size": 256, "intermediate_size": 512, "moe_intermediate_size": 512, "vocab_size": 512, "num_hidden_layers": 4}`
	for _, c := range []struct {
		name, config, changes, format, passes string
	}{
		{"plain", "llama-tiny", `{"hidden_size": 256, "intermediate_size": 512, "vocab_size": 512, "num_hidden_layers": 4}`, "", "shift,round=4"},
		{"experts", "qwen3_moe-tiny", experts, "", "round=2"},
		{"block FP8", "qwen3_moe-tiny", experts, "fp8-block", "scales,round=1"},
		{"INT4", "llama-tiny", `{"hidden_size": 256, "intermediate_size": 512, "vocab_size": 512, "num_hidden_layers": 4}`, "int4", "scales"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := synth.Options{Seed: 1, ShardBytes: 1 << 20}
			if c.format != "" {
				var err error
				o.Format, err = quantise.Parse(c.format)
				testmodel.OK(t, err)
			}
			dir := testmodel.Folder(t, testmodel.Config(t, c.config, c.changes), o)
			passes, err := transform.ParsePasses(c.passes)
			testmodel.OK(t, err)
			options := transform.Options{Passes: passes, Cost: testmodel.TogglesCost{}}
			s := &diskStore{dir: dir}
			stored, err := weights.OpenStore(t.Context(), s, "")
			testmodel.OK(t, err)
			defer stored.Close()
			local := testmodel.Open(t, dir)
			folder := transform.FolderOptions{BaseModel: "base"}
			results := make([]map[string][]byte, 2)
			for i, m := range []*weights.Model{local, stored} {
				p, err := transform.Plan(t.Context(), m, options)
				testmodel.OK(t, err)
				whole, err := p.Plain()
				testmodel.OK(t, err)
				var parts []*plan.Partial
				for n := range 3 {
					part, err := transform.PlanPart(t.Context(), m, options, apply.Part{Number: n + 1, Of: 3})
					testmodel.OK(t, err)
					parts = append(parts, part)
				}
				merged, err := transform.MergePlan(t.Context(), m, options, parts)
				testmodel.OK(t, err)
				if js, err := merged.Plain(); err != nil || !bytes.Equal(js, whole) {
					t.Errorf("the plan of parts is another one (%v)", err)
				}
				out := filepath.Join(t.TempDir(), "out")
				_, err = transform.Apply(t.Context(), m, p, out, transform.ApplyOptions{Folder: folder})
				testmodel.OK(t, err)
				results[i] = contents(t, out)
			}
			for name, want := range results[0] {
				if !bytes.Equal(results[1][name], want) {
					t.Errorf("%s has other bytes", name)
				}
			}
			if read, size := s.read.Load(), sizeOf(stored); read < 2*size {
				t.Errorf("%d bytes were read of a model of %d: none were dropped", read, size)
			}
			if a, b := lossOf(t, local), lossOf(t, stored); !slices.Equal(a, b) {
				t.Errorf("losses %v, and %v on a disk", b, a)
			}
		})
	}
}
