package transform

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/lowtoggle/lowtoggle/internal/atomicfile"
)

// unkept is the name of a file that marks a search's folder for removal at the end.
const unkept = "unkept"

// searchParts are the files and folders of calibration and search in [Tokens.Dir].
var searchParts = []string{"fit", "held", "search", "plan.json"}

// mark records in the folder whether it is kept.
func (t *Tokens) mark() error {
	path := filepath.Join(t.Dir, unkept)
	if t.Keep {
		if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	}
	if err := os.MkdirAll(t.Dir, 0o777); err != nil {
		return err
	}
	return os.WriteFile(path, nil, 0o666)
}

// Remove removes the files that Tokens wrote to Dir, and no others. With Keep, it removes only the unfinished files
// of killed processes.
func (t *Tokens) Remove() error {
	switch {
	case t.Dir == "":
		return nil
	case !t.Keep:
		return removeSearch(t.Dir)
	}
	err := atomicfile.RemoveLeft(t.Dir)
	for _, name := range searchParts {
		if path := filepath.Join(t.Dir, name); filepath.Ext(path) == "" {
			err = errors.Join(err, atomicfile.RemoveLeft(path))
		}
	}
	return err
}

// HasSearch reports whether a folder has files of calibration or a search.
func HasSearch(dir string) bool {
	for _, name := range searchParts {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// RemoveUnkept removes the files of a search in a folder that is not kept.
func RemoveUnkept(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, unkept)); err != nil {
		return nil
	}
	return removeSearch(dir)
}

func removeSearch(dir string) error {
	var err error
	for _, name := range append([]string{unkept}, searchParts...) {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, name)))
	}
	_ = os.Remove(dir)
	return err
}
