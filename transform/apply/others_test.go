package apply_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/internal/testplan"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

func TestPermissionsAndEmptyFoldersAreKept(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no such permissions here")
	}
	dir := testmodel.Folder(t, testmodel.Config(t, "llama-tiny", ""), synth.Options{ShardBytes: 60_000})
	modes := map[string]fs.FileMode{"run.sh": 0o755, "onnx/secret": 0o600, "open": 0o666, "fixed": 0o444}
	for name, mode := range modes {
		path := filepath.Join(dir, name)
		testmodel.OK(t, os.WriteFile(path, []byte(name), 0o666))
		testmodel.OK(t, os.Chmod(path, mode))
	}
	empty := filepath.Join("a", "b", "empty")
	testmodel.OK(t, os.MkdirAll(filepath.Join(dir, empty), 0o777))
	m := testmodel.Open(t, dir)
	out := testplan.Applied(t, m, nil, testplan.Make(t, m, "shift=4/epilogue", 0)) // with a new index
	for name, want := range modes {
		info, err := os.Stat(filepath.Join(out, name))
		testmodel.OK(t, err)
		if info.Mode().Perm() != want {
			t.Errorf("%s: permissions %v, want %v", name, info.Mode().Perm(), want)
		}
	}
	entries, err := os.ReadDir(filepath.Join(out, empty))
	testmodel.OK(t, err)
	if len(entries) > 0 {
		t.Errorf("%v in the empty folder", entries)
	}
}

// TestASingleFileHasNoPreviousManifest: a manifest beside a single-file model may belong to another model.
func TestASingleFileHasNoPreviousManifest(t *testing.T) {
	dir := testmodel.Folder(t, testmodel.Config(t, "llama-tiny", ""), synth.Options{})
	for _, text := range []string{"{\"of\": \"another\"}", "no JSON"} {
		testmodel.OK(t, os.WriteFile(filepath.Join(dir, plan.ManifestName), []byte(text), 0o666))
		m := testmodel.Open(t, filepath.Join(dir, "model.safetensors"))
		man, err := plan.ReadManifest(testplan.Applied(t, m, nil, testplan.Of(t, m)))
		testmodel.OK(t, err)
		if man.Previous != nil {
			t.Errorf("previous manifest %s", man.Previous)
		}
	}
}

func TestPlanOfAnotherFamily(t *testing.T) {
	m := testmodel.Tiny(t, "llama-tiny", 0)
	p := testplan.Make(t, m, "reorder", 0)
	p.Model.Family = "gpt2"
	out := filepath.Join(t.TempDir(), "out")
	_, err := transform.Apply(t.Context(), m, p, out, transform.ApplyOptions{})
	testmodel.WantError(t, err, "the plan was made for family gpt2, and the model's family is llama: give the family that the plan was made with")
	testplan.NothingAt(t, out)
}
