package hessian

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzTriangle: a file of statistics is refused, or holds the rows that its header says.
func FuzzTriangle(f *testing.F) {
	path := filepath.Join(f.TempDir(), "layer.bin")
	good := header{Format: fileFormat, Key: "k", input: input{Layers: []string{"a"}, Width: 3, Tokens: 7}}
	if err := writeTriangle(f.Context(), path, good, func(i int) []float32 { return []float32{1, 2, 3}[i:] }); err != nil {
		f.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)-3])
	f.Add([]byte("{\"format\": 1}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
		rows := 0
		h, err := readTriangle(t.Context(), path, func(h header) bool { return h.Width > 0 && h.Width <= 1<<10 }, func(i int, raw []byte) {
			if i != rows || len(raw)%4 != 0 {
				t.Errorf("row %d has %d bytes", i, len(raw))
			}
			rows++
		})
		if err == nil && rows != h.Width {
			t.Errorf("%d rows of %d", rows, h.Width)
		}
	})
}
