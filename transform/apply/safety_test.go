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
	"github.com/lowtoggle/lowtoggle/transform/apply"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// A shard or a folder with the name of a file of lowtoggle's would be lost.
func TestReservedNames(t *testing.T) {
	for _, name := range []string{plan.ManifestName, apply.JournalName} {
		m, _ := staged(t)
		testmodel.OK(t, os.MkdirAll(filepath.Join(m.Dir, name), 0o777))
		m = testmodel.Open(t, m.Dir)
		testmodel.WantError(t, apply.CheckOut(m, filepath.Join(t.TempDir(), "out"), false, nil), name, "rename it")

		dir := testmodel.Folder(t, testmodel.Config(t, "llama-tiny", ""), synth.Options{})
		shard := filepath.Join(dir, "model.safetensors")
		infos := testmodel.Open(t, dir).Infos()
		weightMap := map[string]string{}
		for _, i := range infos {
			weightMap[i.Name] = name
		}
		testmodel.OK(t, os.Rename(shard, filepath.Join(dir, name)))
		testmodel.OK(t, os.WriteFile(filepath.Join(dir, weights.IndexName), weights.EncodeIndex(weightMap, 0), 0o666))
		testmodel.WantError(t, apply.CheckOut(testmodel.Open(t, dir), filepath.Join(t.TempDir(), "out"), false, nil), name, "rename it")
	}
}

// A source that changes between a kill and the resumption is not mixed with what was finished.
func TestResumeWithAnotherSource(t *testing.T) {
	m, p := staged(t)
	out := stopped(t, m, p)
	parts := testmodel.Files(t, out+apply.PartialSuffix)
	changed := false
	for _, f := range m.Shards {
		if _, done := parts[filepath.Base(f.Path)]; !done {
			continue
		}
		for _, info := range f.Tensors {
			if info.Size() > 2*4096 { // in the middle, where the plan's fingerprint of the model does not look
				data, err := os.ReadFile(f.Path)
				testmodel.OK(t, err)
				data[int64(len(f.Head()))+info.Begin+info.Size()/2] ^= 1
				testmodel.OK(t, os.WriteFile(f.Path, data, 0o666))
				changed = true
			}
		}
	}
	if !changed {
		t.Fatal("no finished shard has a large tensor")
	}
	_, err := transform.Apply(t.Context(), testmodel.Open(t, m.Dir), p, out, transform.ApplyOptions{Resume: true})
	testmodel.WantError(t, err, "has changed since the conversion was begun", out+apply.PartialSuffix)
	if _, err := os.Lstat(out); err == nil {
		t.Error("a mixture lies under the final name")
	}
}

// A finished shard that another process removes or changes is noticed, and resuming writes it again.
func TestShardVanishes(t *testing.T) {
	m, p := staged(t)
	want := testmodel.Files(t, testplan.Applied(t, m, nil, p))
	for name, harm := range map[string]func(path string) error{
		"removed":   os.Remove,
		"truncated": func(path string) error { return os.Truncate(path, 9) },
	} {
		out := filepath.Join(t.TempDir(), "out")
		shard := filepath.Join(out+apply.PartialSuffix, filepath.Base(m.Shards[0].Path))
		_, err := transform.Apply(t.Context(), m, p, out, transform.ApplyOptions{Progress: func(e transform.Event) {
			if e.Stage == "write" && e.Done == e.Total {
				testmodel.OK(t, harm(shard))
			}
		}})
		testmodel.WantError(t, err, shard, "another process")
		if _, err := os.Lstat(out); err == nil {
			t.Fatalf("%s: the output lies under its final name", name)
		}
		_, err = transform.Apply(t.Context(), m, p, out, transform.ApplyOptions{Resume: true})
		testmodel.OK(t, err)
		testmodel.SameFiles(t, testmodel.Files(t, out), want)
	}
}

// Files and folders have the source's permissions, whatever the umask.
func TestPermissions(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has other permissions")
	}
	m, p := staged(t)
	modes := map[string]fs.FileMode{filepath.Base(m.Shards[0].Path): 0o600, filepath.Base(m.Shards[1].Path): 0o666, "config.json": 0o640, "onnx": 0o750, "": 0o700}
	for name, mode := range modes {
		testmodel.OK(t, os.Chmod(filepath.Join(m.Dir, name), mode))
	}
	out := testplan.Applied(t, m, nil, p)
	for name, mode := range modes {
		info, err := os.Stat(filepath.Join(out, name))
		testmodel.OK(t, err)
		if info.Mode().Perm() != mode {
			t.Errorf("%q has %v, want %v", name, info.Mode().Perm(), mode)
		}
	}
}
