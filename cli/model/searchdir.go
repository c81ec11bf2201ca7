package model

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cli/outfile"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/weights"
)

// besideOut is where a search keeps what it finds for an output: beside it, or for a bucket among temporary files.
func besideOut(out string) string {
	if weights.IsURL(out) { // a search writes many small files
		sum := sha256.Sum256([]byte(strings.TrimRight(out, "/")))
		return filepath.Join(os.TempDir(), fmt.Sprintf("lowtoggle-%x.search", sum[:8]))
	}
	return filepath.Clean(out) + ".search"
}

// searchDir is where a search keeps what it finds, and whether that stays there: the folder that --search-dir
// names; else one beside the output or, where that is a pipe or none, among temporary files. The
// same command finds it again. It is never the model's folder.
func searchDir(c *cli.Context, model, beside, key string) (dir string, kept bool, err error) {
	dir, kept = c.String("search-dir"), c.IsSet("search-dir")
	if kept && dir == "" {
		return "", false, exit.Usagef("--search-dir is empty: name a folder")
	}
	if weights.IsURL(dir) {
		return "", false, exit.Usagef("--search-dir %s: a search needs a folder of a disk: name one", dir)
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

// noticeSearch says what becomes of the results that an interrupted search for the same output has left beside it.
func noticeSearch(c *cli.Context, out string, t *transform.Tokens) {
	dir := besideOut(out)
	switch {
	case !transform.HasSearch(dir):
	case t != nil && t.Dir == dir:
		term.Notice(c, "%s holds results of an interrupted search; those of the same model, tokens and passes are used again", dir)
	default:
		term.Notice(c, "%s holds results of an interrupted search, which this conversion does not use: "+
			"give --tokens and all other flags as before to continue the search, or remove %[1]s", dir)
	}
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
