package testmodel

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
)

// Digest describes a folder's files with a suffix, for golden files: their number, their bytes, and the SHA-256 of
// names and contents.
func Digest(t testing.TB, dir, suffix string) string {
	t.Helper()
	h := sha256.New()
	files, bytes := 0, int64(0)
	OK(t, fs.WalkDir(os.DirFS(dir), ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(file, suffix) {
			return err
		}
		data, err := fs.ReadFile(os.DirFS(dir), file)
		fmt.Fprintf(h, "%s %d\n", file, len(data))
		h.Write(data)
		files, bytes = files+1, bytes+int64(len(data))
		return err
	}))
	return fmt.Sprintf("%d files, %d bytes, %.12x", files, bytes, h.Sum(nil))
}
