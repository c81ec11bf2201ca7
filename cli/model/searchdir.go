package model

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cli/outfile"
)

// besideOut is where a search keeps what it finds for an output.
func besideOut(out string) string { return filepath.Clean(out) + ".search" }

// searchDir is where a search keeps what it finds, and whether that stays there: the folder that --search-dir
// names; else one beside the output or, where that is a pipe or none, among temporary files. The
// same command finds it again. It is never the model's folder.
func searchDir(c *cli.Context, model, beside, key string) (dir string, kept bool, err error) {
	dir, kept = c.String("search-dir"), c.IsSet("search-dir")
	if kept && dir == "" {
		return "", false, exit.Usagef("--search-dir is empty: name a folder")
	}
	if !kept {
		if dir = besideOut(beside); beside == "" || isDevice(beside) {
			dir = filepath.Join(os.TempDir(), "lowtoggle-"+key[:16]+".search")
		}
		return dir, false, nil
	}
	within, err := outfile.Inside(existing(dir), model)
	if err == nil && within {
		err = exit.Usagef("--search-dir %s: lies in the model's folder: name another", dir)
	}
	return dir, true, err
}

// isDevice says whether something is neither a file nor a folder.
func isDevice(path string) bool {
	st, err := os.Lstat(path)
	return err == nil && !st.Mode().IsRegular() && !st.IsDir()
}

// existing is the folder itself or the nearest above it that is there, without links.
func existing(dir string) string {
	dir, err := filepath.Abs(dir)
	for err == nil {
		if real, err := filepath.EvalSymlinks(dir); err == nil || filepath.Dir(dir) == dir {
			return real
		}
		dir = filepath.Dir(dir)
	}
	return dir
}

// searchParts are what a search keeps.
var searchParts = []string{"fit", "held", "search", "plan.json", unkept}

// unkept marks a folder that is removed in the end: that of a search without --search-dir.
const unkept = "unkept"

// mark says in a search's folder whether it stays.
func mark(dir string, kept bool) error {
	path := filepath.Join(dir, unkept)
	if kept {
		if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	return os.WriteFile(path, nil, 0o666)
}

// removeOwn removes what a search without --search-dir keeps.
func removeOwn(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, unkept)); err != nil {
		return nil
	}
	return removeSearch(dir)
}

// tidy removes a search's folder in which nothing is left but the mark.
func tidy(dir string) {
	if left, _ := os.ReadDir(dir); len(left) == 1 && left[0].Name() == unkept {
		_ = removeSearch(dir)
	}
}

// searching says whether an unfinished search has left something.
func searching(dir string) bool {
	for _, name := range searchParts {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// removeSearch removes what a search keeps, and nothing that somebody else put there.
func removeSearch(dir string) error {
	var err error
	for _, name := range searchParts {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, name)))
	}
	_ = os.Remove(dir)
	return err
}
