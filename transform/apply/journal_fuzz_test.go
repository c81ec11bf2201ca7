package apply

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
)

// FuzzJournal: a journal is read or is an error. Reading it again gives the same result.
func FuzzJournal(f *testing.F) {
	p := `{"plan_version": 2, "drop_in": true, "steps": []}`
	f.Add([]byte(p + "\n" + `{"file": "a.safetensors", "source": "00", "output": "00"}` + "\n"))
	f.Add([]byte(p + "\n" + `{"file": "a.safe`))
	f.Add([]byte(`{"sources": {}}` + "\n" + p + "\n" + p))
	f.Add([]byte(`{"sources":{"a.safetensors":{"bytes":8,"modified":1,"changed":2}}}` + "\n" + p + "\n"))
	f.Add([]byte("null\nnull\n"))
	path := filepath.Join(f.TempDir(), journalName)
	f.Fuzz(func(t *testing.T, data []byte) {
		read := func() (begun, error) {
			journal, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer journal.Close()
			return readJournal(journal)
		}
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
		b, err := read()
		if err != nil {
			return
		}
		again, err := read()
		if err != nil || (b.plan == nil) != (again.plan == nil) || len(again.records) != len(b.records) || !maps.Equal(again.sources, b.sources) {
			t.Errorf("%+v, then %+v (%v)", b, again, err)
		}
	})
}
