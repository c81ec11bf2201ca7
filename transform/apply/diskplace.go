package apply

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/internal/atomicfile"
	"github.com/lowtoggle/lowtoggle/internal/bounded"
	"github.com/lowtoggle/lowtoggle/internal/lock"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
)

// diskPlace is a [place] on a disk: the folder out+".partial".
type diskPlace struct{ dir, out string }

// at returns the path of a file about the parts.
func (d diskPlace) at(name string) string { return filepath.Join(d.dir, filepath.FromSlash(name)) }

// part returns the path of a part's folder.
func (d diskPlace) part(number int) string { return d.at(fmt.Sprint(partPrefix, number)) }

func (d diskPlace) path(shard string) string { return filepath.Join(d.dir, resultName, shard) }

func (d diskPlace) finished(context.Context) (*plan.Manifest, error) {
	if _, err := os.Lstat(d.out); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	man, err := plan.ReadManifest(d.out)
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", taken(d.out), err)
	}
	return man, nil
}

func (d diskPlace) checkFree(context.Context) error {
	if err := os.Mkdir(d.dir, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return err
	}
	return d.mayBegin(entries)
}

// mayBegin returns an error if a folder with these entries is not empty. If another part has begun the folder in the
// meantime, the error is fs.ErrExist. If parts.json, written on another machine, is not visible yet, the error is
// temporary.
func (d diskPlace) mayBegin(entries []fs.DirEntry) error {
	var err error
	for _, e := range entries {
		switch name := e.Name(); {
		case name == partsName:
			return fs.ErrExist
		case name == journalName || name == plan.ManifestName:
			return resumable{fmt.Errorf("%s: this folder holds a conversion that was begun without parts: move the folder away, or resume that conversion", d.dir)}
		case strings.HasPrefix(name, "."+partsName): // left by a killed call
		case strings.HasPrefix(name, partPrefix) || name == resultName || name == recordsName:
			if err == nil {
				err = retry{fmt.Errorf("%s: %s is not visible yet: wait, or move the folder away and run all parts again", d.dir, partsName)}
			}
		default:
			err = noConversion(d.dir)
		}
	}
	return err
}

func (d diskPlace) begun() error {
	for _, name := range []string{resultName, recordsName} {
		if err := os.MkdirAll(d.at(name), 0o777); err != nil {
			return err
		}
	}
	return nil
}

func (d diskPlace) read(_ context.Context, name string) ([]byte, error) {
	return bounded.ReadFile(d.at(name), bounded.Config)
}

func (d diskPlace) create(_ context.Context, name string, data []byte) error {
	tmp, err := os.CreateTemp(d.dir, "."+name)
	if err != nil {
		return err
	}
	_, err = tmp.Write(data)
	if err = errors.Join(err, tmp.Chmod(0o644), tmp.Sync(), tmp.Close()); err == nil {
		err = atomicfile.RenameNew(tmp.Name(), d.at(name))
	}
	if err != nil {
		os.Remove(tmp.Name())
		return err
	}
	return atomicfile.SyncFolder(d.dir)
}

func (d diskPlace) write(_ context.Context, name string, data []byte) error {
	return atomicfile.Write(d.at(name), data)
}

// diskWork is where a part writes unfinished shards. Each call has its own folder, because some file systems have no
// locks.
type diskWork struct {
	diskPlace
	own  string
	lock *os.File // nil on systems without locks
}

// work locks a part, and removes the unfinished shards of killed calls.
func (d diskPlace) work(number int) (work, error) {
	dir := d.part(number)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	held, err := lock.Acquire(filepath.Join(dir, lockName))
	switch {
	case errors.Is(err, lock.ErrHeld):
		return nil, retry{fmt.Errorf("%s: another process is writing this part: wait until it ends (%w)", dir, err)}
	case err != nil && !lock.None(err):
		return nil, err
	case err == nil:
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, errors.Join(err, unlock(held))
		}
		for _, e := range entries {
			if e.IsDir() {
				if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
					return nil, errors.Join(err, unlock(held))
				}
			}
		}
	}
	if err := d.flush(dir); err != nil {
		return nil, errors.Join(err, unlock(held))
	}
	own, err := os.MkdirTemp(dir, "call-")
	if err != nil {
		return nil, errors.Join(err, unlock(held))
	}
	return &diskWork{d, own, held}, nil
}

// flush waits until a part's folders, and the names of all shards and records in them, are on the disk. Each call
// flushes them, because an earlier call may have ended after it wrote a name and before the name was durable.
func (d diskPlace) flush(part string) error {
	for _, dir := range []string{d.at(resultName), d.at(recordsName), part, d.dir, filepath.Dir(d.dir)} {
		if err := atomicfile.SyncFolder(dir); err != nil {
			return err
		}
	}
	return nil
}

func (w *diskWork) create(_ context.Context, src *weights.File, head []byte, dataLen int64) (weights.Output, error) {
	return createLike(filepath.Join(w.own, filepath.Base(src.Path)), src, head, dataLen)
}

func (w *diskWork) add(_ context.Context, shard string) (int64, string, error) {
	from, to := filepath.Join(w.own, shard), w.path(shard)
	stat := func() (fs.FileInfo, error) { return os.Lstat(to) }
	if runtime.GOOS != "windows" { // Windows renames no open file
		file, err := os.Open(from) // on a shared file system, the new name may become visible later
		if err != nil {
			return 0, "", err
		}
		defer file.Close()
		stat = file.Stat
	}
	if err := os.Rename(from, to); err != nil {
		return 0, "", err
	}
	if err := atomicfile.SyncFolder(filepath.Dir(to)); err != nil {
		return 0, "", err
	}
	info, err := stat()
	if err != nil {
		return 0, "", err
	}
	return info.Size(), versionOf(info), nil
}

// versionOf returns the modification time and the change time of a file. No program can set the change time.
func versionOf(info fs.FileInfo) string {
	s := weights.StampOf(info)
	return fmt.Sprintf("%d %d", s.Modified, s.Changed)
}

func (d diskPlace) unwritten(part int) error {
	dir := d.part(part)
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("is not written: its part has not begun")
	case err != nil:
		return err
	case errors.Is(lock.Check(filepath.Join(dir, lockName)), lock.ErrHeld):
		return errors.New("is not written yet: its part is running")
	case slices.ContainsFunc(entries, fs.DirEntry.IsDir):
		return errors.New("is not written: its part was killed, or runs on a file system without locks")
	}
	return errNoRecord
}

// refresh makes NFS drop its cache of missing names.
func (d diskPlace) refresh() {
	os.ReadDir(d.at(resultName))
	os.ReadDir(d.at(recordsName))
}

func (w *diskWork) Close() error { return errors.Join(os.RemoveAll(w.own), unlock(w.lock)) }

// unlock releases a lock. held is nil on systems without locks.
func unlock(held *os.File) error {
	if held == nil {
		return nil
	}
	return held.Close()
}

func (d diskPlace) lockFinish() (io.Closer, error) {
	held, err := lock.Acquire(d.at("finish"))
	if errors.Is(err, lock.ErrHeld) {
		return nil, retry{fmt.Errorf("%s: another process is finishing this conversion: wait until it ends (%w)", d.dir, err)}
	}
	if err != nil && !lock.None(err) {
		return nil, err
	}
	return held, nil
}

func (d diskPlace) stat(_ context.Context, shard string) (int64, string, error) {
	info, err := os.Lstat(d.path(shard))
	if err != nil {
		return 0, "", err
	}
	if !info.Mode().IsRegular() {
		return 0, "", errors.New("is not a regular file")
	}
	return info.Size(), versionOf(info), nil
}

func (d diskPlace) header(_ context.Context, shard string) (*weights.File, error) {
	return weights.OpenFile(d.path(shard))
}

func (d diskPlace) digest(ctx context.Context, shard string) (string, error) {
	return digestFile(ctx, d.path(shard), func(int) {})
}

func (d diskPlace) results(context.Context) (names []string, err error) {
	dir := d.at(resultName)
	return names, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(rel)
		if of, ok := atomicfile.IsPartial(name); ok && of == plan.ManifestName { // left by a killed call
			return os.Remove(path)
		}
		names = append(names, name)
		return nil
	})
}

// publish adds all files except the shards to the folder of results, and renames the folder.
func (d diskPlace) publish(ctx context.Context, c *conversion, man *plan.Manifest) error {
	st := &stage{dir: d.at(resultName), out: d.out, sizes: map[string]int64{}}
	if !c.Model.Single {
		if err := c.likeSource(st.dir); err != nil {
			return err
		}
	}
	for _, s := range man.Shards {
		if err := st.complete(s.File); err != nil {
			return err
		}
	}
	if err := c.copyOthers(ctx, st); err != nil {
		return err
	}
	if err := c.writeCard(ctx, st); err != nil {
		return err
	}
	var err error
	if man.Files, err = st.record(ctx, man.Shards); err != nil {
		return err
	}
	js, err := man.Encode()
	if err != nil {
		return err
	}
	if err := atomicfile.Write(st.path(plan.ManifestName), js); err != nil {
		return err
	}
	if err := errors.Join(st.whole(), atomicfile.SyncFolder(st.dir)); err != nil {
		return err
	}
	if err := atomicfile.RenameNew(st.dir, st.out); err != nil {
		return err
	}
	return atomicfile.SyncFolder(filepath.Dir(st.out))
}

// remove removes the folder with its content. It removes parts.json last, because the next call recognises the folder
// by that file. A power failure may leave the empty folder.
func (d diskPlace) remove(context.Context) error {
	if !begunInParts(d.dir) {
		if entries, err := os.ReadDir(d.dir); err == nil && len(entries) == 0 {
			return os.Remove(d.dir)
		}
		return nil
	}
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() != partsName {
			if err := os.RemoveAll(d.at(e.Name())); err != nil {
				return err
			}
		}
	}
	if err := atomicfile.SyncFolder(d.dir); err != nil {
		return err
	}
	return os.RemoveAll(d.dir)
}
