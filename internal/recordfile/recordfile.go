// Package recordfile keeps the records of measurements as JSON files. A later run of the same command continues from
// a record.
package recordfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/lowtoggle/lowtoggle/internal/atomicfile"
)

// Read reads the record at path into into, a pointer. If path is empty or there is no file, into does not change.
func Read(path string, into any) error {
	if path == "" {
		return nil
	}
	js, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(js, into); err != nil {
		return fmt.Errorf("%s is not a record of this command (give another file): %w", path, err)
	}
	return nil
}

// Write creates or replaces the record at path, whole or not at all. It also makes the record's folder.
func Write(path string, record any) error {
	js, err := json.MarshalIndent(record, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return atomicfile.Write(path, append(js, '\n'))
}
