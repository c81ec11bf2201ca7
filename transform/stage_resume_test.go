package transform

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
)

// Whatever else is called like a stage is left as it is.
func TestResumeTouchesNoStrangersFolder(t *testing.T) {
	m, p := staged(t)
	whole := applied(t, m, p)
	for _, c := range []struct {
		name string
		fill func(partial string)
	}{
		{"files", func(partial string) {
			ok(t, os.Mkdir(partial, 0o777))
			ok(t, os.WriteFile(filepath.Join(partial, "thesis.tex"), []byte("years"), 0o666))
		}},
		{"another lowtoggle.json", func(partial string) {
			ok(t, os.Mkdir(partial, 0o777))
			ok(t, os.WriteFile(filepath.Join(partial, ManifestName), []byte("{}"), 0o666))
		}},
		{"a conversion with notes", func(partial string) {
			ok(t, os.CopyFS(partial, os.DirFS(whole)))
			ok(t, os.WriteFile(filepath.Join(partial, "notes.txt"), []byte("mine"), 0o666))
		}},
		{"a file", func(partial string) {
			ok(t, os.WriteFile(partial, []byte("mine"), 0o666))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			c.fill(out + partialSuffix)
			before := files(t, filepath.Dir(out))
			_, err := Apply(t.Context(), m, p, out, ApplyOptions{Resume: true})
			wantError(t, err, out+partialSuffix, "is no unfinished conversion; remove it or choose another name")
			sameFiles(t, files(t, filepath.Dir(out)), before)
		})
	}
	out := filepath.Join(t.TempDir(), "out")
	ok(t, os.Symlink(t.TempDir(), out+partialSuffix))
	_, err := Apply(t.Context(), m, p, out, ApplyOptions{Resume: true})
	wantError(t, err, "is no unfinished conversion")
	ok(t, os.Remove(out+partialSuffix))
	ok(t, os.Mkdir(out+partialSuffix, 0o777)) // killed before anything was written
	_, err = Apply(t.Context(), m, p, out, ApplyOptions{Resume: true})
	ok(t, err)
	sameFiles(t, files(t, out), files(t, whole))
}

// A conversion that begins while another stage appears must not take that for its own.
func TestStageThatAppearedMeanwhile(t *testing.T) {
	m, p := staged(t)
	out := stopped(t, m, p)
	before := files(t, out+partialSuffix)
	st, err := openStage(out, &conversion{model: m, plan: p})
	if st != nil || !errors.Is(err, ErrUnfinished) {
		t.Errorf("stage %v, error %v", st, err)
	}
	st = &stage{dir: out + partialSuffix, out: out}
	if err := st.create(&conversion{model: m, plan: p}); !errors.Is(err, ErrUnfinished) {
		t.Errorf("error %v", err)
	}
	if err := st.claim(p); !errors.Is(err, ErrUnfinished) { // the lock is free, but the journal says whose it is
		t.Errorf("error %v", err)
	}
	st.close()
	sameFiles(t, files(t, out+partialSuffix), before)
}

// The lock stays with the folder itself, through the loss of its journal and the change of its name.
func TestLockOutlastsTheJournal(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("not every system locks folders")
	}
	m, p := staged(t)
	out := stopped(t, m, p)
	c := &conversion{model: m, plan: p, opt: ApplyOptions{Resume: true}}
	holder, err := openStage(out, c)
	ok(t, err)
	defer holder.close()
	ok(t, os.Remove(holder.path(journalName)))
	_, err = openStage(out, c)
	wantError(t, err, "another process is writing it")
	moved := out + "-moved" + partialSuffix
	ok(t, os.Rename(holder.dir, moved))
	_, err = openStage(out+"-moved", c)
	wantError(t, err, "another process is writing it")
}

// Between opening a folder and locking it, its holder may have given it its name or removed it.
func TestLockOfAFolderThatIsGone(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("not every system locks folders")
	}
	st := &stage{dir: filepath.Join(t.TempDir(), "out"+partialSuffix)}
	ok(t, os.Mkdir(st.dir, 0o777))
	ok(t, st.lock())
	defer st.close()
	ok(t, os.Rename(st.dir, st.dir+"-moved"))
	wantError(t, st.inPlace(), st.dir, "has moved or removed it")
	ok(t, os.Mkdir(st.dir, 0o777)) // another one of that name
	wantError(t, st.inPlace(), st.dir, "has moved or removed it")
}

// Many that go on with the same output at once do no harm to each other: it is there in the end,
// whole, and no parts are left.
func TestManyResumeAtOnce(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("not every system locks folders")
	}
	m, p := staged(t)
	want := files(t, applied(t, m, p))
	for range 10 {
		out := filepath.Join(t.TempDir(), "out")
		var all sync.WaitGroup
		for i := range 6 {
			all.Go(func() {
				for {
					_, err := Apply(t.Context(), m, p, out, ApplyOptions{Resume: i > 0})
					if _, there := os.Lstat(out); err == nil || there == nil {
						return
					}
				}
			})
		}
		all.Wait()
		sameFiles(t, files(t, out), want)
		if entries, _ := os.ReadDir(filepath.Dir(out)); len(entries) != 1 {
			t.Errorf("%v are left", entries)
		}
	}
}

// shardsIn are the identities of a folder's shards.
func shardsIn(t *testing.T, m *weights.Model, dir string) []os.FileInfo {
	t.Helper()
	var list []os.FileInfo
	for _, f := range m.Shards {
		info, err := os.Lstat(filepath.Join(dir, filepath.Base(f.Path)))
		ok(t, err)
		list = append(list, info)
	}
	return list
}

// Where only the name was missing, nothing is made again.
func TestResumeWhenOnlyTheNameIsMissing(t *testing.T) {
	m, p := staged(t)
	for _, before := range []string{"journal removed", "name taken"} {
		out := filepath.Join(t.TempDir(), "out")
		if before == "name taken" {
			_, err := Apply(t.Context(), m, p, out, ApplyOptions{Progress: func(e Event) {
				if e.Done == e.Total {
					ok(t, os.MkdirAll(filepath.Join(out, "taken"), 0o777))
				}
			}})
			wantError(t, err, "what is finished stays in "+out+partialSuffix)
			ok(t, os.RemoveAll(out))
		} else {
			ok(t, os.Rename(applied(t, m, p), out+partialSuffix))
		}
		made := shardsIn(t, m, out+partialSuffix)
		plan, err := Unfinished(out)
		ok(t, err)
		if plan == nil || string(encoded(t, plan)) != string(encoded(t, p)) {
			t.Errorf("%s: the unfinished plan is another", before)
		}
		_, err = Apply(t.Context(), m, makePlan(t, m, "round=3", 0), out, ApplyOptions{Resume: true})
		wantError(t, err, "was begun with another plan")
		_, err = Apply(t.Context(), m, p, out, ApplyOptions{Resume: true})
		ok(t, err)
		for i, info := range shardsIn(t, m, out) {
			if !os.SameFile(info, made[i]) {
				t.Errorf("%s: %s was made again", before, info.Name())
			}
		}
		sameFiles(t, files(t, out), files(t, applied(t, m, p)))
	}
}

// A finished shard that was damaged since is made again, the others are not; a check that is
// interrupted loses nothing.
func TestResumeMakesDamagedShardsAgain(t *testing.T) {
	m, p := staged(t)
	want := files(t, applied(t, m, p))
	for _, harm := range []func(data []byte) []byte{
		func(data []byte) []byte { data[len(data)-1] ^= 1; return data },
		func(data []byte) []byte { return data[:len(data)/2] },
		func(data []byte) []byte { return append(data, 0) },
		func([]byte) []byte { return nil },
	} {
		out := stopped(t, m, p)
		path := filepath.Join(out+partialSuffix, filepath.Base(m.Shards[0].Path))
		data, err := os.ReadFile(path)
		ok(t, err)
		ok(t, os.WriteFile(path, harm(data), 0o666))
		ctx, cancel := context.WithCancel(t.Context())
		_, err = Apply(ctx, m, p, out, ApplyOptions{Resume: true, Progress: func(e Event) {
			if e.Stage != "check" {
				t.Errorf("%s before the check", e.Stage)
			}
			cancel()
		}})
		wantError(t, err, "what is finished stays in "+out+partialSuffix)
		_, err = Apply(t.Context(), m, p, out, ApplyOptions{Resume: true})
		ok(t, err)
		sameFiles(t, files(t, out), want)
	}
}
