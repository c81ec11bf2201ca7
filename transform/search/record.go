package search

import (
	"encoding/json"
	"errors"
	"hash/crc32"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"github.com/lowtoggle/lowtoggle/internal/atomicfile"
	"github.com/lowtoggle/lowtoggle/internal/bounded"
	"github.com/lowtoggle/lowtoggle/weights"
)

// Folder is a [Record] of JSON files in Dir. Each file holds the Key of the search that wrote it, and Load finds only
// files with its own Key. A file appears complete or not at all.
type Folder struct{ Dir, Key string }

type recorded struct {
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value"`
	CRC   uint32          `json:"crc32c"` // of Value
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (f Folder) path(name string) string {
	return filepath.Join(f.Dir, url.PathEscape(name)+".json")
}

// Load decodes the value that was saved under a name. A file that is damaged or belongs to another search counts as
// not found. The error is an error of reading the file.
func (f Folder) Load(name string, into any) (found bool, err error) {
	js, err := bounded.ReadFile(f.path(name), bounded.Plan)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var r recorded
	if json.Unmarshal(js, &r) != nil || r.Key != f.Key || r.CRC != crc32.Checksum(r.Value, castagnoli) {
		return false, nil
	}
	return json.Unmarshal(r.Value, into) == nil, nil
}

// ErrOther marks a folder with the results of another search.
var ErrOther = errors.New("has measurements of another search (other options, model, tokens, calibration or version): give the same options to all parts, or name another folder")

// claimName is the name of the record that identifies the search of a folder.
const claimName = "search"

// Claim records in the folder that it belongs to this search. If the folder belongs to another search, the error is
// an [ErrOther].
func (f Folder) Claim() error {
	for range 2 {
		js, err := bounded.ReadFile(f.path(claimName), bounded.Index)
		var r recorded
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if err := f.Save(claimName, true); err != nil {
				return err
			}
			continue // another process may have written the claim
		case err != nil:
			return err
		case json.Unmarshal(js, &r) != nil || r.Key != f.Key:
			return weights.FileErrorf(f.Dir, "%w", ErrOther)
		}
		break
	}
	return nil
}

// Save stores a value under a name. It creates the folder if needed.
func (f Folder) Save(name string, from any) error {
	value, err := json.Marshal(from)
	if err != nil {
		return weights.FileErrorf(f.path(name), "%w", err)
	}
	js, err := json.Marshal(recorded{f.Key, value, crc32.Checksum(value, castagnoli)})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(f.Dir, 0o777); err != nil {
		return err
	}
	return atomicfile.Write(f.path(name), js)
}
