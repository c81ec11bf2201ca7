package apply

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/lowtoggle/lowtoggle/internal/atomicfile"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
)

// replacedSuffix ends the name of an older folder until it is removed.
const replacedSuffix = ".replaced"

// emptyFolder reports whether path is a folder without entries. A conversion may use it as output. A symbolic link is
// not an empty folder.
func emptyFolder(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return false
	}
	entries, err := os.ReadDir(path)
	return err == nil && len(entries) == 0
}

// checkFree returns an error if out exists and is neither an empty folder nor the folder old.
func checkFree(out string, old *Made) error {
	switch _, err := os.Lstat(out); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case old != nil || emptyFolder(out):
		return checkMount(out)
	}
	return weights.FileErrorf(out, "%w", outError{errors.New("exists already: choose a new folder; to replace the result of an earlier conversion, open that result with OpenMade and give it as Replace"), fs.ErrExist})
}

// replaces returns an error if m is not the folder out as it is now.
func (m *Made) replaces(out string) error {
	bad := func(kind error, format string, args ...any) error {
		return weights.FileErrorf(out, "%w", outError{fmt.Errorf(format, args...), kind})
	}
	if m.Manifest == nil || m.dir == "" {
		return bad(nil, "Replace names no folder: open %s with OpenMade, or leave Replace out", out)
	}
	if weights.IsURL(out) {
		return bad(nil, "Replace needs a folder on a disk: leave Replace out, and name a new folder")
	}
	there, err := os.Lstat(filepath.Clean(out)) // a symbolic link cannot be replaced
	if errors.Is(err, fs.ErrNotExist) {
		return bad(fs.ErrNotExist, "there is no such folder, so nothing can be replaced: leave Replace out")
	}
	if err != nil {
		return err
	}
	if !there.IsDir() {
		return bad(fs.ErrExist, "is not a folder, so it cannot be replaced: name the folder itself")
	}
	if opened, err := os.Stat(m.dir); err != nil || !os.SameFile(opened, there) {
		return bad(nil, "Replace is another folder, %s: open %s with OpenMade", m.dir, out)
	}
	return m.unchanged("since OpenMade read it: open the folder again")
}

// checkMount returns an error if out is the root of a mounted disk, because no folder can be renamed to that name.
func checkMount(out string) error {
	if mounted(out) {
		return weights.FileErrorf(out, "%w", outError{errors.New("a disk is mounted here, so the folder cannot be replaced: name a new folder inside it"), fs.ErrExist})
	}
	return nil
}

// checkReplaced returns an error if replacing the folder out would remove the model.
func checkReplaced(m *weights.Model, out string) error {
	inside, err := within(m.Dir, out)
	if err == nil && inside {
		err = weights.FileErrorf(out, "%w", outError{fmt.Errorf("holds the model %s, which would be removed: choose another folder", m.Dir), fs.ErrExist})
	}
	return err
}

// within reports whether path is dir or lies in dir. Symbolic links are resolved.
func within(path, dir string) (bool, error) {
	top, err := os.Stat(dir)
	if err != nil {
		return false, err
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return false, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return false, err
	}
	for {
		if info, err := os.Stat(path); err != nil {
			return false, err
		} else if os.SameFile(info, top) {
			return true, nil
		}
		parent := filepath.Dir(path)
		if parent == path {
			return false, nil
		}
		path = parent
	}
}

// publish renames the finished stage to the output's name. An empty folder of that name is removed first. The folder
// old is renamed first and removed at the end, so both folders stay whole if the process is killed in between.
func (st *stage) publish(old *Made) error {
	parent := filepath.Dir(st.out)
	if old == nil {
		if emptyFolder(st.out) {
			if err := os.Remove(st.out); err != nil {
				return err
			}
		}
		return errors.Join(atomicfile.RenameNew(st.dir, st.out), atomicfile.SyncFolder(parent))
	}
	if err := old.unchanged("during the conversion"); err != nil {
		return err
	}
	aside := st.out + replacedSuffix
	if err := atomicfile.RenameNew(st.out, aside); err != nil {
		return err
	}
	if err := atomicfile.RenameNew(st.dir, st.out); err != nil {
		return errors.Join(err, atomicfile.RenameNew(aside, st.out))
	}
	if err := atomicfile.SyncFolder(parent); err != nil {
		return err
	}
	return removeMade(aside)
}

// removeMade removes a folder that a conversion made, also after an interrupted call. The manifest is removed last.
// If the folder has files that the manifest does not list or that have other sizes, nothing is removed.
func removeMade(dir string) error {
	files, err := listFiles(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(files) > 0 {
		man, err := plan.ReadManifest(dir)
		if err != nil {
			return notMade(dir, err.Error())
		}
		size := map[string]int64{}
		for _, f := range man.Files {
			size[f.Path] = f.Size
		}
		for name, info := range files {
			if n, ok := size[name]; name != plan.ManifestName && (!ok || n != info.Size()) {
				return notMade(dir, name+" is not in the manifest: move the folder away")
			}
		}
		delete(files, plan.ManifestName)
		for name := range files {
			if err := os.Remove(filepath.Join(dir, filepath.FromSlash(name))); err != nil {
				return err
			}
		}
		if err := atomicfile.SyncFolder(dir); err != nil {
			return err
		}
	}
	return errors.Join(os.RemoveAll(dir), atomicfile.SyncFolder(filepath.Dir(dir)))
}

// FinishReplacing completes a replacement of out that was interrupted between its renames, and removes the older
// folder. If the new folder is not complete, the older folder gets its name back. If there is no such folder,
// FinishReplacing does nothing.
func FinishReplacing(out string) error {
	out = filepath.Clean(out)
	aside := out + replacedSuffix
	if _, err := os.Lstat(aside); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if _, err := os.Lstat(out); errors.Is(err, fs.ErrNotExist) {
		finished, err := finishStage(out)
		if err != nil {
			return err
		}
		if !finished {
			return errors.Join(atomicfile.RenameNew(aside, out), atomicfile.SyncFolder(filepath.Dir(out)))
		}
	} else if err != nil {
		return err
	}
	return removeMade(aside)
}

// finishStage renames a complete stage to out, and reports whether there was one.
func finishStage(out string) (bool, error) {
	st := &stage{dir: out + partialSuffix, out: out}
	if _, err := os.Lstat(st.dir); err != nil {
		return false, nil
	}
	if _, err := os.Lstat(st.path(journalName)); err == nil {
		return false, nil // shards are missing
	}
	if _, err := plan.ReadManifest(st.dir); err != nil {
		return false, nil
	}
	if err := st.lock(); err != nil {
		return false, err
	}
	defer st.close()
	return true, errors.Join(atomicfile.RenameNew(st.dir, st.out), atomicfile.SyncFolder(filepath.Dir(st.out)))
}
