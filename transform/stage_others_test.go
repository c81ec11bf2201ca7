package transform

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights/synth"
)

func TestPermissionsAndEmptyFoldersAreKept(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no such permissions here")
	}
	dir := folder(t, config(t, "llama-tiny", ""), synth.Options{ShardBytes: 60_000})
	modes := map[string]fs.FileMode{"run.sh": 0o755, "onnx/secret": 0o600, "open": 0o666, "fixed": 0o444}
	for name, mode := range modes {
		path := filepath.Join(dir, name)
		ok(t, os.WriteFile(path, []byte(name), 0o666))
		ok(t, os.Chmod(path, mode))
	}
	empty := filepath.Join("a", "b", "empty")
	ok(t, os.MkdirAll(filepath.Join(dir, empty), 0o777))
	m := open(t, dir)
	out := applied(t, m, makePlan(t, m, "shift=4/epilogue", 0)) // with an index made anew
	for name, want := range modes {
		info, err := os.Stat(filepath.Join(out, name))
		ok(t, err)
		if info.Mode().Perm() != want {
			t.Errorf("%s: permissions %v, want %v", name, info.Mode().Perm(), want)
		}
	}
	entries, err := os.ReadDir(filepath.Join(out, empty))
	ok(t, err)
	if len(entries) > 0 {
		t.Errorf("%v in the empty folder", entries)
	}
}

// What lies beside a model that is a single file says nothing of it.
func TestASingleFileHasNoPreviousManifest(t *testing.T) {
	dir := folder(t, config(t, "llama-tiny", ""), synth.Options{})
	for _, text := range []string{"{\"of\": \"another\"}", "no JSON"} {
		ok(t, os.WriteFile(filepath.Join(dir, ManifestName), []byte(text), 0o666))
		m := open(t, filepath.Join(dir, "model.safetensors"))
		man, err := ReadManifest(applied(t, m, planOf(t, m)))
		ok(t, err)
		if man.Previous != nil {
			t.Errorf("previous manifest %s", man.Previous)
		}
	}
}

func TestPlanOfAnotherFamily(t *testing.T) {
	m := tiny(t, "llama-tiny", 0)
	p := makePlan(t, m, "reorder", 0)
	p.Model.Family = "gpt2"
	out := filepath.Join(t.TempDir(), "out")
	_, err := Apply(t.Context(), m, p, out, ApplyOptions{})
	wantError(t, err, "the plan was made for family gpt2, the model resolves as llama: give the same --arch")
	nothingAt(t, out)
}
