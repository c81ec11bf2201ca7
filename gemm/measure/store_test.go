package measure_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/cuda/runner"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/internal/fakestore"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/bucket"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// inStore returns a copy of a model in an object store.
func inStore(t *testing.T, m *weights.Model) *weights.Model {
	t.Helper()
	store := fakestore.New("models")
	entries, err := os.ReadDir(m.Dir)
	testmodel.OK(t, err)
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		data, err := os.ReadFile(filepath.Join(m.Dir, e.Name()))
		testmodel.OK(t, err)
		store.Put("models", "m/"+e.Name(), data)
	}
	fakestore.Start(t, store)
	folder, err := bucket.Open("s3://models/m")
	testmodel.OK(t, err)
	far, err := weights.OpenStore(t.Context(), folder, "")
	testmodel.OK(t, err)
	t.Cleanup(func() { far.Close() })
	return far
}

// severalBlocks returns a model that is larger than what opening it reads.
func severalBlocks(t *testing.T) *weights.Model {
	return testmodel.Open(t, testmodel.Folder(t, testmodel.Config(t, "llama-tiny", `{"intermediate_size": 8192}`), synth.Options{Seed: 1}))
}

// TestStore: a simulated card reads the same weights from an object store as from a disk.
func TestStore(t *testing.T) {
	near := severalBlocks(t)
	var tokens [][]int32
	for _, m := range []*weights.Model{near, inStore(t, near)} {
		machine := measure.Simulated(power.DefaultSim())
		defer machine.Close()
		layout, err := arch.Resolve(m, nil)
		testmodel.OK(t, err)
		r, err := machine.NewRunner(t.Context(), m, layout, 16)
		testmodel.OK(t, err)
		s, err := r.NewStep(t.Context(), "a step", runner.Work{Sequences: 1, Context: 8}, nil)
		testmodel.OK(t, err)
		next, err := s.Next()
		testmodel.OK(t, err)
		tokens = append(tokens, next)
	}
	if tokens[0][0] == 0 || !slices.Equal(tokens[0], tokens[1]) {
		t.Errorf("tokens %v of the model on a disk, %v of that in a store", tokens[0], tokens[1])
	}
}
