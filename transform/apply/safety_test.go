package apply_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/internal/testplan"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/apply"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// TestReservedNames: a shard or a folder with the name of one of lowtoggle's files would be lost.
func TestReservedNames(t *testing.T) {
	for _, name := range []string{plan.ManifestName, apply.JournalName} {
		m, _ := staged(t)
		testmodel.OK(t, os.MkdirAll(filepath.Join(m.Dir, name), 0o777))
		m = testmodel.Open(t, m.Dir)
		testmodel.WantError(t, apply.CheckOut(m, filepath.Join(t.TempDir(), "out"), false, nil), name, "rename this file or folder")

		dir := testmodel.Folder(t, testmodel.Config(t, "llama-tiny", ""), synth.Options{})
		shard := filepath.Join(dir, "model.safetensors")
		infos := testmodel.Open(t, dir).Infos()
		weightMap := map[string]string{}
		for _, i := range infos {
			weightMap[i.Name] = name
		}
		testmodel.OK(t, os.Rename(shard, filepath.Join(dir, name)))
		testmodel.OK(t, os.WriteFile(filepath.Join(dir, weights.IndexName), weights.EncodeIndex(weightMap, 0), 0o666))
		testmodel.WantError(t, apply.CheckOut(testmodel.Open(t, dir), filepath.Join(t.TempDir(), "out"), false, nil), name, "rename this file or folder")
	}
}

// TestResumeWithAnotherSource: a source that changes between a kill and resuming is neither mixed with the finished
// shards nor converted by the old plan.
func TestResumeWithAnotherSource(t *testing.T) {
	for _, c := range []struct {
		name               string
		finished           bool // the changed shard is finished
		setBack, noSources bool // the time is set back; an older version wrote the journal
	}{
		{"finished", true, false, false},
		{"finished, by digests", true, true, true},
		{"not finished", false, false, false},
		{"not finished, time set back", false, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.setBack && runtime.GOOS != "linux" {
				t.Skip("a time that is set back is noticed on Linux alone")
			}
			m, p := staged(t)
			out := stopped(t, m, p)
			parts := testmodel.Files(t, out+apply.PartialSuffix)
			changed := false
			for _, f := range m.Shards {
				if _, done := parts[filepath.Base(f.Path)]; done == c.finished {
					changed = changeUnseen(t, f, c.setBack) || changed
				}
			}
			if !changed {
				t.Fatal("no such shard has a large tensor")
			}
			if journal := filepath.Join(out+apply.PartialSuffix, apply.JournalName); c.noSources {
				data, err := os.ReadFile(journal)
				testmodel.OK(t, err)
				_, rest, _ := bytes.Cut(data, []byte("\n"))
				testmodel.OK(t, os.WriteFile(journal, rest, 0o666))
			}
			_, err := transform.Apply(t.Context(), testmodel.Open(t, m.Dir), p, out, transform.ApplyOptions{Resume: true})
			want := "has changed since the conversion was begun"
			if !c.finished && c.setBack {
				want = "may have changed since the conversion was begun"
			}
			testmodel.WantError(t, err, want, out+apply.PartialSuffix)
			if _, err := os.Lstat(out); err == nil {
				t.Error("a mixture lies under the final name")
			}
		})
	}
}

// TestResumeAfterTouch: new times and modes of finished shards do not change their data, so the conversion continues.
func TestResumeAfterTouch(t *testing.T) {
	links := t.TempDir()
	for name, touch := range map[string]func(path string) error{
		"chmod": func(path string) error { return os.Chmod(path, 0o600) },
		"time":  func(path string) error { return os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0)) },
		"link":  func(path string) error { return os.Link(path, filepath.Join(links, filepath.Base(path))) },
	} {
		t.Run(name, func(t *testing.T) {
			m, p := staged(t)
			want := testmodel.Files(t, testplan.Applied(t, m, nil, p))
			out := stopped(t, m, p)
			parts := testmodel.Files(t, out+apply.PartialSuffix)
			touched := 0
			for _, f := range m.Shards {
				if _, done := parts[filepath.Base(f.Path)]; done {
					testmodel.OK(t, touch(f.Path))
					touched++
				}
			}
			if touched == 0 {
				t.Fatal("no shard is finished")
			}
			_, err := transform.Apply(t.Context(), testmodel.Open(t, m.Dir), p, out, transform.ApplyOptions{Resume: true})
			testmodel.OK(t, err)
			testmodel.SameFiles(t, testmodel.Files(t, out), want)
		})
	}
}

// changeUnseen changes a bit in the middle of a large tensor, outside the samples of a plan's fingerprint. It returns
// false if the file has no large tensor.
func changeUnseen(t *testing.T, f *weights.File, setBack bool) bool {
	t.Helper()
	i := slices.IndexFunc(f.Tensors, func(info weights.Info) bool { return info.Size() > 2*4096 })
	if i < 0 {
		return false
	}
	info, err := os.Stat(f.Path)
	testmodel.OK(t, err)
	data, err := os.ReadFile(f.Path)
	testmodel.OK(t, err)
	data[int64(len(f.Head()))+f.Tensors[i].Begin+f.Tensors[i].Size()/2] ^= 1
	testmodel.OK(t, os.WriteFile(f.Path, data, 0o666))
	if setBack {
		testmodel.OK(t, os.Chtimes(f.Path, info.ModTime(), info.ModTime()))
	}
	return true
}

// TestSourceChangesWhileItIsRead: a source that changes while it is read ends the conversion with an error, and so
// does a replaced source.
func TestSourceChangesWhileItIsRead(t *testing.T) {
	for _, replaced := range []bool{false, true} {
		m, p := staged(t)
		last := m.Shards[len(m.Shards)-1]
		out := filepath.Join(t.TempDir(), "out")
		var once sync.Once
		_, err := transform.Apply(t.Context(), m, p, out, transform.ApplyOptions{Progress: func(transform.Event) {
			once.Do(func() {
				data, err := os.ReadFile(last.Path)
				testmodel.OK(t, err)
				if replaced {
					testmodel.OK(t, os.Remove(last.Path))
				}
				testmodel.OK(t, os.WriteFile(last.Path, data, 0o666))
			})
		}})
		testmodel.WantError(t, err, last.Path, "was changed while lowtoggle read it")
		if _, err := os.Lstat(out); err == nil {
			t.Error("a mixture lies under the final name")
		}
	}
}

// TestShardVanishes: a finished shard that another process removes or changes is noticed, and resuming writes it
// again.
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

// TestPermissions: files and folders have the source's permissions, for any umask.
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
