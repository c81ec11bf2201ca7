package apply_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/lock"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/internal/testplan"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/apply"
)

// TestReplaceIsCheckedFirst: a Replace that is not the folder out as it is now is an error before any work, and the
// error says what to do. Nothing is written.
func TestReplaceIsCheckedFirst(t *testing.T) {
	m, p := staged(t)
	out := testplan.Applied(t, m, nil, p)
	made := func(dir string) *apply.Made {
		made, err := apply.OpenMade(t.Context(), dir, 0, nil)
		testmodel.OK(t, err)
		return made
	}
	other := testplan.Applied(t, m, nil, p)
	stale, removed := made(out), testplan.Applied(t, m, nil, p)
	without := made(removed)
	testmodel.OK(t, os.WriteFile(filepath.Join(out, "more"), nil, 0o666))
	testmodel.OK(t, os.Remove(filepath.Join(removed, "config.json")))
	missing, link := filepath.Join(t.TempDir(), "missing"), filepath.Join(t.TempDir(), "link")
	testmodel.OK(t, os.Symlink(other, link))
	if _, err := apply.OpenMade(t.Context(), link+string(filepath.Separator), 0, nil); !errors.Is(err, apply.ErrNotMade) {
		t.Errorf("OpenMade of a link: %v", err)
	}
	for name, c := range map[string]struct {
		out  string
		old  *apply.Made
		kind error
		want string
	}{
		"zero":    {out, &apply.Made{}, apply.ErrOut, "Replace names no folder: open " + out + " with OpenMade, or leave Replace out"},
		"stale":   {out, stale, apply.ErrNotMade, "more was changed since OpenMade read it: open the folder again"},
		"removed": {removed, without, apply.ErrNotMade, "config.json was removed since OpenMade read it: open the folder again"},
		"other":   {out, made(other), apply.ErrOut, "Replace is another folder, " + other + ": open " + out + " with OpenMade"},
		"link":    {link, made(other), apply.ErrOut, "is not a folder, so it cannot be replaced: name the folder itself"},
		"missing": {missing, made(other), fs.ErrNotExist, "there is no such folder, so nothing can be replaced: leave Replace out"},
		"bucket":  {"s3://bucket/out", made(other), apply.ErrOut, "Replace needs a folder on a disk: leave Replace out, and name a new folder"},
	} {
		before := 0
		_, err := transform.Apply(t.Context(), m, p, c.out, transform.ApplyOptions{Replace: c.old, Progress: func(transform.Event) { before++ }})
		testmodel.WantError(t, err, c.out, c.want)
		if !errors.Is(err, c.kind) || before > 0 {
			t.Errorf("%s: %v after %d steps", name, err, before)
		}
		testplan.NothingAt(t, c.out+apply.PartialSuffix)
	}
	_, err := transform.Apply(t.Context(), m, p, other, transform.ApplyOptions{})
	testmodel.WantError(t, err, "exists already: choose a new folder; to replace the result of an earlier conversion, open that result with OpenMade and give it as Replace")
	if _, err = apply.OpenMade(t.Context(), missing, 0, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("OpenMade without a folder: %v", err)
	}
	testmodel.WantError(t, err, missing, "there is no such folder, so nothing can be replaced: ")
}

// TestReplacedFolderChanges: a folder that changes during the conversion is kept. The message says how to keep the new
// one, and its advice works.
func TestReplacedFolderChanges(t *testing.T) {
	m, p := staged(t)
	out := testplan.Applied(t, m, nil, p)
	want := testmodel.Files(t, out)
	old, err := apply.OpenMade(t.Context(), out, 0, nil)
	testmodel.OK(t, err)
	_, err = transform.Apply(t.Context(), m, p, out, transform.ApplyOptions{Replace: old, Progress: func(transform.Event) {
		testmodel.OK(t, os.WriteFile(filepath.Join(out, "more"), nil, 0o666))
	}})
	testmodel.WantError(t, err, "more was changed during the conversion", "move "+out+" away and resume, to give the new folder its name")
	if !errors.Is(err, apply.ErrUnfinished) {
		t.Errorf("error %v is not of class ErrUnfinished", err)
	}
	testmodel.OK(t, os.Rename(out, out+"-moved"))
	_, err = transform.Apply(t.Context(), m, p, out, transform.ApplyOptions{Resume: true})
	testmodel.OK(t, err)
	testmodel.SameFiles(t, testmodel.Files(t, out), want)
}

// TestSecondConversion: while one conversion writes an output, another one is told so at once.
func TestSecondConversion(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no locks of folders here")
	}
	m, p := staged(t)
	out := filepath.Join(t.TempDir(), "out")
	testmodel.OK(t, os.Mkdir(out+apply.PartialSuffix, 0o777))
	held, err := lock.Folder(out + apply.PartialSuffix)
	testmodel.OK(t, err)
	for _, resume := range []bool{false, true} {
		_, err := transform.Apply(t.Context(), m, p, out, transform.ApplyOptions{Resume: resume})
		testmodel.WantError(t, err, out+apply.PartialSuffix, "another conversion is writing this folder: wait until it ends, or choose another output folder")
		if !errors.Is(err, apply.ErrRunning) || errors.Is(err, apply.ErrUnfinished) {
			t.Errorf("resume %v: %v", resume, err)
		}
	}
	testmodel.OK(t, held.Close())
	_, err = transform.Apply(t.Context(), m, p, out, transform.ApplyOptions{Resume: true})
	testmodel.OK(t, err)
}

// TestResumeWithAnotherPlan: an interrupted conversion that is resumed with another plan is an ErrOtherPlan.
func TestResumeWithAnotherPlan(t *testing.T) {
	m, p := staged(t)
	out := filepath.Join(t.TempDir(), "out")
	st, err := apply.OpenStage(out, m, p, false)
	testmodel.OK(t, err)
	st.Close()
	_, err = transform.Apply(t.Context(), m, testplan.Make(t, m, "round=3", 0), out, transform.ApplyOptions{Resume: true})
	testmodel.WantError(t, err, "was begun with another plan: give the same options as before, or move the folder away")
	if !errors.Is(err, apply.ErrOtherPlan) {
		t.Errorf("error %v is not of class ErrOtherPlan", err)
	}
}
