package hessian

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzIndex: an index that is read is written as it was.
func FuzzIndex(f *testing.F) {
	js, err := (&index{Format: indexFormat, Key: "k", Inputs: []indexed{{File: "layer.bin"}}}).encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(js)
	f.Add([]byte(`{"format": "x", "inputs": [null, {}], "crc32c": 1}`))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, js []byte) {
		if err := os.WriteFile(filepath.Join(dir, indexName), js, 0o666); err != nil {
			t.Fatal(err)
		}
		x, err := readIndex(dir)
		if err != nil {
			return
		}
		crc := x.CRC
		if _, err := x.encode(); err != nil || x.CRC != crc {
			t.Errorf("the checksum %d becomes %d (%v)", crc, x.CRC, err)
		}
	})
}
