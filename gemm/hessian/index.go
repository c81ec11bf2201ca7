package hessian

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/lowtoggle/lowtoggle/internal/atomicfile"
	"github.com/lowtoggle/lowtoggle/internal/bounded"
)

const (
	indexName   = "index.json"
	indexFormat = "lowtoggle inputs 1"
)

// index lists the files of a finished folder.
type index struct {
	Format string    `json:"format"`
	Key    string    `json:"key"`
	Inputs []indexed `json:"inputs"` // in the order of computation
	CRC    uint32    `json:"crc32c"` // checksum of the compact JSON with 0 in this field
}

type indexed struct {
	File string `json:"file"`
	input
}

// encode sets the checksum and returns the index as JSON.
func (x *index) encode() ([]byte, error) {
	x.CRC = 0
	compact, err := json.Marshal(x)
	if err != nil {
		return nil, err
	}
	x.CRC = crc32.Checksum(compact, castagnoli)
	js, err := json.MarshalIndent(x, "", " ")
	return append(js, '\n'), err
}

func (x *index) write(dir string) error {
	js, err := x.encode()
	if err != nil {
		return err
	}
	return atomicfile.Stream(filepath.Join(dir, indexName), func(w io.Writer) error {
		_, err := w.Write(js)
		return err
	})
}

// readIndex returns the index of a folder; nil if there is none.
func readIndex(dir string) (*index, error) {
	path := filepath.Join(dir, indexName)
	js, err := bounded.ReadFile(path, bounded.Index)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	x := &index{}
	if json.Unmarshal(js, x) == nil && x.Format == indexFormat {
		stored := x.CRC
		if _, err := x.encode(); err == nil && x.CRC == stored {
			return x, nil
		}
	}
	return nil, fmt.Errorf("%s: is damaged, or is not an index of calibration statistics: choose another folder, or remove this one if it holds only calibration statistics", path)
}
