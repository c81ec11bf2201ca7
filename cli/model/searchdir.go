package model

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cli/outfile"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/internal/lock"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/weights"
)

// besideOut returns the folder in which a search for an output keeps its results: beside the output, or in the
// temporary folder for a bucket.
func besideOut(out string) string {
	if weights.IsURL(out) { // a search writes many small files: keep them on a disk
		sum := sha256.Sum256([]byte(strings.TrimRight(out, "/")))
		return filepath.Join(os.TempDir(), fmt.Sprintf("lowtoggle-%x.search", sum[:8]))
	}
	return filepath.Clean(out) + ".search"
}

// searchDir returns the folder in which a search keeps its results, and whether the folder stays after the command.
// This is the folder of --search-dir, or else a folder beside the output. If the output is a pipe or there is none,
// the folder is in the temporary folder. The same command finds the same folder again. The folder is never in the
// model's folder.
func searchDir(c *cli.Context, model, beside, key string) (dir string, kept bool, err error) {
	dir, kept = c.String("search-dir"), c.IsSet("search-dir")
	if kept && dir == "" {
		return "", false, exit.Usagef("--search-dir is empty: name a folder")
	}
	if weights.IsURL(dir) {
		return "", false, exit.Usagef("--search-dir %s: is in a bucket: name a folder on a disk", dir)
	}
	if !kept {
		if dir = besideOut(beside); beside == "" || isDevice(beside) {
			dir = filepath.Join(os.TempDir(), "lowtoggle-"+key[:16]+".search")
		}
		if st, absent := os.Stat(dir); absent == nil && !st.IsDir() {
			err = exit.OutputExists(weights.FileErrorf(dir, "is a file, but the search needs a folder of this name: move the file away, or give another folder with --search-dir"))
		}
		return dir, false, err
	}
	within, err := outfile.Inside(existing(dir), model)
	if err == nil && within {
		err = exit.Usagef("--search-dir %s: lies in the model's folder: name another folder", dir)
	}
	if st, absent := os.Stat(dir); err == nil && absent == nil && !st.IsDir() {
		err = exit.Usagef("--search-dir %s: is a file: name a folder", dir)
	}
	if err == nil {
		if err = outfile.CheckParent(dir); err != nil {
			err = fmt.Errorf("--search-dir: %w", err)
		}
	}
	return dir, true, err
}

// holdSearch reserves the search's folder beside an output for this process until release is called. If another process
// uses the folder, the error says so. The folder of --search-dir is shared and not reserved. t may be nil.
func holdSearch(out string, t *transform.Tokens) (release func() error, err error) {
	nothing := func() error { return nil }
	if t == nil || t.Keep {
		dirs := []string{besideOut(out)}
		if t != nil {
			dirs = append(dirs, t.Dir)
		}
		for _, dir := range dirs {
			if errors.Is(lock.Check(dir), lock.ErrHeld) {
				return nil, searchRuns(dir)
			}
		}
		return nothing, nil
	}
	dir := t.Dir
	removed := func() error {
		if info, err := os.Lstat(dir); err == nil && info.IsDir() {
			_ = os.Remove(dir) // fails if the folder has results of an unfinished search
		}
		return nil
	}
	const tries = 100 // another process can remove the folder between two steps
	for range tries {
		if err := os.Mkdir(dir, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
			return nothing, nil // the search reports why there can be no folder
		}
		held, err := lock.Folder(dir)
		switch {
		case errors.Is(err, lock.ErrHeld):
			return nil, searchRuns(dir)
		case errors.Is(err, fs.ErrNotExist): // its process has just removed it
			continue
		case lock.None(err) || err == nil && held == nil:
			return removed, nil
		case err != nil:
			return nil, weights.FileErrorf(dir, "the folder could not be locked (%w): choose another output, or name another folder with --search-dir", err)
		case !sameFolder(held, dir, os.Stat):
			if err := held.Close(); err != nil {
				return nil, err
			}
			continue
		}
		return func() error {
			if sameFolder(held, dir, os.Lstat) { // not a link
				return errors.Join(removed(), held.Close())
			}
			return held.Close()
		}, nil
	}
	return nothing, nil
}

// sameFolder reports whether an open folder is the one of this name.
func sameFolder(open *os.File, dir string, stat func(string) (os.FileInfo, error)) bool {
	own, err := open.Stat()
	if err != nil {
		return false
	}
	named, err := stat(dir)
	return err == nil && os.SameFile(own, named)
}

// removeLeft removes the results of an interrupted search for a finished output, unless another process uses them. t are the
// tokens of this conversion, or nil.
func removeLeft(out string, t *transform.Tokens) error {
	dir := besideOut(out)
	if t == nil || t.Keep {
		held, err := lock.Folder(dir)
		if errors.Is(err, lock.ErrHeld) || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if held != nil {
			defer held.Close()
		}
	}
	return transform.RemoveUnkept(dir)
}

func searchRuns(dir string) error {
	return exit.OutputError(weights.FileErrorf(dir, "another process is using this folder: wait until it ends, or choose another output, or name another folder with --search-dir"))
}

// noticeSearch prints whether the results of an interrupted search for the same output are used again.
func noticeSearch(c *cli.Context, out string, t *transform.Tokens) {
	dir := besideOut(out)
	switch {
	case !transform.HasSearch(dir):
	case searchesIn(t, dir):
		term.Notice(c, "%s holds results of an unfinished search; results for the same model, tokens and passes are used again", dir)
	default:
		term.Notice(c, "%s holds results of an unfinished search, which this conversion does not use: "+
			"give --tokens and all other flags as before to continue the search, or remove %[1]s", dir)
	}
}

// leftSearch describes the results of an interrupted search for an output that was written without them; empty if there
// are none. t are the tokens of the conversion, or nil.
func leftSearch(out string, t *transform.Tokens) string {
	dir := besideOut(out)
	if searchesIn(t, dir) || !transform.HasSearch(dir) {
		return ""
	}
	return dir + " holds results of an unfinished search, which this conversion did not use: remove the folder, or run the unfinished command again with another OUT and --search-dir " +
		term.Words(dir)
}

// searchesIn reports whether a search with these tokens keeps its results in a folder that exists.
func searchesIn(t *transform.Tokens, dir string) bool {
	if t == nil {
		return false
	}
	own, errOwn := os.Stat(t.Dir)
	there, err := os.Stat(dir)
	return errOwn == nil && err == nil && os.SameFile(own, there)
}

// isDevice reports whether path is neither a file nor a folder.
func isDevice(path string) bool {
	st, err := os.Lstat(path)
	return err == nil && !st.Mode().IsRegular() && !st.IsDir()
}

// existing returns dir, or else its nearest parent that exists, with symbolic links resolved.
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
