package experiment

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// FuzzSeries: a file of measurements is refused, or has a file name.
func FuzzSeries(f *testing.F) {
	f.Add([]byte(`{"series_version": 1, "setup": {}, "baseline": {}, "sittings": [{"points": [null]}]}`))
	for _, pattern := range []string{"../results/*/*.json", "../results/*/*/*.json"} {
		paths, _ := filepath.Glob(pattern)
		for _, path := range paths {
			if data, err := os.ReadFile(path); err == nil && len(data) < 1<<14 && bytes.Contains(data, []byte("series_version")) {
				f.Add(data)
				break
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if s, err := decode(data); err == nil && s.file() == "" {
			t.Error("a series without a file name")
		}
	})
}
