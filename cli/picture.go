package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// checkPicture refuses, before any work is done, a picture's file that could not be written. No path,
// no objection.
func checkPicture(path string) error {
	if path == "" {
		return nil
	}
	if ext := filepath.Ext(path); ext != "" && !strings.EqualFold(ext, ".svg") {
		return usagef("-o %s: pictures are drawn as SVG: name it %s", path, strings.TrimSuffix(path, ext)+".svg")
	}
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		return usagef("-o %s: is a folder: name a file in it", path)
	}
	_, err := os.Stat(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: the folder %s is not there: make it first", path, filepath.Dir(path))
	}
	return err
}
