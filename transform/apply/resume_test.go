package apply_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/internal/testplan"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/apply"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
)

// TestResumeTouchesNoOtherFolder: other files and folders with the name of a stage do not change.
func TestResumeTouchesNoOtherFolder(t *testing.T) {
	m, p := staged(t)
	whole := testplan.Applied(t, m, nil, p)
	for _, c := range []struct {
		name string
		fill func(partial string)
	}{
		{"files", func(partial string) {
			testmodel.OK(t, os.Mkdir(partial, 0o777))
			testmodel.OK(t, os.WriteFile(filepath.Join(partial, "thesis.tex"), []byte("years"), 0o666))
		}},
		{"another lowtoggle.json", func(partial string) {
			testmodel.OK(t, os.Mkdir(partial, 0o777))
			testmodel.OK(t, os.WriteFile(filepath.Join(partial, plan.ManifestName), []byte("{}"), 0o666))
		}},
		{"a conversion with notes", func(partial string) {
			testmodel.OK(t, os.CopyFS(partial, os.DirFS(whole)))
			testmodel.OK(t, os.WriteFile(filepath.Join(partial, "notes.txt"), []byte("mine"), 0o666))
		}},
		{"a file", func(partial string) {
			testmodel.OK(t, os.WriteFile(partial, []byte("mine"), 0o666))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			c.fill(out + apply.PartialSuffix)
			before := testmodel.Files(t, filepath.Dir(out))
			_, err := transform.Apply(t.Context(), m, p, out, transform.ApplyOptions{Resume: true})
			testmodel.WantError(t, err, out+apply.PartialSuffix, "is not an unfinished conversion, and the conversion needs this name: move the file or folder away, or choose another output folder")
			testmodel.SameFiles(t, testmodel.Files(t, filepath.Dir(out)), before)
		})
	}
	out := filepath.Join(t.TempDir(), "out")
	testmodel.OK(t, os.Symlink(t.TempDir(), out+apply.PartialSuffix))
	_, err := transform.Apply(t.Context(), m, p, out, transform.ApplyOptions{Resume: true})
	testmodel.WantError(t, err, "is not an unfinished conversion")
	testmodel.OK(t, os.Remove(out+apply.PartialSuffix))
	testmodel.OK(t, os.Mkdir(out+apply.PartialSuffix, 0o777)) // killed before anything was written
	_, err = transform.Apply(t.Context(), m, p, out, transform.ApplyOptions{Resume: true})
	testmodel.OK(t, err)
	testmodel.SameFiles(t, testmodel.Files(t, out), testmodel.Files(t, whole))
}

// TestStageThatAppearedMeanwhile: a conversion that begins while another stage appears does not use that stage.
func TestStageThatAppearedMeanwhile(t *testing.T) {
	m, p := staged(t)
	out := stopped(t, m, p)
	before := testmodel.Files(t, out+apply.PartialSuffix)
	st, err := apply.OpenStage(out, m, p, false)
	if st != nil || !errors.Is(err, apply.ErrUnfinished) {
		t.Errorf("stage %v, error %v", st, err)
	}
	st = apply.NewStage(out)
	if err := st.Create(m, p); !errors.Is(err, apply.ErrUnfinished) {
		t.Errorf("error %v", err)
	}
	if err := st.Claim(m, p); !errors.Is(err, apply.ErrUnfinished) { // the lock is free, but the journal belongs to another conversion
		t.Errorf("error %v", err)
	}
	st.Close()
	testmodel.SameFiles(t, testmodel.Files(t, out+apply.PartialSuffix), before)
}

// TestLockOutlastsTheJournal: the folder itself is locked, so the lock outlasts the journal and a renaming.
func TestLockOutlastsTheJournal(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("not every system locks folders")
	}
	m, p := staged(t)
	out := stopped(t, m, p)
	holder, err := apply.OpenStage(out, m, p, true)
	testmodel.OK(t, err)
	defer holder.Close()
	testmodel.OK(t, os.Remove(holder.Path(apply.JournalName)))
	_, err = apply.OpenStage(out, m, p, true)
	testmodel.WantError(t, err, "another conversion is writing this folder")
	moved := out + "-moved" + apply.PartialSuffix
	testmodel.OK(t, os.Rename(holder.Dir(), moved))
	_, err = apply.OpenStage(out+"-moved", m, p, true)
	testmodel.WantError(t, err, "another conversion is writing this folder")
}

// TestLockOfAFolderThatIsGone: between opening and locking a folder, the holder may have renamed or removed it.
func TestLockOfAFolderThatIsGone(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("not every system locks folders")
	}
	st := apply.NewStage(filepath.Join(t.TempDir(), "out"))
	testmodel.OK(t, os.Mkdir(st.Dir(), 0o777))
	testmodel.OK(t, st.Lock())
	defer st.Close()
	testmodel.OK(t, os.Rename(st.Dir(), st.Dir()+"-moved"))
	testmodel.WantError(t, st.InPlace(), st.Dir(), "has moved or removed this folder")
	testmodel.OK(t, os.Mkdir(st.Dir(), 0o777)) // another folder of this name
	testmodel.WantError(t, st.InPlace(), st.Dir(), "has moved or removed this folder")
}

// TestManyResumeAtOnce: several processes that resume the same output at once end with a whole output, and no parts
// are left.
func TestManyResumeAtOnce(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("not every system locks folders")
	}
	m, p := staged(t)
	want := testmodel.Files(t, testplan.Applied(t, m, nil, p))
	for range 10 {
		out := filepath.Join(t.TempDir(), "out")
		var all sync.WaitGroup
		for i := range 6 {
			all.Go(func() {
				for {
					_, err := transform.Apply(t.Context(), m, p, out, transform.ApplyOptions{Resume: i > 0})
					if _, there := os.Lstat(out); err == nil || there == nil {
						return
					}
				}
			})
		}
		all.Wait()
		testmodel.SameFiles(t, testmodel.Files(t, out), want)
		if entries, _ := os.ReadDir(filepath.Dir(out)); len(entries) != 1 {
			t.Errorf("%v are left", entries)
		}
	}
}

// TestTwoResumeWithoutLocks: without locks, a second process may remove and write a shard that the first process is
// writing. The first process must not finish with that shard, whether the second shard was finished before or after
// its own.
func TestTwoResumeWithoutLocks(t *testing.T) {
	m, p := staged(t)
	for _, finished := range []bool{false, true} {
		out := stopped(t, m, p)
		open := func() *apply.Stage {
			st, err := apply.OpenStage(out, m, p, true)
			testmodel.OK(t, err)
			st.WithoutLock()
			t.Cleanup(st.Close)
			return st
		}
		first := open()
		last := m.Shards[len(m.Shards)-1]
		end, err := first.WriteShard(t.Context(), last)
		testmodel.OK(t, err)
		if !finished {
			second := open()
			_, err = second.WriteShard(t.Context(), last)
			testmodel.OK(t, err)
			testmodel.WantError(t, end(), filepath.Base(last.Path), "another process has also written this file")
			continue
		}
		testmodel.OK(t, end())
		testmodel.OK(t, first.Whole())
		path := first.Path(filepath.Base(last.Path))
		data, err := os.ReadFile(path)
		testmodel.OK(t, err)
		testmodel.OK(t, os.Remove(path))
		testmodel.OK(t, os.WriteFile(path, data, 0o666))
		testmodel.WantError(t, first.Whole(), path, "another process has also written this file")
	}
}

// shardsIn returns the identities of a folder's shards.
func shardsIn(t *testing.T, m *weights.Model, dir string) []os.FileInfo {
	t.Helper()
	var list []os.FileInfo
	for _, f := range m.Shards {
		info, err := os.Lstat(filepath.Join(dir, filepath.Base(f.Path)))
		testmodel.OK(t, err)
		list = append(list, info)
	}
	return list
}

// TestResumeWhenOnlyTheNameIsMissing: if only the renaming was missing, no file is written again.
func TestResumeWhenOnlyTheNameIsMissing(t *testing.T) {
	m, p := staged(t)
	for _, before := range []string{"journal removed", "name taken"} {
		out := filepath.Join(t.TempDir(), "out")
		if before == "name taken" {
			_, err := transform.Apply(t.Context(), m, p, out, transform.ApplyOptions{Progress: func(e transform.Event) {
				if e.Done == e.Total {
					testmodel.OK(t, os.MkdirAll(filepath.Join(out, "taken"), 0o777))
				}
			}})
			testmodel.WantError(t, err, "finished shards are kept in "+out+apply.PartialSuffix)
			testmodel.OK(t, os.RemoveAll(out))
		} else {
			testmodel.OK(t, os.Rename(testplan.Applied(t, m, nil, p), out+apply.PartialSuffix))
		}
		made := shardsIn(t, m, out+apply.PartialSuffix)
		begun, err := apply.Unfinished(out)
		testmodel.OK(t, err)
		if begun == nil || string(testplan.Encoded(t, begun)) != string(testplan.Encoded(t, p)) {
			t.Errorf("%s: the unfinished plan is another", before)
		}
		_, err = transform.Apply(t.Context(), m, testplan.Make(t, m, "round=3", 0), out, transform.ApplyOptions{Resume: true})
		testmodel.WantError(t, err, "was begun with another plan")
		_, err = transform.Apply(t.Context(), m, p, out, transform.ApplyOptions{Resume: true})
		testmodel.OK(t, err)
		for i, info := range shardsIn(t, m, out) {
			if !os.SameFile(info, made[i]) {
				t.Errorf("%s: %s was made again", before, info.Name())
			}
		}
		testmodel.SameFiles(t, testmodel.Files(t, out), testmodel.Files(t, testplan.Applied(t, m, nil, p)))
	}
}

// TestResumeMakesDamagedShardsAgain: a finished shard that was damaged later is written again, and no other shard is.
// An interrupted check loses nothing.
func TestResumeMakesDamagedShardsAgain(t *testing.T) {
	m, p := staged(t)
	want := testmodel.Files(t, testplan.Applied(t, m, nil, p))
	for _, harm := range []func(data []byte) []byte{
		func(data []byte) []byte { data[len(data)-1] ^= 1; return data },
		func(data []byte) []byte { return data[:len(data)/2] },
		func(data []byte) []byte { return append(data, 0) },
		func([]byte) []byte { return nil },
	} {
		out := stopped(t, m, p)
		path := filepath.Join(out+apply.PartialSuffix, filepath.Base(m.Shards[0].Path))
		data, err := os.ReadFile(path)
		testmodel.OK(t, err)
		testmodel.OK(t, os.WriteFile(path, harm(data), 0o666))
		ctx, cancel := context.WithCancel(t.Context())
		_, err = transform.Apply(ctx, m, p, out, transform.ApplyOptions{Resume: true, Progress: func(e transform.Event) {
			if e.Stage != "check" {
				t.Errorf("%s before the check", e.Stage)
			}
			cancel()
		}})
		testmodel.WantError(t, err, "finished shards are kept in "+out+apply.PartialSuffix)
		_, err = transform.Apply(t.Context(), m, p, out, transform.ApplyOptions{Resume: true})
		testmodel.OK(t, err)
		testmodel.SameFiles(t, testmodel.Files(t, out), want)
	}
}

// TestResumeOfAnOutputThatIsThere: an output that another process finished meanwhile is not made again. The folder
// that was begun for it is removed if it is empty, and stays otherwise.
func TestResumeOfAnOutputThatIsThere(t *testing.T) {
	m, p := staged(t)
	out := filepath.Join(t.TempDir(), "out")
	testmodel.OK(t, os.Mkdir(out, 0o777))
	testmodel.OK(t, os.WriteFile(filepath.Join(out, "file"), nil, 0o666))
	st := apply.NewStage(out)
	testmodel.OK(t, os.Mkdir(st.Dir(), 0o777))
	_, err := apply.OpenStage(out, m, p, true)
	testmodel.WantError(t, err, out, "exists already")
	testplan.NothingAt(t, st.Dir())

	testmodel.OK(t, os.Mkdir(st.Dir(), 0o777))
	testmodel.OK(t, os.WriteFile(st.Path(apply.JournalName), nil, 0o666))
	_, err = apply.OpenStage(out, m, p, true)
	testmodel.WantError(t, err, out, "exists already")
	if _, err := os.Lstat(st.Path(apply.JournalName)); err != nil {
		t.Error(err)
	}
}
