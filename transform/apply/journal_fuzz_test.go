package apply

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/lowtoggle/lowtoggle/transform/plan"
)

// FuzzJournal: a journal is read or refused; reading it once more finds the same.
func FuzzJournal(f *testing.F) {
	p := `{"plan_version": 2, "drop_in": true, "steps": []}`
	f.Add([]byte(p + "\n" + `{"file": "a.safetensors", "source": "00", "output": "00"}` + "\n"))
	f.Add([]byte(p + "\n" + `{"file": "a.safe`))
	f.Add([]byte("null\nnull\n"))
	path := filepath.Join(f.TempDir(), journalName)
	f.Fuzz(func(t *testing.T, data []byte) {
		read := func() (*plan.Plan, []plan.Shard, error) {
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
		p, records, err := read()
		if err != nil {
			return
		}
		q, again, err := read()
		if err != nil || (p == nil) != (q == nil) || len(again) != len(records) {
			t.Errorf("%d shards, then %d (%v)", len(records), len(again), err)
		}
	})
}
