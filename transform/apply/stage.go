package apply

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/lowtoggle/lowtoggle/internal/atomicfile"
	"github.com/lowtoggle/lowtoggle/internal/lock"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
)

// partialSuffix follows the output's name while it is being made.
const partialSuffix = ".partial"

// stage is the temporary folder in which an output is written. The folder itself is locked, so the lock outlasts its
// files and the renaming.
type stage struct {
	dir, out string
	folder   *os.File // nil on systems without folder locks
	journal  *os.File
	finished map[string]plan.Shard // shards finished by earlier calls, by file name
	sizes    map[string]int64      // bytes of the finished files, by path in the folder
	held     sync.Map              // file name → *os.File of a shard written by this call; empty if the folder is locked
	keep     bool                  // the folder has a finished shard
	old      *Made                 // folder to replace; nil: none
}

// ErrUnfinished marks the error for an output folder with an interrupted conversion, and the error of the interrupt
// itself.
var ErrUnfinished = errors.New("this folder holds an unfinished conversion")

// resumable is an [ErrUnfinished] with its own text.
type resumable struct{ error }

func (resumable) Is(target error) bool { return target == ErrUnfinished }
func (r resumable) Unwrap() error      { return r.error }

// ErrOut marks an error about the place of the output folder. If there is a file or folder in the way, the error is
// also an [fs.ErrExist] or an [ErrUnfinished].
var ErrOut = errors.New("this output folder cannot be used")

// outError is an [ErrOut] with its own text. It also wraps the error of its kind, if not nil.
type outError struct {
	error
	kind error
}

func (e outError) Is(target error) bool { return target == ErrOut || e.kind != nil && target == e.kind }
func (e outError) Unwrap() error        { return e.error }

// ErrRunning marks the error for an output folder that another process is writing.
var ErrRunning = errors.New("another conversion is writing this folder: wait until it ends, or choose another output folder")

func running(dir string) error {
	return weights.FileErrorf(dir, "%w", outError{ErrRunning, nil})
}

// inUse returns the error for a stage that exists: another process is writing it, or was interrupted.
func inUse(dir string) error {
	if errors.Is(lock.Check(dir), lock.ErrHeld) {
		return running(dir)
	}
	return unfinished(dir)
}

func unfinished(dir string) error {
	return weights.FileErrorf(dir, "%w: move the folder away, or resume the conversion", ErrUnfinished)
}

func taken(out string) error {
	return weights.FileErrorf(out, "%w", outError{errors.New("exists already: choose a new folder"), fs.ErrExist})
}

func noConversion(dir string) error {
	return weights.FileErrorf(dir, "%w", outError{errors.New("is not an unfinished conversion, and the conversion needs this name: move the file or folder away, or choose another output folder"), fs.ErrExist})
}

// openStage creates the stage. With Resume, it continues an existing stage.
func openStage(out string, c *conversion) (*stage, error) {
	out = filepath.Clean(out)
	st := &stage{dir: out + partialSuffix, out: out, old: c.opt.Replace, finished: map[string]plan.Shard{}, sizes: map[string]int64{}}
	_, err := os.Lstat(st.dir)
	switch {
	case err == nil && c.opt.Resume:
		err = st.reopen(c)
	case err == nil:
		err = inUse(st.dir)
	case errors.Is(err, fs.ErrNotExist):
		err = st.create(c)
	}
	if err != nil {
		st.close()
		return nil, err
	}
	return st, nil
}

// create creates a new stage.
func (st *stage) create(c *conversion) error {
	if err := checkRoom(filepath.Dir(st.out), c.size()); err != nil {
		return err
	}
	if err := os.Mkdir(st.dir, 0o777); errors.Is(err, fs.ErrExist) {
		return inUse(st.dir)
	} else if err != nil {
		parent := filepath.Dir(st.out)
		if _, gone := os.Stat(parent); errors.Is(err, fs.ErrNotExist) && gone == nil { // such as /proc
			return weights.FileErrorf(st.out, "%w", outError{fmt.Errorf("the file system of %s does not allow new folders: choose another place", parent), nil})
		}
		return weights.FileErrorf(st.out, "%w", outError{fmt.Errorf("no folder can be made there (%w): choose another place", err), nil})
	}
	return st.claim(c)
}

// claim locks a new folder and begins the journal in it. If another process has locked the folder in the meantime,
// claim returns an error. If another process has just finished the same output, claim removes the new folder.
func (st *stage) claim(c *conversion) error {
	if err := st.lock(); err != nil {
		return err
	}
	if !c.Model.Single {
		if err := c.likeSource(st.dir); err != nil {
			return errors.Join(err, os.Remove(st.dir))
		}
	}
	if err := checkFree(st.out, st.old); err != nil {
		return errors.Join(err, os.Remove(st.dir))
	}
	err := st.begin(c)
	if errors.Is(err, fs.ErrExist) {
		return unfinished(st.dir)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(st.dir))
	}
	return nil
}

// lock locks the folder, and checks that no other process has finished, removed or replaced it.
func (st *stage) lock() (err error) {
	st.folder, err = lock.Folder(st.dir)
	switch {
	case errors.Is(err, lock.ErrHeld):
		return running(st.dir)
	case err != nil && !lock.None(err):
		return weights.FileErrorf(st.dir, "this folder cannot be locked (%w): choose another output folder", err)
	}
	return st.inPlace()
}

// inPlace returns an error if the name no longer refers to the locked folder.
func (st *stage) inPlace() error {
	if st.folder == nil {
		return nil
	}
	mine, err := st.folder.Stat()
	if err != nil {
		return err
	}
	if there, err := os.Lstat(st.dir); err != nil || !os.SameFile(mine, there) {
		return errors.Join(weights.FileErrorf(st.dir, "another process has moved or removed this folder: run the command again"), err)
	}
	return nil
}

// close releases the lock.
func (st *stage) close() {
	st.release()
	st.journal.Close()
	st.folder.Close()
}

// reopen continues a stage. It reads the journal and removes unfinished files.
func (st *stage) reopen(c *conversion) error {
	if err := recognise(st.dir); err != nil {
		return err
	}
	if err := st.lock(); err != nil {
		return err
	}
	if err := checkFree(st.out, st.old); err != nil { // one process finished, and another process then made a new stage
		os.Remove(st.dir) // if the folder is not empty, this fails and the folder stays
		return err
	}
	b, err := st.recorded(c)
	if err != nil {
		return err
	}
	if b.plan != nil {
		if err := st.samePlan(b.plan, c.plan); err != nil {
			return err
		}
	}
	for _, r := range b.records {
		if info, err := os.Lstat(st.path(r.File)); err == nil && info.Mode().IsRegular() && c.hasShard(r.File) {
			st.finished[r.File], st.keep = r, true
		}
	}
	if err := st.sameSources(c, b.sources); err != nil {
		return err
	}
	switch {
	case st.journal == nil:
		err = st.begin(c)
		for _, r := range b.records {
			err = errors.Join(err, st.log(r))
		}
	case b.plan == nil: // the process was killed before the plan was on the disk
		err = st.log(journalSources{c.stamps()}, c.plan)
	}
	return errors.Join(err, st.removeUnfinished())
}

// ErrOtherPlan marks the error for resuming an interrupted conversion with another plan, for example because of other
// options or another recipe.
var ErrOtherPlan = errors.New("was begun with another plan: give the same options as before, or move the folder away")

func (st *stage) samePlan(was, now *plan.Plan) error {
	a, err := was.Plain()
	if err != nil {
		return err
	}
	b, err := now.Plain()
	if err == nil && string(a) != string(b) {
		err = weights.FileErrorf(st.dir, "%w", ErrOtherPlan)
	}
	return err
}

// recognise returns an error if dir cannot be the stage of an interrupted conversion. A stage has a journal, or is
// empty, or has a manifest if only the renaming is missing.
func recognise(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return noConversion(dir)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) == 0 {
		return err
	}
	for _, name := range []string{journalName, plan.ManifestName} {
		if info, err := os.Lstat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
			return nil
		}
	}
	return noConversion(dir)
}

func (st *stage) removeUnfinished() error {
	entries, err := os.ReadDir(st.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if _, ok := st.finished[e.Name()]; ok || e.Name() == journalName {
			continue
		}
		if err := os.RemoveAll(st.path(e.Name())); err != nil {
			return err
		}
	}
	return nil
}

func (st *stage) path(name string) string { return filepath.Join(st.dir, name) }

// createShard begins a shard with the permissions of a source shard.
func (st *stage) createShard(_ context.Context, src *weights.File, head []byte, dataLen int64) (weights.Output, error) {
	name := filepath.Base(src.Path)
	f, err := createLike(st.path(name), src, head, dataLen)
	if err != nil {
		return nil, err
	}
	if st.folder == nil {
		if err := st.hold(name, f); err != nil {
			f.Abort()
			return nil, err
		}
	}
	return f, nil
}

// hold keeps a new shard open. Without a lock, another process may remove the shard and write its own file of the
// same name. An open file's number is not reused, so [stage.own] can tell the two files apart.
func (st *stage) hold(name string, w *weights.Writer) error {
	mine, err := w.Stat()
	if err != nil {
		return err
	}
	f, err := os.Open(st.path(name))
	if err != nil {
		return err
	}
	st.held.Store(name, f)
	if there, err := f.Stat(); err != nil || !os.SameFile(mine, there) {
		return errors.Join(st.notAlone(name), err)
	}
	return nil
}

// own returns an error if the name refers to another file than the shard written by this call.
func (st *stage) own(name string) error {
	f, ok := st.held.Load(name)
	if !ok {
		return nil
	}
	mine, err := f.(*os.File).Stat()
	if err != nil {
		return err
	}
	if there, err := os.Lstat(st.path(name)); err != nil || !os.SameFile(mine, there) {
		return st.notAlone(name)
	}
	return nil
}

func (st *stage) notAlone(name string) error {
	return weights.FileErrorf(st.path(name), "another process has also written this file, because this file system has no locks: run only one conversion into a folder at a time")
}

// release closes the shards that hold keeps open.
func (st *stage) release() {
	st.held.Range(func(_, f any) bool {
		f.(*os.File).Close()
		return true
	})
	st.held.Clear()
}

// finish records in the journal that a shard is on the disk.
func (st *stage) finish(r plan.Shard) error {
	if err := errors.Join(atomicfile.SyncFolder(st.dir), st.own(r.File)); err != nil {
		return err
	}
	if err := st.log(r); err != nil {
		return err
	}
	st.keep = true
	return st.complete(r.File)
}

// complete records the size of a complete file. The size is checked again before the stage becomes the output. Shards
// of this call are recorded while the next shard is computed, so the check must not run at the same time.
func (st *stage) complete(name string) error {
	info, err := os.Lstat(st.path(name))
	if err == nil {
		st.sizes[name] = info.Size()
	}
	return err
}

// whole returns an error if a complete file was removed or has another size.
func (st *stage) whole() error {
	for _, name := range slices.Sorted(maps.Keys(st.sizes)) {
		info, err := os.Lstat(st.path(name))
		if err != nil {
			return weights.FileErrorf(st.path(name), "another process removed this file: %w", err)
		}
		if !info.Mode().IsRegular() || info.Size() != st.sizes[name] {
			return weights.FileErrorf(st.path(name), "another process changed this file")
		}
		if err := st.own(name); err != nil {
			return err
		}
	}
	return nil
}

// commit renames the stage to the output's name.
func (st *stage) commit() error {
	if err := st.whole(); err != nil {
		return err
	}
	if err := atomicfile.SyncFolder(st.dir); err != nil { // the manifest must be on the disk before the journal is removed
		return err
	}
	st.journal.Close()
	if err := os.Remove(st.path(journalName)); err != nil {
		return err
	}
	if err := atomicfile.SyncFolder(st.dir); err != nil {
		return err
	}
	st.release() // on systems other than Unix, a folder with open files cannot be renamed
	if err := st.publish(st.old); err != nil {
		return err
	}
	st.close()
	return nil
}

// fail keeps the stage for a later Resume if ctx has ended or a shard is finished. Otherwise it removes the stage.
func (st *stage) fail(ctx context.Context, err error) error {
	defer st.close()
	st.release()
	if _, missing := os.Lstat(st.dir); missing != nil {
		return err // the folder already has the output's name
	}
	switch {
	case ctx.Err() != nil:
		if !errors.Is(err, ctx.Err()) { // there is another error besides the interrupt
			err = errors.Join(ctx.Err(), err)
		} else {
			err = ctx.Err()
		}
		return resumable{fmt.Errorf("%w: finished shards are kept in %s; resume to continue", err, st.dir)}
	case st.keep && errors.Is(err, ErrNotMade):
		return resumable{fmt.Errorf("%w: the new folder is kept in %s; move %s away and resume, to give the new folder its name", err, st.dir, st.out)}
	case st.keep:
		return resumable{fmt.Errorf("%w: finished shards are kept in %s; remove the cause (for example, free disk space) and resume to continue", err, st.dir)}
	}
	return errors.Join(err, os.RemoveAll(st.dir))
}
