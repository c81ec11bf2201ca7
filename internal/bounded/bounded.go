// Package bounded reads whole files up to a largest size.
package bounded

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// Largest sizes of files in bytes.
const (
	Recipe = 1 << 20   // recipes
	Config = 16 << 20  // configs, calibrations
	Index  = 256 << 20 // indices of shards and of recorded measurements
	Plan   = 1 << 30   // plans, manifests, results of a search
)

// ErrTooLarge marks a file that is larger than allowed.
var ErrTooLarge = errors.New("file is too large")

// ErrNotFile marks a folder or a device where a file is expected.
var ErrNotFile = errors.New("name a file")

// ReadFile reads a file of at most most bytes. A larger file is an [ErrTooLarge]. A folder is an [ErrNotFile], and so is a
// device, because some never end.
func ReadFile(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, fmt.Errorf("%s: is a folder: %w", path, ErrNotFile)
	}
	if info.Mode()&os.ModeDevice != 0 {
		return nil, fmt.Errorf("%s: is a device: %w", path, ErrNotFile)
	}
	tooLarge := fmt.Errorf("%s: %w: lowtoggle reads at most %d MiB: check that this is the right file", path, ErrTooLarge, most>>20)
	if info.Size() > most {
		return nil, tooLarge
	}
	data := make([]byte, 0, info.Size()+1) // one more byte, to see the end without growing
	for int64(len(data)) <= most {
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		n, err := f.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if err == io.EOF {
			return data, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, tooLarge
}
